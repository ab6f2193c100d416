// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"cmp"
	"slices"
)

// plan is the order in which a replay computes. Items are, of n nodes and m meetings:
// the begin of node i, i; the end of node i where it waits for one other, n+i; and the
// moment from which nobody in meeting k waits any more, 2n+k.
type plan struct {
	order []int32
	// forced items stood in a circle, and take what they wait for as recorded.
	forced int
}

// done returns the item after which the node has ended.
func (g *Graph) done(i int32) int32 {
	n := &g.nodes[i]
	if n.meet == none {
		return i
	}
	m := &g.meets[n.meet]
	switch {
	case m.rule == All:
		return int32(2*len(g.nodes)) + n.meet
	case m.rule != Nobody && g.partner(m, i) != none:
		return int32(len(g.nodes)) + i
	}
	return i
}

// partner returns the one that node i waits for in a meeting in which not all wait for
// all, or none.
func (g *Graph) partner(m *meet, i int32) int32 {
	if root := m.nodes[m.root]; i != root {
		return root
	}
	if m.rule == Message {
		if _, recv := m.ends(); g.nodes[i].end >= g.nodes[recv].start {
			return recv
		}
	}
	return none
}

// waits appends the items that the item waits for.
func (g *Graph) waits(item int32, out []int32) []int32 {
	n := int32(len(g.nodes))
	switch {
	case item < n:
		return g.nodeWaits(item, out)
	case item < 2*n:
		i := item - n
		return append(out, i, g.partner(&g.meets[g.nodes[i].meet], i))
	default:
		return append(out, g.meets[item-2*n].nodes...)
	}
}

func (g *Graph) nodeWaits(i int32, out []int32) []int32 {
	n := &g.nodes[i]
	switch {
	case n.prev != none && n.over:
		out = append(out, n.prev)
	case n.prev != none:
		out = append(out, g.done(n.prev))
	}
	if n.bind != none {
		out = append(out, g.done(n.bind))
	}
	for _, o := range g.extra(i) {
		out = append(out, g.done(o))
	}
	if n.sync != none && n.sync != i {
		out = append(out, g.done(n.sync))
	}
	return out
}

// used reports whether the item exists.
func (g *Graph) used(item int32) bool {
	n := int32(len(g.nodes))
	switch {
	case item < n:
		return true
	case item < 2*n:
		return g.done(item-n) == item
	}
	return g.meets[item-2*n].rule == All
}

// planner holds what is needed while the order is sought.
type planner struct {
	before        []int32 // of each item, how many it waits for that are not done yet
	at, followers []int32 // who waits for it, those of item i from at[i] on
	waits, waitAt []int32 // for whom it waits
	placed        []bool
}

// planned returns the order, found once.
func (g *Graph) planned() *plan {
	if g.plan != nil {
		return g.plan
	}
	items := int32(2*len(g.nodes) + len(g.meets))
	total := 0
	for item := range items {
		if g.used(item) {
			total++
		}
	}
	g.plan = &g.room.plan
	g.plan.forced, g.plan.order = 0, slices.Grow(g.plan.order[:0], total)
	if !g.room.byRank.order(g, g.plan, int(items), total) {
		g.planAll(items, total)
	}
	return g.plan
}

// planAll finds an order for whatever waits for what.
func (g *Graph) planAll(items int32, total int) {
	w, p := &g.room.planner, g.plan
	w.read(g, items)
	p.order = p.order[:0]
	place := func(item int32) {
		w.placed[item] = true
		p.order = append(p.order, item)
	}
	for item := range items {
		if w.before[item] == 0 && g.used(item) {
			place(item)
		}
	}
	circle := g.circles(w.before)
	for from := 0; len(p.order) < total; {
		for ; from < len(p.order); from++ {
			for _, f := range w.followers[w.at[p.order[from]]:w.at[p.order[from]+1]] {
				if w.before[f]--; w.before[f] == 0 && !w.placed[f] {
					place(f)
				}
			}
		}
		if len(p.order) < total {
			place(circle(w.placed))
			p.forced++
		}
	}
}

// read finds who waits for whom.
func (w *planner) read(g *Graph, items int32) {
	w.before, w.at, w.waitAt = resized(w.before, int(items)), resized(w.at, int(items)+1), resized(w.waitAt, int(items)+1)
	w.placed, w.waits = resized(w.placed, int(items)), w.waits[:0]
	clear(w.at)
	clear(w.placed)
	for item := range items {
		w.waitAt[item] = int32(len(w.waits))
		if g.used(item) {
			w.waits = g.waits(item, w.waits)
		}
		w.before[item] = int32(len(w.waits)) - w.waitAt[item]
	}
	w.waitAt[items] = int32(len(w.waits))
	for _, o := range w.waits {
		w.at[o]++
	}
	sum := int32(0)
	for i, n := range w.at {
		w.at[i] = sum
		sum += n
	}
	w.followers = resized(w.followers, len(w.waits))
	for item := range items {
		for _, o := range w.waits[w.waitAt[item]:w.waitAt[item+1]] {
			w.followers[w.at[o]] = item
			w.at[o]++
		}
	}
	// Now each begins where its next does.
	copy(w.at[1:], w.at[:items])
	w.at[0] = 0
}

// circles returns a function that picks, of the items that wait in a circle, the one
// that was recorded first. Only contradicting stamps or wrong partners make one.
func (g *Graph) circles(before []int32) func(placed []bool) int32 {
	var sorted []int32
	return func(placed []bool) int32 {
		if sorted == nil {
			for item := range before {
				if g.used(int32(item)) && !placed[item] {
					sorted = append(sorted, int32(item))
				}
			}
			slices.SortFunc(sorted, func(a, b int32) int {
				return cmp.Or(cmp.Compare(g.recorded(a), g.recorded(b)), cmp.Compare(a, b))
			})
		}
		for placed[sorted[0]] {
			sorted = sorted[1:]
		}
		return sorted[0]
	}
}

// recorded returns when the item was over.
func (g *Graph) recorded(item int32) int64 {
	n := int32(len(g.nodes))
	switch {
	case item < n:
		return g.nodes[item].start
	case item < 2*n:
		return g.nodes[item-n].end
	}
	var last int64
	for k, i := range g.meets[item-2*n].nodes {
		if at := g.nodes[i].start; k == 0 || at > last {
			last = at
		}
	}
	return last
}
