// SPDX-License-Identifier: Apache-2.0

package graph

// network holds difference constraints: x[to]-x[from] <= weight for every arc. A
// constraint is satisfied or not; there is nothing between.
type network struct {
	n        int
	from, to []int32
	weight   []int64
	link     []int32 // of each arc
	off      []bool  // arcs that take no part
	end      []bool  // clocks by which paths lead only to those to whom none else does; nil: none

	work *work // what searches add to; nil where nobody asks

	outFirst, out []int32
	inFirst, in   []int32
}

func newNetwork(n int) *network { return &network{n: n} }

// add constrains x[dst]-x[src] to lo..hi.
func (w *network) add(src, dst int32, lo, hi int64, link int32) {
	if hi != noHi {
		w.arc(src, dst, hi, link)
	}
	if lo != noLo {
		w.arc(dst, src, -lo, link)
	}
}

func (w *network) arc(from, to int32, weight int64, link int32) {
	w.from, w.to = append(w.from, from), append(w.to, to)
	w.weight, w.link = append(w.weight, weight), append(w.link, link)
}

func (w *network) build() {
	w.outFirst, w.out = grouped(w.n, w.from)
	w.inFirst, w.in = grouped(w.n, w.to)
	w.off = make([]bool, len(w.from))
}

// grouped sorts arcs by their key.
func grouped(n int, key []int32) (first, arcs []int32) {
	first = make([]int32, n+1)
	for _, c := range key {
		first[c+1]++
	}
	for c := range n {
		first[c+1] += first[c]
	}
	arcs = make([]int32, len(key))
	next := append([]int32(nil), first[:n]...)
	for a, c := range key {
		arcs[next[c]] = int32(a)
		next[c]++
	}
	return first, arcs
}

func (w *network) outOf(c int32) []int32 { return w.out[w.outFirst[c]:w.outFirst[c+1]] }
func (w *network) into(c int32) []int32  { return w.in[w.inFirst[c]:w.inFirst[c+1]] }

// settleWork bounds settle to so many relaxations for each clock and arc. Near a
// solution a few do; a contradiction shows after one for each clock.
const settleWork = 16

// settle moves the potential until it satisfies every constraint, starting from
// the arcs that it violates. It reports false where that cannot be, because
// constraints contradict one another, and then fills cycle, where it is not nil,
// with the arcs of such a contradiction.
func (w *network) settle(potential []int64, cycle *[]int32) bool {
	parent := make([]int32, w.n)
	queued := make([]bool, w.n)
	var queue []int32
	for c := range parent {
		parent[c] = -1
	}
	push := func(a int32) bool {
		f, t := w.from[a], w.to[a]
		if w.off[a] || potential[t] <= potential[f]+w.weight[a] {
			return false
		}
		potential[t], parent[t] = potential[f]+w.weight[a], a
		if !queued[t] {
			queued[t] = true
			queue = append(queue, t)
		}
		return true
	}
	for a := range w.from {
		push(int32(a))
	}
	moved := 0
	for head := 0; head < len(queue); head++ {
		c := queue[head]
		queued[c] = false
		w.work.add(len(w.outOf(c)))
		for _, a := range w.outOf(c) {
			if push(a) {
				moved++
			}
		}
		if moved > w.n {
			if w.findCycle(parent, cycle) {
				return false
			}
			moved = 0
			if head > settleWork*(w.n+len(w.from)) {
				return false
			}
		}
		if head > 1<<16 && 2*head > len(queue) {
			queue, head = append([]int32(nil), queue[head+1:]...), -1
		}
	}
	return true
}

// findCycle looks for a cycle of parents: constraints that drive one another down
// for ever.
func (w *network) findCycle(parent []int32, cycle *[]int32) bool {
	mark := make([]int32, w.n)
	for c := range parent {
		at := int32(c)
		for mark[at] == 0 && parent[at] >= 0 {
			mark[at] = int32(c) + 1
			at = w.from[parent[at]]
		}
		if mark[at] != int32(c)+1 || parent[at] < 0 {
			mark[at] = max(mark[at], int32(c)+1)
			continue
		}
		if cycle != nil {
			for start := at; ; {
				*cycle = append(*cycle, parent[at])
				if at = w.from[parent[at]]; at == start {
					break
				}
			}
		}
		return true
	}
	return false
}

// distances returns the shortest path from the nearest source to every clock, or
// with back from every clock to it, noHi where there is none. potential must
// satisfy all constraints, and makes all lengths positive.
func (w *network) distances(sources []int32, potential []int64, back bool) []int64 {
	return w.paths(sources, potential, back, nil)
}

// paths is distances, and fills via, where it is not nil, with the arc by which each
// clock's path ends.
func (w *network) paths(sources []int32, potential []int64, back bool, via []int32) []int64 {
	dist := filled(w.n, noHi)
	var h heap
	for _, s := range sources {
		dist[s] = 0
		h.push(entry{0, s})
	}
	w.search(&h, dist, potential, back, via, nil)
	return dist
}

// distancesTo is distances from one source, ended once so many clocks are known
// of which wanted holds. Others may then be too long.
func (w *network) distancesTo(source int32, potential []int64, count int, wanted func(c int32) bool) []int64 {
	dist := filled(w.n, noHi)
	dist[source] = 0
	h := heap{{0, source}}
	w.search(&h, dist, potential, false, nil, func(c int32) bool {
		if wanted(c) {
			count--
		}
		return count <= 0
	})
	return dist
}

// search runs Dijkstra's algorithm. dist holds true lengths; the heap orders by
// what the potential makes of them, which the sources must have in common, so
// that there is one source in each component. until may end it early.
func (w *network) search(h *heap, dist, potential []int64, back bool, via []int32, until func(c int32) bool) {
	done := make([]bool, w.n)
	var ends []entry
	for len(*h)+len(ends) > 0 {
		if len(*h) == 0 {
			for _, e := range ends {
				w.lead(e, h, dist, potential, back, via, done)
			}
			ends = nil
			continue
		}
		e := h.pop()
		c := e.clock
		if done[c] {
			continue
		}
		done[c] = true
		if until != nil && until(c) {
			return
		}
		if w.ends(c) {
			ends = append(ends, e)
			continue
		}
		w.lead(e, h, dist, potential, back, via, done)
	}
}

// lead goes on from a clock that is known.
func (w *network) lead(e entry, h *heap, dist, potential []int64, back bool, via []int32, done []bool) {
	c := e.clock
	arcs := w.outOf(c)
	if back {
		arcs = w.into(c)
	}
	w.work.add(searchCosts * len(arcs))
	for _, a := range arcs {
		if w.off[a] {
			continue
		}
		o, length := w.to[a], w.weight[a]+potential[c]-potential[w.to[a]]
		if back {
			o = w.from[a]
			length = w.weight[a] + potential[o] - potential[c]
		}
		if d := dist[c] + w.weight[a]; !done[o] && d < dist[o] {
			dist[o] = d
			if via != nil {
				via[o] = a
			}
			h.push(entry{e.length + length, o})
		}
	}
}

// ends reports whether paths lead on from a clock only where nothing else does.
func (w *network) ends(c int32) bool { return len(w.end) > 0 && w.end[c] }

// entry is a clock in the heap, by its length.
type entry struct {
	length int64
	clock  int32
}

// heap is a binary heap of entries, shortest first.
type heap []entry

func (h *heap) push(e entry) {
	*h = append(*h, e)
	s := *h
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if s[up].length <= s[i].length {
			return
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
}

func (h *heap) pop() entry {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < last && s[c].length < s[least].length {
				least = c
			}
		}
		if least == i {
			return top
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}
