// SPDX-License-Identifier: Apache-2.0

package hang

import "slices"

// instance is one collective of a group.
type instance struct {
	came  int
	last  int64
	instr []int32 // per member, -1: it has not come
	at    []int64
	split bool // members do not mean the same
	first signature
}

// signature is what members of an operation must agree on.
type signature struct {
	name, dtype string
	root        int
	in, out     [2]int64
}

func signatureOf(in *instr) signature {
	s := signature{name: in.name, dtype: in.dtype, root: in.root}
	if !in.uneven {
		copy(s.in[:], in.in)
		copy(s.out[:], in.out)
	}
	return s
}

// join takes part in a collective.
func (x *run) join(r *rank, in *instr, q *queued, at int64) {
	p := x.places[r.id][in.kind]
	members := x.groups[p.group].ranks
	c := x.instances[p.group][q.seq]
	if c == nil {
		c = &instance{instr: slices.Repeat([]int32{-1}, len(members)), at: make([]int64, len(members)), first: signatureOf(in)}
		x.instances[p.group][q.seq] = c
	}
	c.came++
	c.last = max(c.last, at)
	c.instr[p.member], c.at[p.member] = q.instr, at
	c.split = c.split || signatureOf(in) != c.first
	switch {
	case x.stalled[place64{p.group, q.seq}]:
	case c.split:
		x.short(c, members, in)
	case in.name == "broadcast":
		x.fromRoot(c, members, in)
	case in.name == "reduce":
		x.toRoot(c, members, in, int(p.member))
	case c.came == len(members):
		for m, id := range members {
			x.finish(int(id), c.instr[m], c.last+in.dur)
		}
		delete(x.instances[p.group], q.seq)
	}
}

// short: who brings less than the others is through with his part when all have come.
func (x *run) short(c *instance, members []int64, in *instr) {
	if c.came < len(members) {
		return
	}
	for m, id := range members {
		if x.ranks[id].hit.finishesShort(int(c.instr[m])) {
			x.finish(int(id), c.instr[m], c.last+in.dur)
		}
	}
}

// fromRoot: the root's part of a small broadcast is over when it has sent; receivers need
// the root and nobody else.
func (x *run) fromRoot(c *instance, members []int64, in *instr) {
	if c.instr[in.root] < 0 {
		return
	}
	for m, id := range members {
		if c.instr[m] >= 0 {
			x.finish(int(id), c.instr[m], max(c.at[in.root], c.at[m])+in.dur)
		}
	}
}

// toRoot: senders of a small reduce are through when they have sent; the root needs all.
func (x *run) toRoot(c *instance, members []int64, in *instr, member int) {
	if member != in.root {
		x.finish(int(members[member]), c.instr[member], c.at[member]+in.dur)
	}
	if c.came == len(members) {
		x.finish(int(members[in.root]), c.instr[in.root], c.last+in.dur)
	}
}

// channel is a way of messages between two ranks in a group.
type channel struct {
	group    int32
	src, dst int32
}

// mailbox matches messages of a channel by their order.
type mailbox struct {
	sends, recvs []letter
}

// letter is one side of a message, as part of an instruction.
type letter struct {
	rank, instr int32
	at          int64
	size        int64
	parcel      *parcel
}

// parcel is a coalesced group, or one message: over when all of it is.
type parcel struct {
	open int
	last int64
}

// peer returns the global rank of a message's other side.
func (x *run) peer(r, i int, m message) int {
	to := m.to
	if h := x.ranks[r].hit; h != nil && h.turned(i) {
		to = -to
	}
	return x.neighbour(r, to)
}

// neighbour returns the rank some stages on, in a ring.
func (g *grid) neighbour(r, to int) int {
	return g.at(((g.stage(r)+to)%g.PP+g.PP)%g.PP, g.dp(r), g.tp(r))
}

// exchange posts all messages of an instruction.
func (x *run) exchange(r *rank, in *instr, i int, at int64) {
	p := &parcel{open: len(in.msgs), last: at}
	g := x.places[r.id][in.kind].group
	for _, m := range in.msgs {
		other := x.peer(r.id, i, m)
		l := letter{rank: int32(r.id), instr: int32(i), at: at, size: in.in[0], parcel: p}
		ch := channel{g, int32(r.id), int32(other)}
		if !m.send {
			ch.src, ch.dst = ch.dst, ch.src
		}
		box := x.channels[ch]
		if box == nil {
			box = &mailbox{}
			x.channels[ch] = box
		}
		if m.send {
			box.sends = append(box.sends, l)
			if x.Eager {
				x.delivered(&l, at+in.dur)
			}
		} else {
			box.recvs = append(box.recvs, l)
		}
		x.match(box, g, in.dur)
	}
}

func (x *run) match(box *mailbox, g int32, dur int64) {
	for len(box.sends) > 0 && len(box.recvs) > 0 {
		s, d := box.sends[0], box.recvs[0]
		if s.size != d.size || x.lost(g, &s) || x.lost(g, &d) {
			return
		}
		box.sends, box.recvs = box.sends[1:], box.recvs[1:]
		end := max(s.at, d.at) + dur
		if !x.Eager {
			x.delivered(&s, end)
		}
		x.delivered(&d, end)
	}
}

// lost tells whether the network never delivers a message.
func (x *run) lost(_ int32, l *letter) bool {
	h := x.ranks[l.rank].hit
	return h != nil && h.what == stallMessage && h.instr == int(l.instr)
}

func (x *run) delivered(l *letter, at int64) {
	l.parcel.open--
	l.parcel.last = max(l.parcel.last, at)
	if l.parcel.open == 0 {
		x.finish(int(l.rank), l.instr, l.parcel.last)
	}
}
