// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// Segment is a stretch of the path.
type Segment struct {
	Rank int64
	Peer int64 // of a link: the receiver; -1 where it is a group's, or no link
	Kind Kind
	// Place is the operation's; of the host's time, the scope's or, where none is
	// known, that of the operation that it was late to launch.
	Place    Place
	From, To int64 // ns on the timeline
	Excess   int64 // over peers; below 0 where they took longer
	Compared bool  // there are peers
	// Index is the rank's place in the step, and Op the operation's among the rank's:
	// of the host's time, that which it was late to launch; -1 at the step's end.
	Index, Op int32

	class uint64
}

// Seconds returns the segment's length.
func (s *Segment) Seconds() float64 { return time.Duration(s.To - s.From).Seconds() }

// Walk is what a walk found.
type Walk struct {
	Path       []Segment // the latest first
	Causes     []Cause   // the largest excess first
	Meetings   []int32   // of the step, in which the path goes from one rank to another
	Start, End int64     // of the step
	// First is the rank whose begin of the step the path reaches, and Late how much later
	// than its peers' that is, ns; as the clocks say.
	First int64
	Late  int64
	// Circular: contradicting stamps led the walk where it had been, and it ended there.
	Circular bool
}

// Walk goes back from what ended last in the step, from each operation to what it had
// waited for, until a rank's step begins.
func (g *Graph) Walk() Walk {
	out := Walk{}
	if len(g.ranks) == 0 {
		return out
	}
	w := walker{g: g, out: &out, been: make([]uint64, (len(g.nodes)+63)/64)}
	out.Start, out.End = g.ranks[0].Start, g.ranks[0].End
	i := g.first[1] - 1
	for r := range g.ranks {
		out.Start = min(out.Start, g.ranks[r].Start)
		if end := g.ranks[r].End; end > out.End {
			out.End, i = end, g.first[r+1]-1
		}
	}
	at, first := out.End, int32(0)
	for i != none {
		if w.been[i/64]&(1<<(i%64)) != 0 {
			out.Circular = true
			break
		}
		w.been[i/64] |= 1 << (i % 64)
		first = g.nodes[i].rank
		i, at = w.node(i, at)
	}
	out.First, out.Late = g.ranks[first].Rank, g.late(first)
	for k := range out.Path {
		out.Path[k].From += g.origin
		out.Path[k].To += g.origin
	}
	out.Start, out.End = out.Start+g.origin, out.End+g.origin
	out.Causes = g.causes(&out)
	return out
}

// late returns how much later than the median of its peers the rank began.
func (g *Graph) late(rank int32) int64 {
	var others []int64
	for r := range g.ranks {
		if int32(r) != rank && g.ranks[r].Role == g.ranks[rank].Role {
			others = append(others, g.ranks[r].Start)
		}
	}
	if len(others) == 0 {
		return 0
	}
	slices.Sort(others)
	return max(0, g.ranks[rank].Start-stats.MedianMidpoint(others))
}

// walker is the state of a walk.
type walker struct {
	g    *Graph
	out  *Walk
	been []uint64 // bit for each node
}

// add appends a stretch of the path that ends at to, if it is one, and returns where
// the path goes on.
func (w *walker) add(s Segment, from, to int64) int64 {
	if from >= to {
		return to
	}
	s.From, s.To = from, to
	if s.Kind != Link {
		s.Peer = -1
	}
	w.out.Path = append(w.out.Path, s)
	return from
}

// node passes a node that is on the path until at, and returns what comes before it.
func (w *walker) node(i int32, at int64) (int32, int64) {
	g := w.g
	n := &g.nodes[i]
	at = min(at, n.end)
	switch {
	case n.kind == Comm:
		var next int32
		if next, at = w.meeting(i, at); next != i {
			return next, at
		}
	case n.place != endPlace:
		s := w.local(n, n.kind)
		s.Excess, s.Compared = g.excess(i, duration)
		if n.end > n.start && at < n.end {
			s.Excess = int64(float64(s.Excess) * float64(at-n.start) / float64(n.end-n.start))
		}
		at = w.add(s, n.start, at)
	}
	return w.before(i, min(at, n.start))
}

func (w *walker) local(n *node, k Kind) Segment {
	return Segment{Rank: w.g.ranks[n.rank].Rank, Kind: k, Place: n.place, Index: n.rank, Op: n.op}
}

// excess returns how much longer than its peers' a node's quantity is.
func (g *Graph) excess(i int32, what quantity) (int64, bool) {
	t, ok := g.typical(i, what)
	if !ok {
		return 0, false
	}
	return g.measure(i, what) - t, true
}

// before passes the time between a node's begin and what it had waited for.
func (w *walker) before(i int32, at int64) (int32, int64) {
	g := w.g
	n := &g.nodes[i]
	gp := g.gapOf(n)
	if gp.rest > 0 {
		kind := Dependency
		if g.ranks[n.rank].Dark {
			kind = Compute
		}
		s := w.local(n, kind)
		s.Excess, s.Compared = g.excess(i, restGap)
		at = w.add(s, min(at, n.start-gp.rest), at)
	}
	if gp.via != none {
		return gp.via, at
	}
	if gp.host > 0 {
		s := w.local(n, Host)
		s.Excess, s.Compared = g.excess(i, hostGap)
		s.Place = g.scope(n, &gp)
		at = w.add(s, min(at, n.base), at)
	}
	_, which := g.latest(i)
	return which, min(at, n.base)
}

// scope returns the scope that the host was in before it launched the node's operation;
// where none is known, the operation's place.
func (g *Graph) scope(n *node, gp *gap) Place {
	if g.opt.Scope == nil {
		return n.place
	}
	from := min(n.base, n.start) + g.origin
	return g.opt.Scope(int(n.rank), from, from+gp.host)
}

// meeting passes a communication, and returns the one that was waited for; the node
// itself where it waited for nobody.
func (w *walker) meeting(i int32, at int64) (int32, int64) {
	g := w.g
	n := &g.nodes[i]
	if n.meet == none || g.meets[n.meet].rule == Nobody {
		return i, w.add(w.local(n, Unknown), n.start, at)
	}
	m := &g.meets[n.meet]
	late := g.awaited(m, i)
	from := n.start
	if late != i {
		from = g.nodes[late].start
	}
	at = w.add(w.link(m, n), min(max(n.start, from), at), at)
	if late == i {
		return i, at
	}
	w.out.Meetings = append(w.out.Meetings, n.meet)
	return late, min(at, from)
}

// link returns what a transfer is, and how much longer it took than those alike.
func (w *walker) link(m *meet, n *node) Segment {
	g := w.g
	s := w.local(n, Link)
	s.Peer, s.class = -1, m.class
	if m.rule == Message {
		send, recv := m.ends()
		s.Rank, s.Index, s.Op = g.ranks[g.nodes[send].rank].Rank, g.nodes[send].rank, g.nodes[send].op
		s.Peer = g.ranks[g.nodes[recv].rank].Rank
	}
	if t, ok := g.typicalTransfer(m); ok {
		s.Compared = true
		s.Excess = g.transfer(m) - t
		if m.rule != All { // between two clocks
			s.Excess = max(0, s.Excess-m.vague)
		}
	}
	return s
}

// ends returns the two sides of a message.
func (m *meet) ends() (send, recv int32) {
	return m.nodes[m.root], m.nodes[1-min(m.root, 1)]
}

// awaited returns the node that node i waited for in the meeting, or i.
func (g *Graph) awaited(m *meet, i int32) int32 {
	last := m.nodes[m.last]
	n := &g.nodes[i]
	if m.rule == All || last != i {
		if o := &g.nodes[last]; m.rule != All && o.start < n.start {
			return i
		}
		return last
	}
	if m.rule == Message {
		if _, recv := m.ends(); g.nodes[recv].start > n.start && n.end >= g.nodes[recv].start {
			return recv
		}
	}
	return i
}
