// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report"
)

func titleOfRoot(i, of int) string { return fmt.Sprintf("Root %d of %d", i+1, of) }

// root writes the operation at fault, the ranks that wait for it, and the members' states.
func (p *printer) root(r *desync.Root, title string) {
	f := &r.Finding
	p.Line("%s", p.Paint(report.Bold, title+": "+report.Clean(report.HangPlace(f))+", "+f.Class))
	p.Optional("cause", report.CauseText(f))
	p.Optional("operation", rootOp(r))
	p.Optional("candidates", report.CandidatesText(f))
	p.Optional("who waits", report.WaitingText(f))
	p.Optional("one way", pathOf(r.Path))
	p.Field("confidence", fmt.Sprintf("%.2f", f.Confidence))
	for i, l := range report.HangEvidence(f) {
		label := ""
		if i == 0 {
			label = "evidence"
		}
		p.Field(label, l)
	}
	p.Optional("what to do", report.Clean(f.Action))
	p.Line("")
	p.members(r)
}

func rootOp(r *desync.Root) string {
	op := opText(&r.Op)
	if op == "" {
		return ""
	}
	text := op + " of " + commText(r.Op.Comm)
	if len(r.Op.Ranks) > 0 {
		text += ", " + report.SpansOf(r.Op.Ranks, model.Optional[int64]{})
	}
	return report.Clean(text)
}

// pathOf tells how one that is far away comes to wait for the root.
func pathOf(path []desync.Hop) string {
	var parts []string
	for _, h := range path {
		text := fmt.Sprintf("rank %d is in %s", h.Rank, opText(&h.Op))
		if h.Why != "" {
			text += ", " + h.Why
		}
		parts = append(parts, text)
	}
	return report.Clean(strings.Join(parts, "; "))
}

// maxMembersShown bounds the rows of one root: the odd ones come first.
const maxMembersShown = 16

// whatMargin is what the columns in front of a member's operation take.
const whatMargin = 24

// members is the table of what each rank concerned did instead.
func (p *printer) members(r *desync.Root) {
	if len(r.Members) == 0 {
		return
	}
	rows := [][]string{{"rank", "host", "state", "its operation"}}
	shown := min(len(r.Members), maxMembersShown)
	for _, m := range r.Members[:shown] {
		rows = append(rows, []string{strconv.FormatInt(m.Rank, 10), report.Cut(report.Clean(m.Host), 24), report.Clean(m.State), report.Cut(report.Clean(m.What), p.Columns()-whatMargin)})
	}
	p.Grid(rows)
	if rest := len(r.Members) - shown + r.MembersOmitted; rest > 0 {
		p.Line("%s", p.Paint(report.Dim, "and "+report.Plural(int64(rest), "more member")))
	}
	p.Line("")
}
