// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"slices"
)

// divided remembers a cohort of which half or more is slower than the rest. The noise between
// its ranks is as large as what divides them then, and the slower may be its median: each rank
// by itself looks like chance, or like its peers, which is no health. Nor has all of such a
// cohort more to do: what a whole cohort has, the faster ones have, too.
func (t *trial) divided() {
	of := map[cohortKey][]*standing{}
	for i := range t.ranks {
		if s := &t.ranks[i]; s.m.cohort != (cohortKey{}) {
			of[s.m.cohort] = append(of[s.m.cohort], s)
		}
	}
	for _, ranks := range of {
		slices.SortFunc(ranks, func(a, b *standing) int {
			return cmp.Or(cmp.Compare(a.typical, b.typical), cmp.Compare(a.m.seat.Rank, b.m.seat.Rank))
		})
		from, ok := cleft(ranks)
		if !ok {
			continue
		}
		faster, slower := ranks[0], ranks[from:]
		worst := slower[len(slower)-1]
		// The median that a rank is compared with is of either group.
		share := max(worst.typical, -faster.typical)
		if share < t.cfg.MinExcessShare || 2*len(slower) < len(ranks) || float64(len(slower)) > nodeShare*float64(len(ranks)) ||
			slices.ContainsFunc(slower, func(s *standing) bool { return s.named }) {
			continue
		}
		for _, s := range slower {
			s.divided = true
		}
		if a := t.abstained; a != nil && (a.Share > share || a.Share == share && a.Rank <= worst.m.seat.Rank) {
			continue
		}
		t.abstained = &Abstention{
			Rank: worst.m.seat.Rank, Ranks: seats(slower), Class: t.classOf(worst, 0, len(t.frames)), Gate: gateHalf,
			Got: float64(len(slower)) / float64(len(ranks)), Want: 0.5, Share: share, Chance: 1,
			Seconds: max(worst.typical*worst.level, -faster.typical*faster.level),
		}
	}
}

// cleft returns where ranks in order fall into two groups: these differ by more than ranks do
// within either, and each from step to step.
func cleft(ranks []*standing) (from int, ok bool) {
	gap := 0.0
	for i := 1; i < len(ranks); i++ {
		if d := ranks[i].typical - ranks[i-1].typical; d > gap {
			from, gap = i, d
		}
	}
	if from == 0 {
		return 0, false
	}
	last := len(ranks) - 1
	within := max(ranks[from-1].typical-ranks[0].typical, ranks[last].typical-ranks[from].typical)
	for _, s := range ranks {
		within = max(within, s.sigma)
	}
	return from, gap > within
}

func seats(of []*standing) (out []int64) {
	for _, s := range of {
		out = append(out, s.m.seat.Rank)
	}
	slices.Sort(out)
	return out
}
