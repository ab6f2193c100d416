// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// untimedStarts reports whether a state has operations that are over, and says of none that it
// started: most sources never do, so that what is not seen to have started may run all the same.
func untimedStarts(s *model.RankState) bool {
	over := slices.ContainsFunc(s.Ops, func(o model.StateOp) bool { return o.Done })
	return over && !slices.ContainsFunc(s.Ops, func(o model.StateOp) bool { return o.Started }) &&
		!slices.ContainsFunc(s.Comms, func(c model.CommState) bool {
			return slices.ContainsFunc(c.Frontiers, func(f model.Frontier) bool { return f.Started.Or(-1) > 0 })
		})
}

// unstarted returns the ranks whose devices have not started an operation that the others have: what
// keeps their streams busy is at fault. They are no more than those.
func (w *world) unstarted(n *node) (ranks []int32) {
	if n.message || len(n.done) > 0 {
		return nil
	}
	started := 0
	for i := range n.holders {
		h := &n.holders[i]
		switch {
		case h.op.started:
			started++
		case !h.head, h.op.guessed(), w.ranks[h.rank].view.untimed:
			return nil
		default:
			ranks = append(ranks, h.rank)
		}
	}
	if started == 0 || len(ranks) > started {
		return nil
	}
	return ranks
}
