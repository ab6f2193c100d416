// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"math"
	"time"
)

// Mend is what a replay takes to be as it is with peers.
type Mend struct {
	// Rank is the one mended, -1 for all. It is not asked of stages and transfers of groups.
	Rank int64
	Peer int64 // of a link, -1 for all links of the rank
	Kind Kind  // Compute, Copy, Host, Dependency, Link, Stage or Work
	// Place restricts the mending, where Only is set.
	Place Place
	Only  bool
	Stage int32 // of kind Stage
	// Less is of kind Link, in place of a rank: by how much sooner each meeting, by its
	// place in the step, would be over, ns.
	Less map[int32]int64
	// Alike is of kind Work: the place that stands for all that do the same with
	// whatever amount. Evened out are those that a role does.
	Alike func(Place) Place

	// Scale is of kind Stage: what part of its computing is left.
	Scale float64

	class uint64
	group bool
}

// Mend returns what would mend the cause.
func (c *Cause) Mend() Mend {
	return Mend{
		Rank: c.Rank, Peer: c.Peer, Kind: c.Kind, Place: c.Place, Only: true, Stage: c.Stage,
		class: c.class, group: c.Kind == Link && c.Peer < 0, Scale: c.scale,
	}
}

// Own returns what would make a rank be as its peers in all that it does by itself.
func Own(rank int64) []Mend {
	var out []Mend
	for _, k := range [...]Kind{Compute, Copy, Host, Dependency} {
		out = append(out, Mend{Rank: rank, Peer: -1, Kind: k})
	}
	return out
}

// Saved returns how much earlier the step would have ended, s. Everything else is as
// recorded: that another rank becomes slower or faster by it is not assumed. What may have
// waited for communication that was lost waits no longer than its peers, mended or not:
// else one lost span would hold for good what is saved.
func (g *Graph) Saved(mends ...Mend) float64 {
	if len(g.nodes) == 0 {
		return 0
	}
	recorded := g.ranks[0].End
	for k := range g.ranks {
		recorded = max(recorded, g.ranks[k].End)
	}
	if g.holed {
		recorded = g.end(nil)
	}
	return time.Duration(recorded - g.end(mends)).Seconds()
}

// Forced returns how many operations a replay has to take as recorded, because they
// wait for each other in a circle.
func (g *Graph) Forced() int { return g.planned().forced }

// Holed reports whether something may have waited for communication that was lost.
func (g *Graph) Holed() bool { return g.holed }

// end returns when the replayed step ends.
func (g *Graph) end(mends []Mend) int64 {
	r := g.run(mends)
	end := r.ends[g.first[1]-1]
	for k := range g.ranks {
		end = max(end, r.ends[g.first[k+1]-1])
	}
	return end
}

// replay is a step that is run again.
type replay struct {
	g            *Graph
	starts, ends []int64
	mended       bool    // something is; else what follows freeRecorded is not filled
	free         []int64 // of each meeting, when nobody waits any more; and as recorded
	freeRecorded []int64
	less         []int64 // of each node, by how much less its duration is
	sooner       []int64 // of each node, by how much less the gap before it is
	host         []int64 // of each node, what its rank's host has been faster until there
	quicker      []int64 // of each meeting, by how much less its transfer is
}

func (g *Graph) run(mends []Mend) *replay {
	p := g.planned()
	n := int32(len(g.nodes))
	r := &g.room.replay
	r.begins(g)
	for i := range g.nodes {
		r.starts[i], r.ends[i] = g.nodes[i].start, g.nodes[i].end
	}
	for k := range g.meets {
		r.free[k] = g.recorded(2*n + int32(k))
	}
	copy(r.freeRecorded, r.free)
	if len(mends) > 0 {
		r.mend(mends)
	}
	for _, item := range p.order {
		switch {
		case item < n:
			r.begin(item)
		case item < 2*n:
			r.meet(item - n)
		default:
			r.meetAll(item - 2*n)
		}
	}
	return r
}

// begins makes room for another run.
func (r *replay) begins(g *Graph) {
	nodes, meets := len(g.nodes), len(g.meets)
	r.g, r.mended = g, false
	r.starts, r.ends = resized(r.starts, nodes), resized(r.ends, nodes)
	r.free, r.freeRecorded = resized(r.free, meets), resized(r.freeRecorded, meets)
}

// begin computes when a node begins, and ends if it waits for nobody.
func (r *replay) begin(i int32) {
	g := r.g
	n := &g.nodes[i]
	at := int64(math.MinInt64)
	if n.prev != none && !n.over {
		at = r.ends[n.prev]
	}
	if n.bind != none {
		at = max(at, r.ends[n.bind])
	}
	for _, o := range g.extra(i) {
		at = max(at, r.ends[o])
	}
	if at == math.MinInt64 {
		at = n.base
	}
	gap := n.start - n.base - r.of(r.sooner, i)
	if n.holed {
		gap = min(gap, max(0, g.typicalGap(i)))
	}
	at += gap
	if n.over {
		at = max(at, r.starts[n.prev]+n.start-g.nodes[n.prev].start)
	}
	r.starts[i] = max(at, r.launched(i))
	r.ends[i] = r.starts[i] + n.stay() - r.of(r.less, i)
}

// typicalGap returns what the node's peers were idle for before it; what itself was where it
// has none.
func (g *Graph) typicalGap(i int32) int64 {
	host, some := g.typical(i, hostGap)
	rest, also := g.typical(i, restGap)
	if !some || !also {
		return g.nodes[i].start - g.nodes[i].base
	}
	return host + rest
}

// of returns what is mended of a node or meeting.
func (r *replay) of(v []int64, i int32) int64 {
	if !r.mended {
		return 0
	}
	return v[i]
}

// launched returns when the host can have the node begin. A host that waited for its
// device is earlier if the device is; one that did not is where it was, less what is
// mended of its own.
func (r *replay) launched(i int32) int64 {
	n := &r.g.nodes[i]
	if n.launch == unknown || n.launch > n.start {
		return unknown
	}
	at := min(n.launch+launchLatency, n.start) - r.of(r.host, i)
	if n.sync != none {
		at += r.ends[n.sync] - r.g.nodes[n.sync].end + r.of(r.host, n.sync)
	}
	return at
}

// meet computes when a node ends that waits for one other.
func (r *replay) meet(i int32) {
	g := r.g
	n := &g.nodes[i]
	m := &g.meets[n.meet]
	o := g.partner(m, i)
	both := max(n.start, g.nodes[o].start)
	r.ends[i] = max(r.starts[i], max(r.starts[i], r.starts[o])+n.end-both-r.of(r.quicker, n.meet))
}

// meetAll computes when nobody in a meeting waits any more, and when its members leave.
func (r *replay) meetAll(k int32) {
	m := &r.g.meets[k]
	last := r.starts[m.nodes[0]]
	for _, i := range m.nodes {
		last = max(last, r.starts[i])
	}
	r.free[k] = last
	for _, i := range m.nodes {
		r.ends[i] = max(r.starts[i], last+r.g.nodes[i].end-r.freeRecorded[k]-r.of(r.quicker, k))
	}
}
