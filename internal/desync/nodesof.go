// SPDX-License-Identifier: Apache-2.0

package desync

// nodesOf returns the nodes that concern a rank, ascending: it is in them, has not come to them, has no
// state, or does not tell. Thousands of ranks are asked for theirs.
func (w *world) nodesOf(v int32) []int32 {
	if w.concernFrom == nil {
		w.addConcerns()
	}
	return w.concernedIn[w.concernFrom[v]:w.concernFrom[v+1]]
}

// addConcerns lists the nodes of all ranks, one behind the other.
func (w *world) addConcerns() {
	from := make([]int32, len(w.ranks)+1)
	w.eachConcern(func(v, _ int32) { from[v+1]++ })
	for v := range w.ranks {
		from[v+1] += from[v]
	}
	w.concernedIn, w.concernFrom = make([]int32, from[len(w.ranks)]), from
	next := append([]int32(nil), from[:len(w.ranks)]...)
	w.eachConcern(func(v, node int32) {
		w.concernedIn[next[v]] = node
		next[v]++
	})
}

// eachConcern calls do once for each rank of each node, in the order of the nodes.
func (w *world) eachConcern(do func(v, node int32)) {
	seen := make([]int32, len(w.ranks)) // the node of the last call + 1
	for i, n := range w.nodes {
		note := func(v int32) {
			if seen[v] != int32(i+1) {
				seen[v] = int32(i + 1)
				do(v, int32(i))
			}
		}
		for j := range n.holders {
			note(n.holders[j].rank)
		}
		for _, list := range [][]int32{n.missing, n.absent, n.unknown} {
			for _, v := range list {
				note(v)
			}
		}
	}
}
