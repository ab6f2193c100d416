// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"cmp"
	"slices"
	"time"
)

// launchLatency is how long after its launch an operation begins on an idle stream: 8 to
// 13 µs on a V100. Idleness up to then is the host's.
const launchLatency = int64(15 * time.Microsecond)

// near is within what two ends are taken for one where it matters which of two
// operations the next one had to wait for: operations of one stream follow each other
// in 1 to 3 µs, and stamps are of whole microseconds. What ran before on the stream is
// the simpler answer then.
const near = int64(5 * time.Microsecond)

// slop is by how much an operation may seem to begin before what it waited for was over:
// sources that round begin and duration apart do that.
const slop = int64(time.Microsecond)

// idleLane is from what idleness on a stream on the next operation's begin tells what it
// had waited for.
const idleLane = int64(20 * time.Microsecond)

// syncLatency is within what a host launches after its device has ended all, if it
// waited for that.
const syncLatency = int64(100 * time.Microsecond)

const none = int32(-1)

// node is an operation, or the end of a rank's step.
type node struct {
	start, end int64
	launch     int64 // or unknown
	lane       int64
	base       int64 // end of the last thing that it waited for, else the rank's start
	rank       int32
	slot       int32 // what is compared with it
	place      Place
	prev       int32 // on its lane
	bind       int32 // the operation that ended last before it, where that is not prev
	covered    int32 // an operation that computes while it begins, where nothing else explains when
	sync       int32 // the operation whose end the host had waited for before the launch
	meet       int32 // meeting, or none
	micro      int32
	op         int32 // place among its rank's operations, none of the step's end
	kind       Kind
	over       bool // prev still ran when it began
	beside     bool // communication of the rank ran when it began
	holed      bool // it may have waited for communication that was lost
}

// Graph is a step's operations and what each waited for.
type Graph struct {
	// Refused: the step has more operations than allowed, and the graph is empty.
	Refused bool

	opt   Options
	ranks []Rank
	meets []meet
	nodes []node
	first []int32 // of each rank; one more for the end
	// extraTo are further operations that nodes wait for, those of node i from
	// extraAt[i] on.
	extraAt, extraTo []int32

	holed  bool  // some node is
	origin int64 // Unix ns that the nodes' times are counted from
	slots  slots
	typ    typicals
	plan   *plan
	room   room
}

// room is what building and replaying a graph fills besides. It is used again, also by a
// graph that is built over this one.
type room struct {
	builder builder
	members []int32 // of all meetings
	lanes   []laneEnd
	plan    plan
	planner planner
	byRank  byRank
	replay  replay
}

// meet is a meeting over nodes.
type meet struct {
	nodes   []int32
	rule    Rule
	root    int32 // place in nodes, or none
	class   uint64
	vague   int64
	last    int32 // place in nodes of the one that is waited for
	arrived int64
}

// Build joins the operations of a step. It keeps no reference to them.
func Build(s *Step, opt Options) *Graph { return new(Graph).Rebuild(s, opt) }

// Rebuild is Build in the room of a graph that is not needed any more. It returns that.
func (g *Graph) Rebuild(s *Step, opt Options) *Graph {
	g.empty()
	g.opt = opt
	total := len(s.Ranks)
	for i := range s.Ranks {
		total += len(s.Ranks[i].Ops)
	}
	if limit := cmp.Or(opt.MaxOps, DefaultMaxOps); total > limit {
		g.Refused = true
		return g
	}
	g.nodes = slices.Grow(g.nodes, total)
	if len(s.Ranks) > 0 {
		g.origin = s.Ranks[0].Start
	}
	b := &g.room.builder
	b.begin(g, total)
	for i := range s.Ranks {
		b.rank(&s.Ranks[i])
	}
	g.first = append(g.first, int32(len(g.nodes)))
	b.meetings(s)
	b.learn()
	b.gaps()
	return g
}

// empty takes the graph back to none, but for its room.
func (g *Graph) empty() {
	*g = Graph{
		ranks: g.ranks[:0], meets: g.meets[:0], nodes: g.nodes[:0], first: g.first[:0], extraAt: g.extraAt[:0], extraTo: g.extraTo[:0],
		slots: slots{ids: g.slots.ids, keys: g.slots.keys[:0], next: g.slots.next[:0]}, typ: g.typ.emptied(), room: g.room,
	}
	clear(g.slots.ids)
}

// Size returns how many operations the graph holds, the ends of the ranks' steps among them.
func (g *Graph) Size() int { return len(g.nodes) }

// NoScopes lets go what tells the scopes of hosts.
func (g *Graph) NoScopes() { g.opt.Scope = nil }

// builder holds what is needed while the graph is built.
type builder struct {
	g       *Graph
	at      [][]int32 // of each rank, where its operations are among the nodes
	places  []int32   // of all ranks
	ends    []int32   // a rank's nodes by end
	follows []follows // of each slot
	joins   bool      // some follow
	order   []int32
	merged  []int32
	// Of the present rank, or of all slots.
	slotAt, messages []int32
	awaited          []awaits
	seen             []int64
}

// resized returns room for n values, which are as they were left.
func resized[T any](v []T, n int) []T { return slices.Grow(v[:0], n)[:n] }

// sortByLaunch sorts nodes by when they were launched, which they mostly are.
func (g *Graph) sortByLaunch(of []int32) {
	byLaunch := func(x, y int32) int {
		return cmp.Or(cmp.Compare(g.nodes[x].launch, g.nodes[y].launch), cmp.Compare(x, y))
	}
	if !slices.IsSortedFunc(of, byLaunch) {
		slices.SortFunc(of, byLaunch)
	}
}

func (b *builder) begin(g *Graph, total int) {
	b.g, b.at, b.places = g, b.at[:0], slices.Grow(b.places[:0], total)
}

// rank adds the operations of a rank in order of their starts, and its end.
func (b *builder) rank(r *Rank) {
	g := b.g
	i, from := int32(len(g.ranks)), int32(len(g.nodes))
	g.first = append(g.first, from)
	kept := *r
	kept.Ops, kept.Syncs, kept.Holes = nil, nil, nil
	places := len(b.places)
	b.places = b.places[:places+len(r.Ops)]
	b.at = append(b.at, b.places[places:])
	b.order = b.order[:0]
	for k := range r.Ops {
		b.order = append(b.order, int32(k))
	}
	byStart := func(x, y int32) int {
		p, q := &r.Ops[x], &r.Ops[y]
		return cmp.Or(cmp.Compare(p.Start, q.Start), cmp.Compare(p.End, q.End), cmp.Compare(x, y))
	}
	b.sortRuns(byStart)
	end := g.since(max(r.Start, r.End))
	for _, k := range b.order {
		op := &r.Ops[k]
		b.at[i][k] = int32(len(g.nodes))
		n := g.next()
		n.start, n.end, n.launch, n.lane = g.since(op.Start), g.since(max(op.Start, op.End)), unknown, op.Lane
		n.place, n.micro, n.op, n.kind, n.rank = op.Place, op.Micro, k, min(op.Kind, Comm), i
		n.slot = g.slots.of(slotKey{role: r.Role, place: op.Place, seq: op.Seq})
		if op.Launch != 0 {
			n.launch = g.since(op.Launch)
		}
		end = max(end, n.end)
	}
	kept.End = end
	kept.Start = min(g.since(r.Start), end)
	g.ranks = append(g.ranks, kept)
	n := g.next()
	n.start, n.end, n.launch, n.rank, n.place, n.micro, n.op, n.kind = end, end, unknown, i, endPlace, -1, none, Copy
	n.slot = g.slots.of(slotKey{role: r.Role, place: endPlace})
	b.holes(from, r)
	b.local(from, int32(len(g.nodes)))
	b.synchronise(from, int32(len(g.nodes)), r.Syncs)
}

// sortRuns sorts the order, which mostly is of two sorted parts: what a rank computed, and
// its communication.
func (b *builder) sortRuns(by func(x, y int32) int) {
	descends := func(from int) int {
		for i := from; i < len(b.order); i++ {
			if by(b.order[i-1], b.order[i]) > 0 {
				return i
			}
		}
		return len(b.order)
	}
	second := descends(1)
	if second >= len(b.order) {
		return
	}
	if descends(second+1) < len(b.order) {
		slices.SortFunc(b.order, by)
		return
	}
	x, y := b.order[:second], b.order[second:]
	b.merged = b.merged[:0]
	for len(x) > 0 && len(y) > 0 {
		if by(x[0], y[0]) <= 0 {
			b.merged, x = append(b.merged, x[0]), x[1:]
		} else {
			b.merged, y = append(b.merged, y[0]), y[1:]
		}
	}
	b.merged = append(append(b.merged, x...), y...)
	b.order, b.merged = b.merged, b.order
}

// next returns a new node that waits for nothing. It is filled in place: a copy would take
// as long as all else that is done to build it.
func (g *Graph) next() *node {
	g.nodes = g.nodes[:len(g.nodes)+1]
	n := &g.nodes[len(g.nodes)-1]
	*n = node{}
	n.prev, n.bind, n.covered, n.sync, n.meet = none, none, none, none, none
	return n
}

// holes marks what began when communication may have been lost.
func (b *builder) holes(from int32, r *Rank) {
	holes := r.Holes
	for i := from; i < int32(len(b.g.nodes)) && len(holes) > 0; i++ {
		n := &b.g.nodes[i]
		for len(holes) > 0 && b.g.since(holes[0][1]) < n.start {
			holes = holes[1:]
		}
		n.holed = len(holes) > 0 && b.g.since(holes[0][0]) < n.start
		b.g.holed = b.g.holed || n.holed
	}
}

// local finds, for each node of a rank, what ran before it on its lane, what ended last
// before it, and what computed while it began.
func (b *builder) local(from, to int32) {
	nodes := b.g.nodes
	b.ends = b.ends[:0]
	for i := from; i < to; i++ {
		b.ends = append(b.ends, i)
	}
	byEnd := func(x, y int32) int { return cmp.Or(cmp.Compare(nodes[x].end, nodes[y].end), cmp.Compare(x, y)) }
	if !slices.IsSortedFunc(b.ends, byEnd) {
		slices.SortFunc(b.ends, byEnd)
	}
	lanes := b.g.room.lanes[:0]
	next, last, running, talking := 0, none, none, none
	for i := from; i < to; i++ {
		n := &nodes[i]
		for next < len(b.ends) && b.ends[next] < i && nodes[b.ends[next]].end <= n.start+slop {
			last = b.ends[next]
			next++
		}
		if i < to-1 {
			k := laneOf(&lanes, n.lane)
			n.prev = lanes[k].last
			lanes[k].last = i
		}
		if n.prev != none && nodes[n.prev].end > n.start+slop {
			n.over = true
		}
		n.bind = last
		if n.prev != none && !n.over && last != none && nodes[last].end-nodes[n.prev].end <= near {
			n.bind = none
		}
		if running != none && nodes[running].end > n.start && nodes[running].start < n.start {
			n.covered = running
		}
		n.beside = talking != none && nodes[talking].end > n.start && nodes[talking].start < n.start
		switch {
		case n.kind == Compute && (running == none || nodes[running].end < n.end):
			running = i
		case n.kind == Comm && (talking == none || nodes[talking].end < n.end):
			talking = i
		}
	}
	b.g.room.lanes = lanes
}

// since returns a time as the graph counts it, from the first rank's start on. Times
// that are years away are taken for nearer, so that no sum of some overflows.
func (g *Graph) since(t int64) int64 {
	d := t - g.origin
	if t > g.origin != (d > 0) { // overflow
		d = -d
	}
	return min(max(d, -farAway), farAway)
}

const (
	farAway = int64(1) << 58
	unknown = -2 * farAway // launch
)

// laneEnd is the last operation of a lane.
type laneEnd struct {
	lane int64
	last int32
}

// laneOf returns the lane's place. A rank has a handful of them; whoever has more than
// maxLanes shares the last.
func laneOf(lanes *[]laneEnd, lane int64) int {
	for k := range *lanes {
		if (*lanes)[k].lane == lane {
			return k
		}
	}
	if len(*lanes) >= maxLanes {
		return maxLanes - 1
	}
	*lanes = append(*lanes, laneEnd{lane: lane, last: none})
	return len(*lanes) - 1
}

const maxLanes = 64

// synchronise finds, for each launch, the operation whose end the host had waited for
// before: it launched when all that it had launched before was over, and had just
// ended, or it was seen to wait.
func (b *builder) synchronise(from, to int32, syncs []int64) {
	nodes := b.g.nodes
	b.order = b.order[:0]
	for i := from; i < to-1; i++ {
		if nodes[i].launch != unknown {
			b.order = append(b.order, i)
		}
	}
	b.g.sortByLaunch(b.order)
	b.seen = resized(b.seen, len(syncs))
	seen := b.seen
	for k, t := range syncs {
		seen[k] = b.g.since(t)
	}
	slices.Sort(seen)
	sync, longest := none, none
	before := b.g.ranks[nodes[from].rank].Start
	for _, i := range b.order {
		n := &nodes[i]
		if longest != none {
			e := nodes[longest].end
			drained := e > before && e <= n.launch
			for len(seen) > 0 && seen[0] <= before {
				seen = seen[1:]
			}
			told := len(seen) > 0 && seen[0] <= n.launch && e <= seen[0]+syncLatency
			if drained && (n.launch-e <= syncLatency || told) {
				sync = longest
			}
		}
		n.sync = sync
		before = max(before, n.launch)
		if longest == none || nodes[longest].end < n.end {
			longest = i
		}
	}
}

// meetings joins the ranks.
func (b *builder) meetings(s *Step) {
	g := b.g
	members := 0
	for k := range s.Meetings {
		members += len(s.Meetings[k].Parties)
	}
	all := slices.Grow(g.room.members[:0], members)
	g.meets = slices.Grow(g.meets, len(s.Meetings))
	for k := range s.Meetings {
		m := &s.Meetings[k]
		out := meet{rule: m.Rule, root: none, class: m.Class, vague: m.Vague}
		from := len(all)
		for p, party := range m.Parties {
			i, ok := b.find(party)
			if !ok || g.nodes[i].meet != none || g.nodes[i].kind != Comm {
				continue
			}
			if int32(p) == m.Root {
				out.root = int32(len(all) - from)
			}
			g.nodes[i].meet = int32(len(g.meets))
			all = append(all, i)
		}
		out.nodes = all[from:len(all):len(all)]
		if len(out.nodes) < 2 || out.rule != All && out.root == none || out.rule == Message && len(out.nodes) != 2 || out.rule > Message {
			out.rule = Nobody
		}
		out.decide(g.nodes)
		g.meets = append(g.meets, out)
	}
	g.room.members = all
}

func (b *builder) find(p Party) (int32, bool) {
	if p.Rank < 0 || int(p.Rank) >= len(b.at) || p.Op < 0 || int(p.Op) >= len(b.at[p.Rank]) {
		return none, false
	}
	return b.at[p.Rank][p.Op], true
}

// decide finds the one that is waited for. Of those whose order is not known it is the
// one that stayed the least: it waited for nobody.
func (m *meet) decide(nodes []node) {
	if m.rule == Nobody {
		return
	}
	if m.rule == Root || m.rule == Message {
		m.last = m.root
		m.arrived = nodes[m.nodes[m.root]].start
		return
	}
	for p, i := range m.nodes {
		if nodes[i].start > nodes[m.nodes[m.last]].start {
			m.last = int32(p)
		}
	}
	latest := nodes[m.nodes[m.last]].start
	for p, i := range m.nodes {
		if n := &nodes[i]; n.start >= latest-m.vague && n.stay() < nodes[m.nodes[m.last]].stay() {
			m.last = int32(p)
		}
	}
	m.arrived = nodes[m.nodes[m.last]].start
}

func (n *node) stay() int64 { return n.end - n.start }
