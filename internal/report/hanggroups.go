// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// maxGroupsShown bounds the rows of the table of groups, those with something open first:
// what fits on a screen.
const maxGroupsShown = 24

// groups is the table of process groups and their states.
func (p *Printer) groups(r *desync.Report) {
	open := 0
	for i := range r.Groups {
		if r.Groups[i].HasHead {
			open++
		}
	}
	shown := min(maxGroupsShown, open)
	if shown == 0 {
		return
	}
	rows := [][]string{{"process group", "ranks", "seen", "enqueued", "completed", "open", "oldest open", "not in it"}}
	for i := range r.Groups {
		if g := &r.Groups[i]; g.HasHead && len(rows) <= shown {
			rows = append(rows, p.groupCells(g))
		}
	}
	p.Grid(rows)
	if rest := len(r.Groups) - shown + r.GroupsOmitted; rest > 0 {
		text := "and " + Plural(int64(rest), "more group") + " with nothing open"
		if open > shown {
			text = fmt.Sprintf("and %s, %s of them with something open", Plural(int64(rest), "more group"), Thousands(int64(open-shown)))
		}
		p.Line("%s", p.Paint(Dim, text))
	}
	p.Line("")
}

// narrow is the width from which on names are shown at some length, columns.
const narrow = 100

func (p *Printer) groupCells(g *desync.Group) []string {
	name, op, seen := 36, 28, ""
	if p.Columns() < narrow {
		name, op = 20, 18
	}
	if g.Seen != g.Members {
		seen = fmt.Sprintf("%d/%d", g.Seen, g.Members)
	}
	return []string{
		CutMiddle(Clean(commText(g.Comm)), name), SpansAtMost(g.Ranks, maxCellSpans), seen,
		between(g.EnqueuedMin, g.EnqueuedMax), between(g.CompletedMin, g.CompletedMax),
		strconv.Itoa(g.Open), Cut(Clean(opText(&g.Head)), op), SpansAtMost(g.Absent, maxCellSpans),
	}
}

// CutMiddle shortens a name and keeps its end, where the number stands that tells it from
// others of the same description.
func CutMiddle(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	end := n / 3
	return string(runes[:n-end-1]) + "…" + string(runes[len(runes)-end:])
}

func commText(c model.Comm) string {
	switch {
	case c.Name == "" || c.Name == c.ID:
		return c.ID
	case c.ID == "":
		return c.Name
	}
	return c.Name + " (" + c.ID + ")"
}

func opText(o *desync.OpRef) string {
	switch {
	case o.Src.OK && o.Dst.OK:
		return fmt.Sprintf("%s %d -> %d", o.Name, o.Src.V, o.Dst.V)
	case o.Name == "":
		return ""
	}
	return fmt.Sprintf("%s %d", o.Name, o.Seq)
}

// between writes the least and the greatest number.
func between(least, most model.Optional[int64]) string {
	switch {
	case !least.OK && !most.OK:
		return "?"
	case least == most:
		return strconv.FormatInt(least.V, 10)
	}
	return fmt.Sprintf("%d-%d", least.Or(0), most.Or(0))
}

// Grid prints rows in columns as wide as their cells; the first row is the head. Columns
// that are empty in every row are left out.
func (p *Printer) Grid(rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows[1:] {
		for i, c := range row {
			if c != "" {
				widths[i] = max(widths[i], utf8.RuneCountInString(c), utf8.RuneCountInString(rows[0][i]))
			}
		}
	}
	for n, row := range rows {
		var b strings.Builder
		for i, c := range row {
			if widths[i] > 0 {
				b.WriteString(PadRight(c, widths[i]+columnGap))
			}
		}
		text := strings.TrimRight(b.String(), " ")
		if n == 0 {
			text = p.Paint(Bold, text)
		}
		p.Line("%s", text)
	}
}
