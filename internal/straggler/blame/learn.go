// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"cmp"
	"slices"
)

// maxFollows bounds what an operation is known to wait for besides its stream and what
// ended last: a kernel joins two or three streams at most.
const maxFollows = 3

// learn finds what operations wait for though something else held them up longer: what
// one rank was seen to wait for, all of its role wait for, since they run the same
// program. Without that, taking away the longer one would save too much.
func (b *builder) learn() {
	g := b.g
	b.follows, b.joins = resized(b.follows, len(g.slots.keys)), false
	clear(b.follows)
	for i := range g.nodes {
		n := &g.nodes[i]
		if g.joins(n) {
			b.follow(n.slot, g.nodes[n.bind].slot)
		}
	}
	b.slotAt = resized(b.slotAt, len(g.slots.keys))
	at := b.slotAt
	for k := range at {
		at[k] = none
	}
	g.extraAt = slices.Grow(g.extraAt, len(g.nodes)+1)
	for r := range g.ranks {
		from, to := g.first[r], g.first[r+1]
		if b.joins {
			for i := from; i < to; i++ {
				at[g.nodes[i].slot] = i
			}
		}
		b.extras(from, to, at)
		if b.joins {
			for i := from; i < to; i++ {
				at[g.nodes[i].slot] = none
			}
		}
	}
	g.extraAt = append(g.extraAt, int32(len(g.extraTo)))
}

// joins reports whether the operation was seen to wait for one of another stream: its
// own had been idle, it had been launched, and it began as soon as the other was over.
func (g *Graph) joins(n *node) bool {
	if n.bind == none || n.place == endPlace {
		return false
	}
	o := &g.nodes[n.bind]
	idle := n.prev == none || n.start-g.nodes[n.prev].end > idleLane
	return idle && !n.over && o.lane != n.lane && n.start-o.end <= launchLatency && n.start-n.launch > launchLatency
}

// follows are the slots of what those of a slot were seen to wait for.
type follows struct {
	slots [maxFollows]int32
	n     int32
}

func (b *builder) follow(slot, other int32) {
	if f := &b.follows[slot]; slot != other && f.n < maxFollows && !slices.Contains(f.slots[:f.n], other) {
		f.slots[f.n] = other
		f.n++
		b.joins = true
	}
}

// extras appends what a rank's operations wait for besides: learned; the message of
// the same microbatch; and at the end of the step, the last operation of each lane.
func (b *builder) extras(from, to int32, at []int32) {
	g := b.g
	lanes := g.room.lanes[:0]
	messages := b.messages[:0]
	awaited := b.received(from, to)
	for i := from; i < to; i++ {
		g.extraAt = append(g.extraAt, int32(len(g.extraTo)))
		n := &g.nodes[i]
		if b.joins {
			f := &b.follows[n.slot]
			for _, slot := range f.slots[:f.n] {
				g.wait(i, at[slot])
			}
		}
		for len(awaited) > 0 && awaited[0].by <= i {
			if awaited[0].by == i {
				g.wait(i, awaited[0].message)
			}
			awaited = awaited[1:]
		}
		switch {
		case n.place == endPlace:
			for _, l := range lanes {
				g.wait(i, l.last)
			}
		case n.kind == Comm && n.micro >= 0 && n.meet != none && g.meets[n.meet].rule == Message && len(messages) < maxMessages:
			messages = append(messages, i)
		case n.kind == Compute && n.micro >= 0 && len(messages) > 0:
			messages = slices.DeleteFunc(messages, func(m int32) bool {
				o := &g.nodes[m]
				if o.micro != n.micro || o.end > n.start+slop {
					return false
				}
				g.wait(i, m)
				return true
			})
		}
		lanes[laneOf(&lanes, n.lane)].last = i
	}
	g.room.lanes, b.messages = lanes, messages
}

// awaits is an operation that waits for a message.
type awaits struct{ by, message int32 }

// received returns, in order of the waiting operations, which of a rank's operations
// waits for which message that it received: the first computation that was launched
// after the receive, as programs receive what they go on with.
func (b *builder) received(from, to int32) []awaits {
	g := b.g
	out := b.awaited[:0]
	for i := from; i < to; i++ {
		if n := &g.nodes[i]; n.meet != none && n.launch != unknown {
			if m := &g.meets[n.meet]; m.rule == Message && m.nodes[m.root] != i {
				out = append(out, awaits{none, i})
			}
		}
	}
	b.awaited = out
	if len(out) == 0 {
		return nil
	}
	b.order = b.order[:0]
	for i := from; i < to-1; i++ {
		if n := &g.nodes[i]; n.kind == Compute && n.launch != unknown {
			b.order = append(b.order, i)
		}
	}
	g.sortByLaunch(b.order)
	for k := range out {
		launch := g.nodes[out[k].message].launch
		at, _ := slices.BinarySearchFunc(b.order, launch, func(i int32, t int64) int { return cmp.Compare(g.nodes[i].launch, t+1) })
		if at < len(b.order) {
			out[k].by = b.order[at]
		}
	}
	slices.SortFunc(out, func(x, y awaits) int { return cmp.Or(cmp.Compare(x.by, y.by), cmp.Compare(x.message, y.message)) })
	return out
}

// maxMessages bounds the messages of a rank whose microbatch has not begun.
const maxMessages = 256

// wait adds an operation that node i waits for.
func (g *Graph) wait(i, other int32) {
	n := &g.nodes[i]
	if other == none || other >= i || other == n.prev || other == n.bind || g.nodes[other].end > n.start+slop {
		return
	}
	if !slices.Contains(g.extraTo[g.extraAt[i]:], other) {
		g.extraTo = append(g.extraTo, other)
	}
}

// extra returns what node i waits for besides its lane and what ended last.
func (g *Graph) extra(i int32) []int32 { return g.extraTo[g.extraAt[i]:g.extraAt[i+1]] }

// gaps fills when the last thing that a node waited for was over.
func (b *builder) gaps() {
	g := b.g
	for i := range g.nodes {
		n := &g.nodes[i]
		n.base, _ = g.latest(int32(i))
	}
}

// latest returns when the last thing that the node waited for was over, and which it
// was; the rank's start and none, where it waited for nothing.
func (g *Graph) latest(i int32) (at int64, which int32) {
	n := &g.nodes[i]
	at, which = min(g.ranks[n.rank].Start, n.start), none
	try := func(o int32) {
		if o != none && (which == none || g.nodes[o].end > at) {
			at, which = g.nodes[o].end, o
		}
	}
	if !n.over {
		try(n.prev)
	}
	try(n.bind)
	for _, o := range g.extra(i) {
		try(o)
	}
	return at, which
}

// gap is what was between the last thing that an operation waited for and its begin.
type gap struct {
	host int64 // the host had launched nothing, from base on
	rest int64 // it had been launched; up to the start
	via  int32 // an operation that ran meanwhile, in place of the host's part
}

// gapOf divides the time before a node. It is the host's only where no stream ran.
func (g *Graph) gapOf(n *node) gap {
	base := min(n.base, n.start)
	ready := n.start
	switch {
	case n.launch != unknown:
		ready = min(max(n.launch+launchLatency, base), n.start)
	case n.beside:
		ready = base
	}
	out := gap{host: ready - base, rest: n.start - ready, via: none}
	if n.covered != none && out.host > 0 && g.nodes[n.covered].start < ready {
		out.host, out.via = 0, n.covered
	}
	return out
}
