// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// passed reports whether some members are through an operation that none can leave before
// all have entered it: those that are not through have entered it then.
func (n *node) passed() bool {
	if len(n.done) == 0 || n.message || n.group.backend == gloo {
		return false
	}
	entered := len(n.missing)+len(n.absent)+len(n.unknown) == 0
	return model.Synchronising(n.name) || n.name == "" && n.outrun || n.name == model.AllToAll && entered
}

// connect draws who waits for whom.
func (w *world) connect() {
	size := len(w.ranks) + len(w.nodes)
	w.edges, w.maybe = make([][]int32, size), make([][]int32, size)
	for r := range w.ranks {
		if w.ranks[r].held() || w.stuck[r] {
			continue // it stands still, whatever it waits for
		}
		for _, n := range w.heads[r] {
			w.edge(int32(r), w.vertex(n))
		}
	}
	for i := range w.nodes {
		w.connectNode(int32(i))
	}
	for v := range w.edges {
		w.edges[v] = compact(w.edges[v])
		w.maybe[v] = compact(w.maybe[v])
	}
}

func compact(s []int32) []int32 {
	slices.Sort(s)
	return slices.Compact(s)
}

func (w *world) edge(from, to int32) { w.edges[from] = append(w.edges[from], to) }

func (w *world) connectNode(i int32) {
	n, from := w.nodes[i], w.vertex(i)
	if n.passed() {
		w.connectPassed(n, from)
		return
	}
	// Who waits in an earlier one of the same communicator has not come to this one.
	if n.before >= 0 && !n.message {
		w.edge(from, w.vertex(n.before))
	}
	for _, r := range n.missing {
		if !w.waitsBefore(r, n) {
			w.edge(from, r)
		}
	}
	for _, r := range n.absent {
		w.edge(from, r)
	}
	for _, r := range n.unknown {
		w.edge(from, r)
	}
	for j := range n.holders {
		h := &n.holders[j]
		switch {
		case w.ranks[h.rank].held():
			w.edge(from, h.rank)
		case !h.head && n.message && h.op.receives:
			// Its sender may be through before it is received.
			w.maybe[from] = append(w.maybe[from], w.vertex(h.at))
		case !h.head:
			w.edge(from, w.vertex(h.at))
		default:
			w.alongside(i, h)
		}
	}
}

// alongside draws what an operation waits for that its member has at the front of a stream: the
// other messages of its batch, which are over together, and perhaps what was issued before on
// another stream.
func (w *world) alongside(i int32, h *holder) {
	from := w.vertex(i)
	if h.op.batch != none {
		for _, n := range w.heads[h.rank] {
			other := w.nodes[n].holds(h.rank)
			if n != i && other != nil && other.op.leads(h.op) && !w.nodes[n].ready() {
				w.edge(from, w.vertex(n))
			}
		}
	}
	if first := w.first[h.rank]; first != i && !w.sameBatch(first, h) && w.ordered(h) {
		w.maybe[from] = append(w.maybe[from], w.vertex(first))
	}
}

// ordered reports whether it is recorded which was issued first, an operation or that at the
// front of all streams of its rank.
func (w *world) ordered(h *holder) bool {
	first := w.nodes[w.first[h.rank]].holds(h.rank)
	return !h.head || first == nil || !h.op.guessed() || !first.op.guessed()
}

// ready reports whether both ends of a message are at the front of their streams, or its sender
// is through.
func (n *node) ready() bool {
	return len(n.done) > 0 || len(n.holders) == 2 && n.holders[0].head && n.holders[1].head
}

func (w *world) sameBatch(n int32, h *holder) bool {
	other := w.nodes[n].holds(h.rank)
	return other != nil && other.op.leads(h.op)
}

// connectPassed: whoever has it open still is late by itself, unless its process cannot go on
// or it stands behind another operation.
func (w *world) connectPassed(n *node, from int32) {
	for j := range n.holders {
		h := &n.holders[j]
		switch {
		case w.ranks[h.rank].held():
			w.edge(from, h.rank)
		case !h.head:
			w.edge(from, w.vertex(h.at))
		}
	}
}

// waitsBefore reports whether a rank that has not enqueued n waits in an earlier operation of
// the same communicator and function, which n follows anyway.
func (w *world) waitsBefore(r int32, n *node) bool {
	if n.message {
		return false
	}
	for at := n.before; at >= 0; at = w.nodes[at].before {
		if h := w.nodes[at].holds(r); h != nil && !w.ranks[r].held() && !w.stuck[r] {
			return true
		}
	}
	return false
}

// components are the strongly connected components of a graph: comp of each vertex.
type components struct {
	comp  []int32
	count int32
}

// tarjan finds the components of the vertices in use, edge by edge, without recursion: a
// chain of waits may be as long as there are ranks. Components are numbered in the order in
// which they are complete, so that an edge never leads to a higher number.
func tarjan(size int, out func(v int32) []int32, in func(v int32) bool) components {
	t := tarjanState{
		out: out, in: in, index: make([]int32, size), low: make([]int32, size),
		on: make([]bool, size), c: components{comp: make([]int32, size)},
	}
	for i := range t.c.comp {
		t.c.comp[i] = -1
	}
	for v := range int32(size) {
		if t.index[v] == 0 && in(v) {
			t.visit(v)
		}
	}
	return t.c
}

type tarjanState struct {
	out        func(v int32) []int32
	in         func(v int32) bool
	index, low []int32 // index: order of discovery from 1
	on         []bool
	stack      []int32
	next       int32
	c          components
}

type frame struct {
	v    int32
	edge int
}

func (t *tarjanState) enter(v int32) frame {
	t.next++
	t.index[v], t.low[v] = t.next, t.next
	t.stack = append(t.stack, v)
	t.on[v] = true
	return frame{v: v}
}

func (t *tarjanState) visit(root int32) {
	calls := []frame{t.enter(root)}
	for len(calls) > 0 {
		f := &calls[len(calls)-1]
		if to, ok := t.step(f); ok {
			calls = append(calls, t.enter(to))
			continue
		}
		v := f.v
		if t.low[v] == t.index[v] {
			t.pop(v)
		}
		calls = calls[:len(calls)-1]
		if len(calls) > 0 {
			up := calls[len(calls)-1].v
			t.low[up] = min(t.low[up], t.low[v])
		}
	}
}

// step follows the next edge of a frame; true with a vertex that is to be entered.
func (t *tarjanState) step(f *frame) (int32, bool) {
	for edges := t.out(f.v); f.edge < len(edges); {
		to := edges[f.edge]
		f.edge++
		switch {
		case !t.in(to):
		case t.index[to] == 0:
			return to, true
		case t.on[to]:
			t.low[f.v] = min(t.low[f.v], t.index[to])
		}
	}
	return 0, false
}

func (t *tarjanState) pop(root int32) {
	for {
		v := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.on[v] = false
		t.c.comp[v] = t.c.count
		if v == root {
			break
		}
	}
	t.c.count++
}

// sinks returns the vertices of each component that no edge leaves and that somebody waits
// in, or for.
func (w *world) sinks() [][]int32 {
	out := func(v int32) []int32 {
		if len(w.maybe[v]) == 0 {
			return w.edges[v]
		}
		return slices.Concat(w.edges[v], w.maybe[v])
	}
	return sinksOf(len(w.edges), out, func(v int32) bool { return true }, w.concerns())
}

// concerns tells of every vertex whether the hang has to do with it: operations that are
// waited in, and ranks that are waited for.
func (w *world) concerns() []bool {
	c := make([]bool, len(w.edges))
	for v := len(w.ranks); v < len(c); v++ {
		c[v] = true
		for _, to := range w.edges[v] {
			c[to] = true
		}
	}
	return c
}

func sinksOf(size int, out func(int32) []int32, in func(int32) bool, concerned []bool) [][]int32 {
	c := tarjan(size, out, in)
	leaves, matters := make([]bool, c.count), make([]bool, c.count)
	for v := range int32(size) {
		if !in(v) {
			continue
		}
		matters[c.comp[v]] = matters[c.comp[v]] || concerned[v]
		for _, to := range out(v) {
			if in(to) && c.comp[to] != c.comp[v] {
				leaves[c.comp[v]] = true
			}
		}
	}
	at := map[int32]int{}
	var sinks [][]int32
	for v := range int32(size) {
		if !in(v) || leaves[c.comp[v]] || !matters[c.comp[v]] {
			continue
		}
		i, ok := at[c.comp[v]]
		if !ok {
			i = len(sinks)
			at[c.comp[v]] = i
			sinks = append(sinks, nil)
		}
		sinks[i] = append(sinks[i], v)
	}
	return sinks
}
