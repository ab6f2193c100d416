// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func titleOfRoot(i, of int) string { return fmt.Sprintf("Root %d of %d", i+1, of) }

// root says what is at fault, who waits for it, and what the members did.
func (p *Printer) root(r *desync.Root, title string) {
	f := &r.Finding
	p.Line("%s", p.Paint(Bold, title+": "+Clean(HangPlace(f))+", "+f.Class))
	p.Optional("cause", CauseText(f))
	p.Optional("operation", rootOp(r))
	p.Optional("candidates", CandidatesText(f))
	p.Optional("who waits", WaitingText(f))
	p.Optional("one way", pathOf(r.Path))
	p.Field("confidence", fmt.Sprintf("%.2f", f.Confidence))
	for i, l := range HangEvidence(f) {
		label := ""
		if i == 0 {
			label = "evidence"
		}
		p.Field(label, l)
	}
	p.Optional("what to do", Clean(f.Action))
	p.Line("")
	p.members(r)
}

// HangPlace names what a finding of a hang is about.
func HangPlace(f *model.Finding) string {
	switch {
	case f.Rank.OK && f.Host != "":
		return fmt.Sprintf("rank %d on %s", f.Rank.V, f.Host)
	case f.Rank.OK:
		return fmt.Sprintf("rank %d", f.Rank.V)
	case len(f.Ranks) > 0:
		return SpansOf(f.Ranks, f.RanksCount)
	case len(f.Candidates) == 1 && f.CandidatesCount.Or(1) == 1:
		return fmt.Sprintf("perhaps rank %d", f.Candidates[0])
	case len(f.Candidates) > 0:
		return "one of " + Plural(f.CandidatesCount.Or(int64(len(f.Candidates))), "rank")
	case f.RanksCount.Or(0) > 0 && f.Host != "": // no rank of the job is known
		return "a process on " + f.Host
	case f.RanksCount.Or(0) > 0:
		return Thousands(f.RanksCount.V) + " processes"
	}
	return "no rank"
}

func more(listed int, count model.Optional[int64]) string {
	if rest := count.Or(0) - int64(listed); rest > 0 {
		return fmt.Sprintf(" and %s more", Thousands(rest))
	}
	return ""
}

// CauseText returns the cause of a finding of a hang; "" where it is unknown.
func CauseText(f *model.Finding) string {
	if f.Cause == model.CauseUnknown {
		return ""
	}
	return f.Cause
}

func rootOp(r *desync.Root) string {
	op := opText(&r.Op)
	if op == "" {
		return ""
	}
	text := op + " of " + commText(r.Op.Comm)
	if len(r.Op.Ranks) > 0 {
		text += ", " + SpansOf(r.Op.Ranks, model.Optional[int64]{})
	}
	return Clean(text)
}

// CandidatesText lists the ranks between which the evidence of a hang does not decide.
func CandidatesText(f *model.Finding) string {
	switch {
	case len(f.Candidates) == 0:
		return ""
	case len(f.Ranks) > 0:
		return "likeliest first: " + SpansOf(f.Candidates, f.CandidatesCount)
	case f.CandidatesCount.Or(int64(len(f.Candidates))) == 1:
		return fmt.Sprintf("rank %d; the evidence does not decide whether it is at fault", f.Candidates[0])
	}
	return "the evidence does not decide between " + SpansOf(f.Candidates, f.CandidatesCount)
}

// WaitingText says who waits for the place itself, and how many through others.
func WaitingText(f *model.Finding) string {
	var parts []string
	switch n := f.WaitingCount.Or(int64(len(f.Waiting))); {
	case n == 1 && len(f.Waiting) == 1:
		parts = append(parts, fmt.Sprintf("rank %d waits for it itself", f.Waiting[0]))
	case n == 1 && len(f.Waiting) == 0:
		parts = append(parts, "1 process waits for it itself")
	case n > 0 && len(f.Waiting) == 0:
		parts = append(parts, fmt.Sprintf("%s processes wait for it themselves", Thousands(n)))
	case n > 0:
		parts = append(parts, SpansOf(f.Waiting, f.WaitingCount)+" wait for it themselves")
	}
	if f.Through.V > 0 {
		parts = append(parts, Thousands(f.Through.V)+" more through others")
	}
	return strings.Join(parts, "; ")
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
	return Clean(strings.Join(parts, "; "))
}

// maxMembersShown bounds the rows of one root: the odd ones come first.
const maxMembersShown = 16

// whatMargin is what the columns in front of a member's operation take.
const whatMargin = 24

// members is the table of what each rank concerned did instead.
func (p *Printer) members(r *desync.Root) {
	if len(r.Members) == 0 {
		return
	}
	rows := [][]string{{"rank", "host", "state", "its operation"}}
	shown := min(len(r.Members), maxMembersShown)
	for _, m := range r.Members[:shown] {
		rows = append(rows, []string{strconv.FormatInt(m.Rank, 10), Cut(Clean(m.Host), 24), Clean(m.State), Cut(Clean(m.What), p.Columns()-whatMargin)})
	}
	p.Grid(rows)
	if rest := len(r.Members) - shown + r.MembersOmitted; rest > 0 {
		p.Line("%s", p.Paint(Dim, "and "+Plural(int64(rest), "more member")))
	}
	p.Line("")
}
