// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// maxTableRanks bounds the rows of the table: 32 fit on one screen. Beyond it
// the ranks that caused or suffered most are shown, and the number left out.
const maxTableRanks = 32

// Narrowest widths of the table's columns, with the gap before each. A column is
// as wide as its longest cell and the gap, where that is more.
const (
	rankWidth   = 6
	timeWidth   = 9
	lastWidth   = 8
	offsetWidth = 12
	minHost     = 8
	columnGap   = 2
)

func (p *printer) table(j *straggler.JobReport) {
	if len(j.Ranks) == 0 {
		return
	}
	rows := tableRows(j.Ranks)
	scale := scaleFor(longest(rows))
	cells := [][]string{{"rank", "own", "compute", "idle", "caused", "suffered", "last", "clock offset"}}
	for i := range rows {
		cells = append(cells, tableCells(&rows[i], scale))
	}
	widths := columnWidths(cells)
	host := p.hostWidth(rows, widths)
	p.Line("%s", p.Paint(report.Dim, fmt.Sprintf("time per step, %s", scale.name)))
	p.Line("%s", p.Paint(report.Bold, tableLine(cells[0], widths, "host", host)))
	accused := accusedRanks(j)
	for i := range rows {
		text := tableLine(cells[i+1], widths, report.Clean(rows[i].Host), host)
		if accused[rows[i].Rank] {
			text = p.Paint(report.Red, text)
		}
		p.Line("%s", text)
	}
	p.legend(j, rows)
}

// accusedRanks are those that a finding names as at fault.
func accusedRanks(j *straggler.JobReport) map[int64]bool {
	accused := map[int64]bool{}
	for i := range j.Verdicts {
		f := &j.Verdicts[i].Finding
		if f.Rank.OK {
			accused[f.Rank.V] = true
		}
		if f.Blameless() {
			continue
		}
		for _, r := range f.Ranks {
			accused[r] = true
		}
	}
	return accused
}

func (p *printer) legend(j *straggler.JobReport, rows []straggler.RankTotal) {
	if rest := len(j.Ranks) - len(rows); rest > 0 {
		p.Line("%s", p.Paint(report.Dim, fmt.Sprintf("%s more; all of them are in --json", report.Plural(int64(rest), "rank"))))
	}
	text := "own: wait-free time (compute, idle, copies). idle: nothing ran on the device. caused, suffered: " +
		"wait for the last arriver. last: times it arrived last, of its collectives."
	if slices.ContainsFunc(rows, func(r straggler.RankTotal) bool { return notApplied(&r.Offset) }) {
		text += " (clock offset): estimated, not applied."
	}
	for _, l := range report.Wrap(text, p.Columns()) {
		p.Line("%s", p.Paint(report.Dim, l))
	}
	p.Line("")
}

// tableRows returns the ranks to show, by rank.
func tableRows(all []straggler.RankTotal) []straggler.RankTotal {
	rows := slices.Clone(all)
	if len(rows) > maxTableRanks {
		slices.SortStableFunc(rows, func(a, b straggler.RankTotal) int {
			return int(max(b.WaitCaused, b.WaitSuffered) - max(a.WaitCaused, a.WaitSuffered))
		})
		rows = rows[:maxTableRanks]
	}
	slices.SortFunc(rows, func(a, b straggler.RankTotal) int { return int(a.Rank - b.Rank) })
	return rows
}

// columnWidths returns how wide each column must be, so that none touches the
// next.
func columnWidths(cells [][]string) []int {
	widths := []int{rankWidth, timeWidth, timeWidth, timeWidth, timeWidth, timeWidth, lastWidth, offsetWidth}
	for _, row := range cells {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c)+columnGap)
		}
	}
	return widths
}

// hostWidth returns the columns left for host names, with the gap; 0 where none
// is known or the screen is too narrow.
func (p *printer) hostWidth(rows []straggler.RankTotal, widths []int) int {
	longest, left := 0, p.Columns()
	for i := range rows {
		if n := utf8.RuneCountInString(rows[i].Host); n > 0 {
			longest = max(longest, n+columnGap)
		}
	}
	for _, w := range widths {
		left -= w
	}
	if longest == 0 || left < minHost {
		return 0
	}
	return min(left, max(longest, minHost))
}

func longest(rows []straggler.RankTotal) time.Duration {
	var most time.Duration
	for i := range rows {
		r := &rows[i]
		most = max(most, perStep(r.Split.Own(), r), perStep(r.WaitCaused, r), perStep(r.WaitSuffered, r))
	}
	return most
}

func perStep(d time.Duration, r *straggler.RankTotal) time.Duration {
	return d / time.Duration(max(1, r.Steps))
}

func tableCells(r *straggler.RankTotal, scale scaled) []string {
	s := &r.Split
	cell := func(d time.Duration) string { return scale.format(perStep(d, r)) }
	return []string{
		strconv.FormatInt(r.Rank, 10),
		cell(s.Own()), cell(s.Compute + s.ComputeOverlapped), cell(s.LaunchIdle + s.DependencyIdle),
		cell(r.WaitCaused), cell(r.WaitSuffered),
		fmt.Sprintf("%d/%d", r.LastArrivals, r.Meetings), offsetText(&r.Offset),
	}
}

// tableLine renders one row; the host stands behind the rank, where it fits.
func tableLine(cells []string, widths []int, host string, hostWidth int) string {
	var b strings.Builder
	for i, c := range cells {
		b.WriteString(report.PadLeft(c, widths[i]))
		if i == 0 && hostWidth > 0 {
			b.WriteString(strings.Repeat(" ", columnGap) + report.PadRight(report.Cut(host, hostWidth-columnGap), hostWidth-columnGap))
		}
	}
	return b.String()
}

func notApplied(o *clock.Offset) bool { return o.Value == 0 && o.Estimate != 0 }

// offsetText renders an offset with its sigma.
func offsetText(o *clock.Offset) string {
	switch {
	case o.Clock == o.Reference:
		return "reference"
	case o.Meetings == 0:
		return "unknown"
	case notApplied(o):
		return "(" + offsetValue(o.Estimate, o.Sigma) + ")"
	}
	return offsetValue(o.Value, o.Sigma)
}

func offsetValue(v, sigma time.Duration) string {
	unit, name := time.Microsecond, "µs"
	switch a := max(v.Abs(), sigma); {
	case a >= time.Second:
		unit, name = time.Second, "s"
	case a >= time.Millisecond:
		unit, name = time.Millisecond, "ms"
	}
	digits := 1
	if unit != time.Microsecond {
		digits = 3
	}
	return fmt.Sprintf("%+.*f±%.*f %s", digits, float64(v)/float64(unit), digits, float64(sigma)/float64(unit), name)
}

// scaled renders durations of one column in one unit, so that they compare.
type scaled struct {
	unit time.Duration
	name string
}

func scaleFor(longest time.Duration) scaled {
	switch a := longest.Abs(); {
	case a >= 10*time.Second:
		return scaled{time.Second, "s"}
	case a >= 10*time.Millisecond:
		return scaled{time.Millisecond, "ms"}
	default:
		return scaled{time.Microsecond, "µs"}
	}
}

func (s scaled) format(d time.Duration) string {
	digits := 2
	if s.unit == time.Microsecond {
		digits = 0
	}
	v := strconv.FormatFloat(float64(d)/float64(s.unit), 'f', digits, 64)
	if strings.Trim(v, "-0.") == "" {
		return strings.TrimPrefix(v, "-")
	}
	return v
}
