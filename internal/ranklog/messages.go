// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// sureOfDead is the confidence that a rank that ended is why others wait for messages: the numbers
// of messages do not show it.
const sureOfDead = 0.75

// blameDead names the rank that ended for operations of a group with messages, which the numbers do
// not decide: the one member that ended, or the one rank of the job that ended and that no group has.
func (s *Set) blameDead(r *desync.Report, comms []*comm) {
	for i := range r.Roots {
		f := &r.Roots[i].Finding
		at := slices.IndexFunc(comms, func(c *comm) bool {
			return c.shared && !c.unnamed() && c.name == r.Roots[i].Op.Comm.ID && slices.Equal(c.members, r.Roots[i].Op.Ranks)
		})
		if f.Class != model.ClassIncompleteEvidence || at < 0 {
			continue
		}
		rank, ok := s.deadFor(comms[at], comms)
		if !ok {
			continue
		}
		f.Class, f.Severity, f.Confidence = model.ClassProcessDead, model.SeverityError, sureOfDead
		f.Action = desync.ActionOf(f.Class)
		f.Rank, f.Ranks, f.RanksCount = model.Some(rank), []int64{rank}, model.Some(int64(1))
		f.Candidates, f.CandidatesCount = nil, model.Optional[int64]{}
		f.Waiting = s.waiting(comms[at])
		f.WaitingCount = model.Some(int64(len(f.Waiting)))
		r.Verdict = desync.Hang
	}
	s.blameOthers(r, comms)
}

// waiting lists the members of a group that wait in it.
func (s *Set) waiting(c *comm) []int64 {
	return slices.DeleteFunc(slices.Clone(c.members), func(m int64) bool {
		return s.ranks[m] == nil || !slices.ContainsFunc(s.ranks[m].waits, func(w waits) bool { return w.group == c.group })
	})
}

// blameOthers adds a root for each member that ended of further such groups: of all operations that
// numbers do not decide the report has one root.
func (s *Set) blameOthers(r *desync.Report, comms []*comm) {
	for _, c := range comms {
		rank, ok := s.deadFor(c, comms)
		if !c.shared || c.unnamed() || !ok || !c.only(rank, comms) || slices.ContainsFunc(r.Roots, func(o desync.Root) bool { return o.Finding.Rank.OK && o.Finding.Rank.V == rank }) {
			continue
		}
		waiting := s.waiting(c)
		if len(waiting) == 0 {
			continue
		}
		first := &s.ranks[waiting[0]].waits[slices.IndexFunc(s.ranks[waiting[0]].waits, func(w waits) bool { return w.group == c.group })]
		op := desync.OpRef{Name: first.operation(0).Name, Comm: c.state().Comm, Ranks: c.members, Seq: first.seq}
		f := model.Finding{
			Severity: model.SeverityError, JobName: r.Job.Name, JobID: r.Job.ID, Incarnation: r.Job.Incarnation,
			Kind: model.FindingDesync, Class: model.ClassProcessDead, Cause: model.CauseUnknown,
			Confidence: sureOfDead, Action: desync.ActionOf(model.ClassProcessDead), Rank: model.Some(rank), Ranks: []int64{rank}, RanksCount: model.Some(int64(1)),
			Waiting: waiting, WaitingCount: model.Some(int64(len(waiting))), Op: op.Name, CommID: op.Comm.ID, CommName: op.Comm.Name,
		}
		finding.Once(finding.Place{Incarnation: r.Job.Incarnation, Name: fmt.Sprintf("%s %d", model.ClassProcessDead, rank)}, 0, &f)
		r.Roots = append(r.Roots, desync.Root{Finding: f, Op: op})
		r.Verdict = desync.Hang
	}
}

// only reports whether a group has a rank, or is the only one of messages that can have it.
func (c *comm) only(rank int64, comms []*comm) bool {
	return c.has(rank) || c.room(rank, comms) && !slices.ContainsFunc(comms, func(o *comm) bool {
		return o != c && o.shared && o.room(rank, comms)
	})
}

// deadFor returns the rank that ended and that a group waits for.
func (s *Set) deadFor(c *comm, comms []*comm) (rank int64, ok bool) {
	var members, strangers []int64
	for _, ranks := range [][]int64{slices.Collect(maps.Keys(s.ranks)), slices.Collect(maps.Keys(s.exits))} {
		for _, rank := range ranks {
			switch {
			case !s.ended(rank):
			case c.has(rank):
				members = append(members, rank)
			case c.admits(rank) && !slices.ContainsFunc(comms, func(o *comm) bool { return o.has(rank) }):
				strangers = append(strangers, rank)
			}
		}
	}
	if len(members) == 0 {
		members = strangers
	}
	slices.Sort(members)
	if members = slices.Compact(members); len(members) != 1 {
		return 0, false
	}
	return members[0], true
}
