// SPDX-License-Identifier: Apache-2.0

package blame

// byRank seeks an order in which each rank's operations come as they began, which most
// often is one: what an operation waits for began before it did. Each rank goes on until it
// waits for another one.
type byRank struct {
	g       *Graph
	p       *plan
	placed  []bool
	missing []int32 // of each meeting of all, members that have not begun
	next    []int32 // of each rank, its next operation
	waiter  []int32 // of each item, one of the ranks that wait for it, or none
	also    []int32 // of each rank, another that waits for the same, or none
	queue   []int32 // ranks that may go on
	waits   []int32
	looked  int // members of meetings that were looked at
}

// order fills the plan; false where operations wait for some of their own rank that began
// later, or in a circle.
func (b *byRank) order(g *Graph, p *plan, items, total int) bool {
	b.g, b.p, b.looked = g, p, 0
	b.placed, b.waiter, b.missing = resized(b.placed, items), resized(b.waiter, items), resized(b.missing, len(g.meets))
	clear(b.placed)
	for i := range b.waiter {
		b.waiter[i] = none
	}
	for k := range g.meets {
		b.missing[k] = int32(len(g.meets[k].nodes))
	}
	b.next, b.also, b.queue = append(b.next[:0], g.first[:len(g.ranks)]...), resized(b.also, len(g.ranks)), b.queue[:0]
	for r := range g.ranks {
		b.queue = append(b.queue, int32(r))
	}
	for len(b.queue) > 0 {
		r := b.queue[len(b.queue)-1]
		b.queue = b.queue[:len(b.queue)-1]
		b.goOn(r)
	}
	return len(p.order) == total
}

// goOn places the rank's operations up to one that has to wait.
func (b *byRank) goOn(r int32) {
	for ; b.next[r] < b.g.first[r+1]; b.next[r]++ {
		i := b.next[r]
		b.waits = b.g.nodeWaits(i, b.waits[:0])
		for _, o := range b.waits {
			if !b.placed[o] {
				b.also[r], b.waiter[o] = b.waiter[o], r
				return
			}
		}
		b.place(i)
		b.met(i)
	}
}

// met places what follows from the begin of a node in its meeting.
func (b *byRank) met(i int32) {
	g := b.g
	n := int32(len(g.nodes))
	k := g.nodes[i].meet
	if k == none {
		return
	}
	m := &g.meets[k]
	switch m.rule {
	case Nobody:
	case All:
		if b.missing[k]--; b.missing[k] == 0 {
			b.place(2*n + k)
		}
	default:
		if p := g.partner(m, i); p != none && b.placed[p] {
			b.place(n + i)
		}
		if m.rule == Root && i != m.nodes[m.root] {
			return
		}
		b.looked += len(m.nodes)
		for _, o := range m.nodes {
			if o != i && b.placed[o] && g.partner(m, o) == i {
				b.place(n + o)
			}
		}
	}
}

// place adds an item, and lets those go on who wait for it.
func (b *byRank) place(item int32) {
	b.placed[item] = true
	b.p.order = append(b.p.order, item)
	for r := b.waiter[item]; r != none; r = b.also[r] {
		b.queue = append(b.queue, r)
	}
	b.waiter[item] = none
}
