// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/desync"
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
		f.Waiting = slices.DeleteFunc(slices.Clone(comms[at].members), func(m int64) bool {
			return s.ranks[m] == nil || !slices.ContainsFunc(s.ranks[m].waits, func(w waits) bool { return w.group == comms[at].group })
		})
		f.WaitingCount = model.Some(int64(len(f.Waiting)))
		r.Verdict = desync.Hang
	}
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
			case c.inferred && !slices.ContainsFunc(comms, func(o *comm) bool { return o.has(rank) }):
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
