// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// cycle is a set of vertices that wait for one another. Told of is the shortest way round in
// it: the others of the set wait for that.
func (w *world) cycle(vertices []int32, certain bool) root {
	round := w.shortest(vertices, w.edges)
	if len(round) == 0 {
		round = w.shortest(vertices, w.both())
	}
	to := root{class: model.ClassOrderCycle, cycle: round, vertices: vertices, confidence: sureCycle, ranks: compact(slices.Concat(w.turns(round)...))}
	if !certain {
		to.confidence = sureMaybe
		to.notes = append(to.notes, "all have enqueued all of it, in different orders: whether one device runs them one after the other is not recorded")
	}
	if m := w.mismatchIn(vertices); m != nil {
		return w.mismatchRoot(root{node: m.node, vertices: vertices, cycle: round}, m)
	}
	if len(round) == 0 {
		to.class, to.candidates, to.ranks = model.ClassIncompleteEvidence, w.touching(vertices), nil
		return to
	}
	lanes, messages, groups := map[lane]bool{}, []*node(nil), map[int32]bool{}
	for _, v := range round {
		if w.isRank(v) {
			continue
		}
		n := w.nodeAt(v)
		groups[n.key.group] = true
		lanes[lane{n.key.group, n.key.fn}] = true
		if n.message && len(n.missing) > 0 {
			messages = append(messages, n)
		}
		if to.node == nil || preferred(n, to.node, -1) {
			to.node = n
		}
	}
	switch {
	case len(messages) > 0:
		w.unmatched(&to, messages)
	case len(groups) == 1 && len(lanes) > 1:
		w.functions(&to)
	default:
		w.deviates(&to)
	}
	return to
}

// touching are the ranks of a set, and all ends and members that its operations wait for.
func (w *world) touching(vertices []int32) (ranks []int32) {
	for _, v := range vertices {
		if w.isRank(v) {
			ranks = append(ranks, v)
			continue
		}
		n := w.nodeAt(v)
		ranks = slices.Concat(ranks, holdersOf(n, false), n.missing, n.absent, n.unknown)
	}
	return compact(ranks)
}

// mismatchIn looks for a disagreement in any of the operations.
func (w *world) mismatchIn(vertices []int32) *mismatch {
	for _, v := range vertices {
		if w.isRank(v) || w.nodeAt(v).message {
			continue
		}
		if m := w.disagreement(w.nodeAt(v)); m != nil {
			return m
		}
	}
	return nil
}

// maxCycleStarts bounds from how many vertices a way round is looked for: the result is the
// shortest of those, which in a set of that size nobody reads more of.
const maxCycleStarts = 256

// shortest finds a shortest cycle within the vertices, breadth first from each.
func (w *world) shortest(vertices []int32, out [][]int32) []int32 {
	in := make(map[int32]bool, len(vertices))
	for _, v := range vertices {
		in[v] = true
	}
	var best []int32
	for _, start := range vertices[:min(len(vertices), maxCycleStarts)] {
		if c := w.wayRound(start, in, out); c != nil && (best == nil || len(c) < len(best)) && !w.ofOneBatch(c) {
			best = c
		}
	}
	return best
}

// ofOneBatch reports whether operations wait for one another only as messages of one rank, which end
// together: no circle, but one wait.
func (w *world) ofOneBatch(round []int32) bool {
	var ranks []int32
	for _, v := range round {
		if w.isRank(v) || !w.nodeAt(v).message {
			return false
		}
	}
	for _, by := range w.turns(round) {
		ranks = append(ranks, by...)
	}
	return len(compact(ranks)) == 1
}

// wayRound returns the shortest way from a vertex to itself.
func (w *world) wayRound(start int32, in map[int32]bool, out [][]int32) []int32 {
	from := map[int32]int32{}
	for queue := []int32{start}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		for _, to := range out[v] {
			if to == start {
				return wayTo(v, start, from)
			}
			if _, seen := from[to]; !seen && in[to] {
				from[to] = v
				queue = append(queue, to)
			}
		}
	}
	return nil
}

// wayTo is the way that was found from start to v.
func wayTo(v, start int32, from map[int32]int32) []int32 {
	way := []int32{v}
	for v != start {
		v = from[v]
		way = append(way, v)
	}
	slices.Reverse(way)
	return way
}

// both are all edges, certain or not.
func (w *world) both() [][]int32 {
	out := make([][]int32, len(w.edges))
	for v := range out {
		out[v] = w.edges[v]
		if len(w.maybe[v]) > 0 {
			out[v] = slices.Concat(w.edges[v], w.maybe[v])
		}
	}
	return out
}

// turns returns, for each operation of a cycle, the ranks by which it waits for the next one.
func (w *world) turns(round []int32) (by [][]int32) {
	for i, v := range round {
		if w.isRank(v) {
			continue
		}
		n, next := w.nodeAt(v), round[(i+1)%len(round)]
		if !w.isRank(next) {
			by = append(by, w.between(n, next))
			continue
		}
		// Any rank that has not come to it and waits in the operation after will do.
		after, ranks := round[(i+2)%len(round)], []int32{next}
		for _, r := range n.missing {
			if slices.ContainsFunc(w.heads[r], func(h int32) bool { return w.vertex(h) == after }) {
				ranks = append(ranks, r)
			}
		}
		by = append(by, compact(ranks))
	}
	return by
}

// between returns the ranks that keep an operation behind another one.
func (w *world) between(n *node, before int32) (ranks []int32) {
	for i := range n.holders {
		h := &n.holders[i]
		at := w.vertex(h.at)
		if h.head {
			at = w.vertex(w.first[h.rank])
		}
		if at == before && w.ordered(h) {
			ranks = append(ranks, h.rank)
		}
	}
	return ranks
}

// deviates: where one rank alone keeps two operations in an order, and at least three keep
// them in the other, it is the one that differs.
func (w *world) deviates(to *root) {
	var few []int32
	most := 0
	for _, by := range w.turns(to.cycle) {
		if len(by) == 1 {
			few = append(few, by[0])
		}
		most = max(most, len(by))
	}
	if few = compact(few); len(few) == 1 && most >= 3 {
		to.ranks = few
	}
}

// unmatched: one end of a message waits, and the other has gone on to what waits for it. Which
// of both is wrong is not decided.
func (w *world) unmatched(to *root, messages []*node) {
	to.class, to.ranks, to.sides = model.ClassP2PUnmatched, nil, true
	for _, n := range messages {
		to.node = n
		to.ranks = append(to.ranks, n.missing...)
		for i := range n.holders {
			to.ranks = append(to.ranks, n.holders[i].rank)
		}
	}
	to.ranks = compact(to.ranks)
}

// functions: members of one communicator wait in different functions of it. Who is in another
// than most called something else than the others.
func (w *world) functions(to *root) {
	to.class = model.ClassMismatchOp
	var most *node
	total := 0
	for _, v := range to.cycle {
		if w.isRank(v) {
			continue
		}
		n := w.nodeAt(v)
		if most == nil || len(n.holders) > len(most.holders) {
			most = n
		}
		total += len(n.holders)
	}
	to.node = most
	var all, odd []int32
	for _, v := range to.cycle {
		if w.isRank(v) {
			continue
		}
		n := w.nodeAt(v)
		for i := range n.holders {
			all = append(all, n.holders[i].rank)
			if n != most {
				odd = append(odd, n.holders[i].rank)
			}
		}
	}
	to.ranks = compact(odd)
	if !decides(len(most.holders), total-len(most.holders), w.bound(most.group)) {
		to.ranks, to.sides = compact(all), true
		return
	}
	to.vertices = to.ranks // the others wait for them
}
