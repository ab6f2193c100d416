// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report"
)

// maxGroupsShown bounds the rows of the table of groups, those with something open first:
// what fits on a screen.
const maxGroupsShown = 24

// groups is the table of process groups and their states.
func (p *printer) groups(r *desync.Report) {
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
		text := "and " + report.Plural(int64(rest), "more group") + " with nothing open"
		if open > shown {
			text = fmt.Sprintf("and %s, %s of them with something open", report.Plural(int64(rest), "more group"), report.Thousands(int64(open-shown)))
		}
		p.Line("%s", p.Paint(report.Dim, text))
	}
	p.Line("")
}

// maxCellSpans bounds the spans of ranks that are listed in a cell of a table.
const maxCellSpans = 3

// narrow is the width from which on names are shown at some length, columns.
const narrow = 100

func (p *printer) groupCells(g *desync.Group) []string {
	name, op, seen := 36, 28, ""
	if p.Columns() < narrow {
		name, op = 20, 18
	}
	if g.Seen != g.Members {
		seen = fmt.Sprintf("%d/%d", g.Seen, g.Members)
	}
	return []string{
		report.CutMiddle(report.Clean(commText(g.Comm)), name), report.SpansAtMost(g.Ranks, maxCellSpans), seen,
		between(g.EnqueuedMin, g.EnqueuedMax), between(g.CompletedMin, g.CompletedMax),
		strconv.Itoa(g.Open), report.Cut(report.Clean(opText(&g.Head)), op), report.SpansAtMost(g.Absent, maxCellSpans),
	}
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
