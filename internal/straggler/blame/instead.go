// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// purpose is what ranks of a role do alike, by whatever kernel.
type purpose struct {
	role  uint64
	alike Place
}

// served is what each rank took for a purpose.
type served struct {
	ranks  []servedRank // in order
	times  []int64      // in order of time
	counts []int64
}

type servedRank struct {
	rank      int32
	count     int64
	time, odd int64 // odd: in places where fewer than half of the role's ranks were
}

// instead returns what the node would take by its peers' kernel, where most of them do not
// run the node's: what the rank takes longer for the purpose lies in what they do not run.
// False where it does it more or less often than they do, so that it is other work.
func (g *Graph) instead(i int32) (int64, bool) {
	n := &g.nodes[i]
	if g.opt.Alike == nil || n.kind != Compute || n.place == endPlace {
		return 0, false
	}
	alike := g.opt.Alike(n.place)
	s := g.served(alike)[purpose{g.ranks[n.rank].Role, alike}]
	if s == nil {
		return 0, false
	}
	at, ok := slices.BinarySearchFunc(s.ranks, n.rank, func(r servedRank, rank int32) int { return int(r.rank - rank) })
	if !ok || len(s.ranks) < 2 {
		return 0, false
	}
	own := &s.ranks[at]
	if own.odd == 0 || own.count != stats.MedianWithout(s.counts, own.count) {
		return 0, false
	}
	over := min(own.odd, own.time-stats.MedianWithout(s.times, own.time))
	return n.stay() - int64(float64(n.stay())*float64(over)/float64(own.odd)), true
}

// served returns what served what is alike, by role.
func (g *Graph) served(alike Place) map[purpose]*served {
	t := &g.typ
	if t.byAlike == nil {
		t.served, t.byAlike = map[purpose]*served{}, map[Place][]int32{}
		for slot, k := range g.slots.keys {
			if k.place != endPlace {
				a := g.opt.Alike(k.place)
				t.byAlike[a] = append(t.byAlike[a], int32(slot))
			}
		}
	}
	if slots := t.byAlike[alike]; slots != nil {
		t.byAlike[alike] = nil
		g.serve(alike, slots)
	}
	return t.served
}

// serve measures what is alike on all ranks.
func (g *Graph) serve(alike Place, slots []int32) {
	t := &g.typ
	at := map[purpose]int{} // by role and place, on how many ranks
	for _, slot := range slots {
		k := purpose{g.slots.keys[slot].role, g.slots.keys[slot].place}
		at[k] = max(at[k], int(t.at[slot+1]-t.at[slot]))
	}
	ranks := map[int32]*servedRank{}
	for _, slot := range slots {
		k := &g.slots.keys[slot]
		odd := 2*at[purpose{k.role, k.place}] < g.roleSize(k.role)
		for _, i := range t.nodes[t.at[slot]:t.at[slot+1]] {
			t.looked++
			n := &g.nodes[i]
			if n.kind != Compute {
				continue
			}
			r := ranks[n.rank]
			if r == nil {
				r = &servedRank{rank: n.rank}
				ranks[n.rank] = r
			}
			r.count++
			r.time += n.stay()
			if odd {
				r.odd += n.stay()
			}
		}
	}
	var roles []*served
	for _, rank := range slices.Sorted(maps.Keys(ranks)) {
		p := purpose{g.ranks[rank].Role, alike}
		s := t.served[p]
		if s == nil {
			s = &served{}
			t.served[p] = s
			roles = append(roles, s)
		}
		r := ranks[rank]
		s.ranks, s.times, s.counts = append(s.ranks, *r), append(s.times, r.time), append(s.counts, r.count)
	}
	for _, s := range roles {
		slices.Sort(s.times)
		slices.Sort(s.counts)
	}
}

// roleSize returns how many ranks have the role.
func (g *Graph) roleSize(role uint64) int {
	if g.typ.roles == nil {
		g.typ.roles = map[uint64]int{}
		for k := range g.ranks {
			g.typ.roles[g.ranks[k].Role]++
		}
	}
	return g.typ.roles[role]
}
