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

// waits calls f for each item that the item waits for.
func (g *Graph) waits(item int32, f func(int32)) {
	n := int32(len(g.nodes))
	switch {
	case item < n:
		g.nodeWaits(item, f)
	case item < 2*n:
		i := item - n
		f(i)
		f(g.partner(&g.meets[g.nodes[i].meet], i))
	default:
		for _, i := range g.meets[item-2*n].nodes {
			f(i)
		}
	}
}

func (g *Graph) nodeWaits(i int32, f func(int32)) {
	n := &g.nodes[i]
	switch {
	case n.prev != none && n.over:
		f(n.prev)
	case n.prev != none:
		f(g.done(n.prev))
	}
	if n.bind != none {
		f(g.done(n.bind))
	}
	for _, o := range g.extra(i) {
		f(g.done(o))
	}
	if n.sync != none && n.sync != i {
		f(g.done(n.sync))
	}
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

// planned returns the order, found once.
func (g *Graph) planned() *plan {
	if g.plan != nil {
		return g.plan
	}
	items := int32(2*len(g.nodes) + len(g.meets))
	before := make([]int32, items) // waited for and not yet done
	at := make([]int32, items+1)   // where an item's followers begin
	total := 0
	for item := range items {
		if g.used(item) {
			total++
			g.waits(item, func(o int32) {
				before[item]++
				at[o+1]++
			})
		}
	}
	for i := range items {
		at[i+1] += at[i]
	}
	next := slices.Clone(at)
	followers := make([]int32, at[items])
	for item := range items {
		if g.used(item) {
			g.waits(item, func(o int32) {
				followers[next[o]] = item
				next[o]++
			})
		}
	}
	p := &plan{order: make([]int32, 0, total)}
	placed := make([]bool, items)
	place := func(item int32) {
		placed[item] = true
		p.order = append(p.order, item)
	}
	for item := range items {
		if g.used(item) && before[item] == 0 {
			place(item)
		}
	}
	circle := g.circles(before)
	for from := 0; len(p.order) < total; {
		for ; from < len(p.order); from++ {
			for _, f := range followers[at[p.order[from]]:at[p.order[from]+1]] {
				if before[f]--; before[f] == 0 && !placed[f] {
					place(f)
				}
			}
		}
		if len(p.order) < total {
			place(circle(placed))
			p.forced++
		}
	}
	g.plan = p
	return p
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
