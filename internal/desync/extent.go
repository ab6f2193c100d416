// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// reached is up to where two of those are that are the farthest, or the least far.
type reached [enoughWitnesses]furthest

// extents are what the states that tell their time say.
type extents struct {
	through, enqueued map[lane]*reached
	known             map[lane][]int64 // operations that nobody leaves before all have entered
	lists             []int            // by group: how many list it
	named             groupsByID
}

func (w *world) extent() *extents {
	e := &extents{known: w.synchronising(), through: map[lane]*reached{}, enqueued: map[lane]*reached{}, lists: make([]int, len(w.a.groups.all)), named: newGroupsByID()}
	for i, g := range w.a.groups.all {
		e.named.add(g.comm.ID, int32(i))
	}
	for i, r := range w.ranks {
		if r.view == nil || !r.view.tellsTime() {
			continue
		}
		for k := range r.view.comms {
			c := &r.view.comms[k]
			e.lists[c.group]++
			if c.inferred || !w.countsForAll(c) {
				continue
			}
			for _, f := range c.fronts {
				l := lane{c.group, f.fn}
				if f.completed != none {
					put(e.through, l, furthest{passed(e.known[l], f.completed), i}, 1)
				}
				if f.enqueued != none && r.view.counts(c, f) {
					put(e.enqueued, l, furthest{f.enqueued, i}, -1)
				}
			}
		}
	}
	return e
}

// put keeps t where it is among the greatest, or with sign -1 among the least.
func put(of map[lane]*reached, l lane, t furthest, sign int64) {
	r := of[l]
	if r == nil {
		r = &reached{}
		for i := range r {
			r[i].rank = -1
		}
		of[l] = r
	}
	for i := range r {
		if r[i].rank < 0 || sign*t.seq > sign*r[i].seq {
			r[i], t = t, r[i]
		}
	}
}

// countsForAll reports whether numbers of a communicator are those of all its members.
func (w *world) countsForAll(c *comm) bool {
	return !c.p2pShared && w.compares(c.group) && !w.a.groups.all[c.group].inferred
}

// passed is the last operation that nobody is through before all members have entered it, of
// those up to completed.
func passed(known []int64, completed int64) int64 {
	i, found := slices.BinarySearch(known, completed)
	switch {
	case found:
		return completed
	case i > 0:
		return max(known[i-1], completed-maxAhead)
	}
	return completed - maxAhead
}

// synchronising are the operations of each lane that nobody is through before all members have
// entered, as far as they are recorded, and by all who have them under such a name.
func (w *world) synchronising() map[lane][]int64 {
	names := map[lane]map[int64]bool{}
	namers := map[lane]int{}
	for _, r := range w.ranks {
		seen := map[lane]bool{}
		for o := range r.recorded() {
			l := lane{o.group, o.fn}
			if o.message() || !w.compares(o.group) {
				continue
			}
			if !seen[l] {
				seen[l] = true
				namers[l]++
			}
			if namers[l] > maxNamers {
				continue
			}
			if names[l] == nil {
				names[l] = map[int64]bool{}
			}
			together, told := names[l][o.seq]
			names[l][o.seq] = (together || !told) && model.Synchronising(w.a.sigs.all[o.sig].Name)
		}
	}
	out := map[lane][]int64{}
	for l, seqs := range names {
		for seq, together := range seqs {
			if together {
				out[l] = append(out[l], seq)
			}
		}
		slices.Sort(out[l])
	}
	return out
}
