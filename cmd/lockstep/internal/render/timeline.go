// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// maxTimelineRows bounds the lines of one collective: the earliest and the
// latest members are shown, since the last decide.
const (
	maxTimelineRows = 32
	timelineHead    = 8
)

const (
	waitMark     = '░'
	transferMark = '█'
	// toLastWidth holds "-1,234,567 µs".
	toLastWidth = 16
	rankLabel   = 12
)

// timeline draws one collective: a line per rank in order of arrival, the time
// it waited, the transfer, and how long before the last arriver it came.
func (p *printer) timeline(m *straggler.Meeting) {
	if m == nil || len(m.Members) == 0 {
		return
	}
	p.Line("")
	for _, l := range report.Wrap(meetingTitle(m), p.Columns()-2) {
		p.Line("  %s", p.Paint(report.Bold, l))
	}
	axis := newAxis(m, p.Columns()-rankLabel-toLastWidth-2)
	for i := range m.Members {
		if omitted := len(m.Members) - maxTimelineRows; omitted > 0 && i >= timelineHead && i < timelineHead+omitted {
			if i == timelineHead {
				p.Line("  %s", p.Paint(report.Dim, fmt.Sprintf("… %s between", report.Plural(int64(omitted), "rank"))))
			}
			continue
		}
		p.member(m, i, axis)
	}
	for _, l := range report.Wrap(fmt.Sprintf("%c waiting, %c transfer, from left to right %s; right: arrival before the last",
		waitMark, transferMark, report.Duration(time.Duration(axis.end-axis.start))), p.Columns()-2) {
		p.Line("  %s", p.Paint(report.Dim, l))
	}
}

func meetingTitle(m *straggler.Meeting) string {
	text := report.ShortName(m.Name)
	if m.CommID != "" {
		text += " on communicator " + report.ShortName(m.CommID)
	}
	if m.Key.Step.OK {
		text += fmt.Sprintf(", step %d", m.Key.Step.V)
	}
	text += fmt.Sprintf(", number %d: ", m.Key.Seq)
	if m.Size > 0 {
		text += fmt.Sprintf("%d of %d ranks seen", len(m.Members), m.Size)
	} else {
		text += fmt.Sprintf("%d ranks seen", len(m.Members))
	}
	return report.Clean("The collective that shows it best: " + text)
}

func (p *printer) member(m *straggler.Meeting, i int, a axis) {
	mem, last := &m.Members[i], m.Last().Enter
	label := report.PadRight(fmt.Sprintf("rank %d", mem.Rank), rankLabel)
	toLast := report.PadLeft(report.Thousands((mem.Enter-last)/int64(time.Microsecond))+" µs", toLastWidth)
	text := label + a.bar(mem.Enter, last, mem.Exit) + toLast
	if i == len(m.Members)-1 {
		text = p.Paint(report.Red, text)
	}
	p.Line("  %s", text)
}

// axis maps times to columns.
type axis struct {
	start, end int64 // Unix ns
	columns    int
}

func newAxis(m *straggler.Meeting, columns int) axis {
	a := axis{start: m.Members[0].Enter, end: m.Last().Enter, columns: columns}
	for i := range m.Members {
		a.start = min(a.start, m.Members[i].Enter)
		a.end = max(a.end, m.Members[i].Exit)
	}
	return a
}

func (a axis) column(t int64) int {
	if a.end <= a.start {
		return 0
	}
	share := float64(t-a.start) / float64(a.end-a.start)
	return min(max(int(share*float64(a.columns)+0.5), 0), a.columns)
}

// bar draws one member from its arrival to its exit. What happened occupies at
// least one column.
func (a axis) bar(enter, last, exit int64) string {
	from := min(a.column(enter), a.columns-1)
	arrived := min(max(a.column(min(last, exit)), from), a.columns)
	to := max(a.column(exit), from+1)
	mark := func(r rune, n int) string { return strings.Repeat(string(r), max(0, n)) }
	if arrived >= to && exit > last {
		arrived = to - 1
	}
	return strings.Repeat(" ", from) + mark(waitMark, arrived-from) + mark(transferMark, to-arrived) +
		strings.Repeat(" ", a.columns-to)
}
