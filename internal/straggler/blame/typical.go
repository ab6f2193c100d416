// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// quantity is what of an operation is compared with peers.
type quantity uint8

const (
	duration quantity = iota
	hostGap
	restGap
)

// typicals are values of peers, found when they are asked for: a walk passes few of a
// step's places.
type typicals struct {
	at      []int32 // of each slot, where its nodes begin in nodes
	nodes   []int32
	next    []int32           // scratch of what sorts
	found   []int64           // room for values
	byPlace map[Place][]int32 // slots
	values  map[valueKey][]int64
	spreads map[spreadKey]*spread
	byAlike map[Place][]int32 // slots
	served  map[purpose]*served
	roles   map[uint64]int // ranks of each
	byClass []int32        // meetings
	// Classes have numbers; the meetings of the n-th are those of byClass from classAt[n] on.
	classNumbers map[uint64]int32
	classAt      []int32
	classes      map[uint64][]int64 // transfers of meetings
	looked       int                // operations and meetings looked at for these
}

type valueKey struct {
	slot int32
	what quantity
}

type spreadKey struct {
	place Place
	what  quantity
}

// spread is what each rank that was in a place typically took there.
type spread struct {
	ranks   []int32 // in order
	medians []int64 // of these
	sorted  []int64 // medians in order
}

// index sorts the nodes by slot.
func (g *Graph) index() {
	t := &g.typ
	if len(t.at) > 0 {
		return
	}
	t.at = resized(t.at, len(g.slots.keys)+1)
	clear(t.at)
	for i := range g.nodes {
		t.at[g.nodes[i].slot+1]++
	}
	for s := 1; s < len(t.at); s++ {
		t.at[s] += t.at[s-1]
	}
	t.nodes = resized(t.nodes, len(g.nodes))
	t.next = append(t.next[:0], t.at...)
	for i := range g.nodes {
		s := g.nodes[i].slot
		t.nodes[t.next[s]] = int32(i)
		t.next[s]++
	}
	if t.values == nil {
		t.values, t.spreads, t.classes = map[valueKey][]int64{}, map[spreadKey]*spread{}, map[uint64][]int64{}
	}
}

// emptied returns none, in the room of these.
func (t *typicals) emptied() typicals {
	clear(t.values)
	clear(t.spreads)
	clear(t.classes)
	clear(t.classNumbers)
	return typicals{
		classNumbers: t.classNumbers, classAt: t.classAt[:0],
		at: t.at[:0], nodes: t.nodes[:0], next: t.next[:0], found: t.found[:0], values: t.values, spreads: t.spreads, classes: t.classes,
	}
}

// room returns room for so many values.
func (t *typicals) room(n int) []int64 {
	if len(t.found)+n > cap(t.found) {
		t.found = make([]int64, 0, max(n, 2*cap(t.found), leastRoom))
	}
	t.found = t.found[:len(t.found)+n]
	return t.found[len(t.found)-n : len(t.found)-n : len(t.found)]
}

const leastRoom = 1024

// measure returns a quantity of a node.
func (g *Graph) measure(i int32, what quantity) int64 {
	n := &g.nodes[i]
	g.typ.looked++
	switch what {
	case hostGap:
		return g.gapOf(n).host
	case restGap:
		return g.gapOf(n).rest
	}
	return n.stay()
}

// typical returns the median of the node's peers, without its own value: ranks of its
// role in the same place of the program; where there is none, any operation of the same
// place on another rank. Where most of the role do the same by another kernel it is these.
// False where nobody else did it.
func (g *Graph) typical(i int32, what quantity) (int64, bool) {
	g.index()
	n := &g.nodes[i]
	own := g.measure(i, what)
	v := g.peers(n.slot, what)
	if what == duration && 2*len(v) < g.roleSize(g.ranks[n.rank].Role) {
		if x, ok := g.instead(i); ok {
			return x, true
		}
	}
	if len(v) > 1 {
		return stats.MedianWithout(v, own), true
	}
	return g.elsewhere(i, what)
}

func (g *Graph) peers(slot int32, what quantity) []int64 {
	k := valueKey{slot: slot, what: what}
	v, ok := g.typ.values[k]
	if !ok {
		of := g.typ.nodes[g.typ.at[slot]:g.typ.at[slot+1]]
		v = g.typ.room(len(of))
		for _, i := range of {
			v = append(v, g.measure(i, what))
		}
		slices.Sort(v)
		g.typ.values[k] = v
	}
	return v
}

// elsewhere returns the median over the same place on all other ranks. Each of them
// counts with its own median: who did it more often has no more votes.
func (g *Graph) elsewhere(i int32, what quantity) (int64, bool) {
	n := &g.nodes[i]
	if n.place == endPlace {
		return 0, false
	}
	k := spreadKey{n.place, what}
	s := g.typ.spreads[k]
	if s == nil {
		s = g.spread(n.place, what)
		g.typ.spreads[k] = s
	}
	at, _ := slices.BinarySearch(s.ranks, n.rank)
	if len(s.sorted) < 2 {
		return 0, false
	}
	return stats.MedianWithout(s.sorted, s.medians[at]), true
}

// spread measures the place on all ranks that were there.
func (g *Graph) spread(p Place, what quantity) *spread {
	t := &g.typ
	if t.byPlace == nil {
		t.byPlace = map[Place][]int32{}
		for s, k := range g.slots.keys {
			t.byPlace[k.place] = append(t.byPlace[k.place], int32(s))
		}
	}
	var nodes []int32
	for _, s := range t.byPlace[p] {
		nodes = append(nodes, t.nodes[t.at[s]:t.at[s+1]]...)
	}
	slices.SortStableFunc(nodes, func(a, b int32) int { return cmp.Compare(g.nodes[a].rank, g.nodes[b].rank) })
	out := &spread{}
	var v []int64
	for k, i := range nodes {
		v = append(v, g.measure(i, what))
		if rank := g.nodes[i].rank; k == len(nodes)-1 || g.nodes[nodes[k+1]].rank != rank {
			slices.Sort(v)
			out.ranks, out.medians = append(out.ranks, rank), append(out.medians, stats.MedianMidpoint(v))
			v = v[:0]
		}
	}
	out.sorted = slices.Clone(out.medians)
	slices.Sort(out.sorted)
	return out
}

// minTransfers is of how many other meetings the median of transfers is taken.
const minTransfers = 2

// typicalTransfer returns the median of the other meetings of the class.
func (g *Graph) typicalTransfer(m *meet) (int64, bool) {
	g.index()
	v, ok := g.typ.classes[m.class]
	if !ok {
		for _, k := range g.ofClass(m.class) {
			g.typ.looked++
			v = append(v, g.transfer(&g.meets[k]))
		}
		slices.Sort(v)
		g.typ.classes[m.class] = v
	}
	if len(v) <= minTransfers {
		return 0, false
	}
	return stats.MedianWithout(v, g.transfer(m)), true
}

// ofClass returns the meetings of a class in which somebody was waited for.
func (g *Graph) ofClass(class uint64) []int32 {
	t := &g.typ
	if t.byClass == nil {
		g.indexClasses()
	}
	n, ok := t.classNumbers[class]
	if !ok {
		return nil
	}
	return t.byClass[t.classAt[n]:t.classAt[n+1]]
}

// indexClasses sorts the meetings by class.
func (g *Graph) indexClasses() {
	t := &g.typ
	if t.classNumbers == nil {
		t.classNumbers = map[uint64]int32{}
	}
	t.classAt = append(t.classAt[:0], 0)
	number := make([]int32, len(g.meets))
	counted := 0
	for k := range g.meets {
		t.looked++
		m := &g.meets[k]
		if m.rule == Nobody {
			continue
		}
		n, ok := t.classNumbers[m.class]
		if !ok {
			n = int32(len(t.classAt)) - 1
			t.classNumbers[m.class] = n
			t.classAt = append(t.classAt, 0)
		}
		number[k] = n
		t.classAt[n+1]++
		counted++
	}
	for n := 1; n < len(t.classAt); n++ {
		t.classAt[n] += t.classAt[n-1]
	}
	t.byClass = make([]int32, counted)
	t.next = append(t.next[:0], t.classAt...)
	for k := range g.meets {
		if g.meets[k].rule != Nobody {
			t.byClass[t.next[number[k]]] = int32(k)
			t.next[number[k]]++
		}
	}
}

// transfer returns how long the meeting took after the one that was waited for had
// come. Where all wait for all, that is how long that one stayed, on its own clock.
func (g *Graph) transfer(m *meet) int64 {
	last := &g.nodes[m.nodes[m.last]]
	if m.rule == All {
		return last.stay()
	}
	longest := int64(0)
	for p, i := range m.nodes {
		if n := &g.nodes[i]; int32(p) != m.last {
			longest = max(longest, n.end-max(n.start, last.start))
		}
	}
	return longest
}
