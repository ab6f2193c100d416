// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

func number(n int64) string { return strconv.FormatInt(n, 10) }

// say makes a root what is told of it.
func (w *world) say(r *root, by *reach, at int64) Root {
	out := Root{Finding: w.finding(r, by, at)}
	if r.node != nil {
		out.Op = w.ref(r.node, r.seq())
		out.Members, out.MembersOmitted = w.members(r)
	}
	out.Path = w.path(by)
	return out
}

func (r *root) seq() int64 {
	if r.mismatch != nil {
		return r.mismatch.seq
	}
	if r.node != nil {
		return r.node.key.seq
	}
	return 0
}

func (w *world) finding(r *root, by *reach, at int64) model.Finding {
	j := w.a.job
	f := model.Finding{
		Severity: model.SeverityError, JobName: j.Name, JobID: j.ID, Incarnation: j.Incarnation,
		Kind: model.FindingDesync, Class: r.class, Cause: r.cause,
		Confidence: w.sure(r), Action: w.action(r), Through: model.Some(int64(len(by.all) - len(by.direct))),
	}
	if f.Cause == "" {
		f.Cause = model.CauseUnknown
	}
	f.Ranks, f.RanksCount = w.list(r.ranks)
	if len(r.ranks) == 1 && !r.sides {
		who := w.ranks[r.ranks[0]]
		f.Rank, f.Host, f.HWID = model.Some(who.id), who.host, who.hwid
	}
	f.Candidates, f.CandidatesCount = w.candidates(r)
	f.Waiting, f.WaitingCount = w.list(by.direct)
	place := r.class
	if n := r.node; n != nil {
		f.Op, f.CommID, f.CommName = n.opText(r.seq()), n.group.comm.ID, n.group.comm.Name
		if len(r.ranks) == 0 {
			place += " " + f.CommID + n.group.comm.Digest
		}
		f.Start = n.since()
		if f.Start == 0 && r.waited != nil {
			f.Start = r.waited.since()
		}
		if n.message && len(n.holders) == 1 && len(r.ranks) == 1 {
			f.Peer = model.Some(w.ranks[n.holders[0].rank].id)
		}
	}
	if wit := r.witness; wit != nil {
		f.Link, f.Host = wit.Link, wit.Host
	}
	finding.Once(finding.Place{Incarnation: j.Incarnation, Name: place + w.numbers(r.ranks)}, 0, &f)
	f.Time = max(at, w.latest(), f.Start)
	f.Stack = w.stack(r)
	f.Evidence = w.evidence(r, by)
	return f
}

// numbers writes ranks out.
func (w *world) numbers(ranks []int32) string {
	var s strings.Builder
	for _, v := range ranks {
		s.WriteString(" " + number(w.ranks[v].id))
	}
	return s.String()
}

// since is when the first of those who wait in it enqueued it; 0 where nobody says.
func (n *node) since() (ns int64) {
	for i := range n.holders {
		if c := n.holders[i].op.created; c > 0 && (ns == 0 || c < ns) {
			ns = c
		}
	}
	return ns
}

func (w *world) latest() (ns int64) {
	for _, r := range w.ranks {
		if r.view != nil {
			ns = max(ns, r.view.time, r.view.lastEnqueue)
		}
	}
	return ns
}

// list renders ranks, at most as many as a finding lists.
func (w *world) list(ranks []int32) (ids []int64, count model.Optional[int64]) {
	for _, r := range ranks[:min(len(ranks), semconv.MaxFindingRanks)] {
		ids = append(ids, w.ranks[r].id)
	}
	if len(ranks) > 0 {
		count = model.Some(int64(len(ranks)))
	}
	return ids, count
}

// stack is the call stack of what the first rank at fault did last, or of who waits where
// nobody is.
func (w *world) stack(r *root) string {
	for _, v := range slices.Concat(r.ranks, r.candidates) {
		if s := w.lastStack(v, r.node); s != "" {
			return s
		}
	}
	if r.node != nil {
		for i := range r.node.holders {
			h := &r.node.holders[i]
			if s := w.ranks[h.rank].view.stackOf(h.op); s != "" {
				return s
			}
		}
	}
	return ""
}

// lastStack is that of the operation of n where the rank has it open, else where its host is, or
// was when it called its newest one.
func (w *world) lastStack(v int32, n *node) string {
	view := w.ranks[v].view
	if view == nil {
		return ""
	}
	if n != nil {
		if h := n.holds(v); h != nil {
			return view.stackOf(h.op)
		}
	}
	if view.host != "" {
		return view.host
	}
	newest := newestOf(view)
	if newest == nil {
		return ""
	}
	return view.stackOf(newest)
}

func newestOf(v *view) *op {
	var newest *op
	for _, list := range [][]op{v.open, v.done} {
		for i := range list {
			if newest == nil || list[i].order > newest.order {
				newest = &list[i]
			}
		}
	}
	return newest
}

func (v *view) stackOf(o *op) string {
	if o.stack < 1 || int(o.stack) > len(v.stacks) {
		return ""
	}
	return v.stacks[o.stack-1]
}

func (w *world) evidence(r *root, by *reach) *evidence.Hang {
	e := evidence.Hang{World: w.a.job.WorldSize.Or(0), Lag: r.lag, Sent: r.in, Received: r.out, Notes: slices.Clone(r.notes)}
	seen, victims := 0, len(by.all)
	for _, x := range w.ranks {
		if x.view != nil {
			seen++
		} else {
			e.Absent++
		}
	}
	e.Ranks, e.Victims = &seen, &victims
	if n := r.node; n != nil {
		e.Members, e.Joined, e.Done = len(n.group.members), len(n.holders), len(n.done)
		e.Missing, e.Unknown, e.Inferred = len(n.missing), len(n.absent)+len(n.unknown), n.group.inferred
	}
	if r.unstarted {
		e.Idle = len(r.ranks)
	}
	if m := r.mismatch; m != nil {
		e.Want, e.Got = m.want, m.got
	}
	if r.witness != nil {
		e.Witness = r.witness.What
	}
	e.Order = w.order(r)
	switch {
	case w.timed():
	case w.a.doubt.Hung:
		e.Notes = append(e.Notes, "no state says when it was taken: that the job stood still is taken from --hung")
	default:
		e.Notes = append(e.Notes, "no state says when it was taken: that the job stood still is taken from its being there")
	}
	return &e
}

// momentary are the classes that a job which runs shows, too, for a moment: that it stands
// still is what they rest on.
var momentary = []string{
	model.ClassNotScheduled, model.ClassStalledOp, model.ClassCompletionLag, model.ClassNetwork, model.ClassP2PUnmatched, model.ClassInitIncomplete,
}

// sure is how sure a root is told: less where no state says how old what is open was.
func (w *world) sure(r *root) float64 {
	switch {
	case w.timed() || !w.passes(r.class):
		return r.confidence
	case w.a.doubt.Hung && slices.Contains(momentary, r.class):
		return min(r.confidence, sureOne)
	}
	return r.confidence * w.discount()
}

// passes reports whether a job that runs shows a class, too: of copies without times also a cycle,
// as their states are of several instants.
func (w *world) passes(class string) bool {
	return slices.Contains(momentary, class) || class == model.ClassOrderCycle && w.timesLost() != ""
}

// untimed is what is left of a confidence where the states may be of a job that runs: with
// two pieces of evidence, about what one that something unrecorded could explain has.
const untimed = 2.0 / 3

// maxOrder bounds the hops of a cycle that are spelled out.
const maxOrder = 16

// order spells a cycle out: who is in what, before what.
func (w *world) order(r *root) (out []string) {
	for _, v := range r.cycle {
		if w.isRank(v) {
			continue
		}
		n := w.nodeAt(v)
		if len(out) >= maxOrder {
			return append(out, "...")
		}
		ids, count := w.list(holdersOf(n, true))
		out = append(out, fmt.Sprintf("%s of %s: entered by %v (%d)", n.opText(n.key.seq), n.group.label(), ids, count.Or(0)))
	}
	return out
}

func holdersOf(n *node, head bool) (out []int32) {
	for i := range n.holders {
		if n.holders[i].head || !head {
			out = append(out, n.holders[i].rank)
		}
	}
	return out
}
