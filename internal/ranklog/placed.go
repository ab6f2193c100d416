// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// placed keeps one root of each rank that ended: that of the group that has the rank, else of one that
// can have it and in which the most ranks wait. The ranks that wait in the other groups that can have it
// wait for it, too.
func placed(roots []desync.Root, comms []*comm) (out []desync.Root) {
	best := map[int64]int{} // by rank: its root in out
	fit := map[int64]int{}
	for i := range roots {
		r := &roots[i]
		if r.Finding.Class != model.ClassProcessDead || !r.Finding.Rank.OK {
			out = append(out, *r)
			continue
		}
		rank := r.Finding.Rank.V
		now := fits(r, rank, comms)
		at, known := best[rank]
		switch {
		case !known:
			best[rank], fit[rank] = len(out), now
			out = append(out, *r)
		case now > fit[rank]:
			if fit[rank] > unfit {
				merge(r, &out[at])
			}
			out[at], fit[rank] = *r, now
		case now > unfit:
			merge(&out[at], r)
		}
	}
	return out
}

const (
	unfit = iota
	mayFit
	member
)

// fits says whether the group of a root can have a rank.
func fits(r *desync.Root, rank int64, comms []*comm) int {
	if slices.Contains(r.Op.Ranks, rank) {
		return member
	}
	at := slices.IndexFunc(comms, func(c *comm) bool {
		return c.state().Comm.ID == r.Op.Comm.ID && slices.Equal(c.members, r.Op.Ranks)
	})
	if at < 0 {
		return mayFit
	}
	if !comms[at].room(rank, comms) {
		return unfit
	}
	return mayFit
}

// room reports whether a group can have a rank beside all others: a rank is in one group of a kind, and
// so are those between it and the members that were seen.
func (c *comm) room(rank int64, comms []*comm) bool {
	if c.has(rank) || !c.admits(rank) {
		return c.has(rank)
	}
	list := slices.Clone(c.seats)
	slices.SortFunc(list, func(a, b seat) int { return cmp.Compare(a.rank, b.rank) })
	base, stride, line := straight(list)
	low, high := min(rank, list[0].rank), max(rank, list[len(list)-1].rank)
	return !slices.ContainsFunc(comms, func(o *comm) bool {
		if o == c || !c.unnamed() && (c.desc == "" || c.desc != o.desc) || c.unnamed() != o.unnamed() {
			return false
		}
		return slices.ContainsFunc(o.members, func(m int64) bool {
			return m == rank || line && m >= low && m <= high && m >= base && (m-base)%stride == 0
		})
	})
}

// merge adds the ranks that wait by another root.
func merge(to, from *desync.Root) {
	f := &to.Finding
	whole := f.WaitingCount.Or(0) <= int64(len(f.Waiting)) && from.Finding.WaitingCount.Or(0) <= int64(len(from.Finding.Waiting))
	if !whole {
		return
	}
	f.Waiting = slices.Concat(f.Waiting, from.Finding.Waiting)
	slices.Sort(f.Waiting)
	f.Waiting = slices.Compact(f.Waiting)
	f.WaitingCount = model.Some(int64(len(f.Waiting)))
	f.Waiting = f.Waiting[:min(len(f.Waiting), semconv.MaxFindingRanks)]
}
