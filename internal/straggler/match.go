// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// party is one member's operation in a meeting under construction.
type party struct {
	at *rankView
	op *commOp
	// pos is the operation's place among its rank's communication in the step.
	pos int
}

// gathering is a meeting under construction.
type gathering struct {
	kind    model.OpKind
	digest  string // of the members that its communicator has; "" where unknown
	parties []party
	other   *gathering // of the same key, with another digest
	settled bool       // its members have joined another
}

// meetKey is a rendezvous key within one step of one job.
type meetKey struct {
	meet     uint32 // communicator, scope and name
	src, dst int32  // of a message; -1
	number   int64
}

// matcher joins operations. What it fills is used again for the next step.
type matcher struct {
	found meetTable
	order []*gathering // by the first that came
	free  []*gathering
	met   []*gathering // of the last step, by the first that came
	// sorted are those in order, and begins where those of each place begin among them.
	sorted []*gathering
	begins []int
}

// match joins the communication operations of all ranks into meetings and
// returns how many operations found no partner.
func (j *job) match(views []*rankView) (met []*gathering, unmatched int) {
	unmatched = resyncOrdinals(views)
	j.recount(views)
	met, more := j.join(views)
	return met, unmatched + more
}

// join joins operations that bear one key.
func (j *job) join(views []*rankView) (met []*gathering, unmatched int) {
	m := &j.matcher
	comms := 0
	for _, v := range views {
		comms += len(v.comms)
	}
	m.reset(comms)
	for _, v := range views {
		for i := range v.comms {
			op := &v.comms[i]
			key, ok := v.rendezvous(op)
			if !ok {
				j.unjoined.refuse(op)
				unmatched++
				continue
			}
			if !m.of(key, op).join(party{at: v, op: op, pos: i}) {
				j.e.stats.DuplicateOps++
				v.twice++
			}
		}
	}
	j.e.stats.DuplicateOps += int64(m.settle())
	met = m.met[:0]
	for _, g := range m.order {
		if g.settled {
			continue
		}
		if len(g.parties) < 2 || !g.consistent() {
			j.unjoined.part(g)
			unmatched += len(g.parties)
			continue
		}
		met = append(met, g)
	}
	m.met = met
	return m.inOrder(), unmatched
}

// inOrder returns the meetings by the place of their first party's operation in its
// rank's step, those of one place by that rank.
func (m *matcher) inOrder() []*gathering {
	m.begins = m.begins[:0]
	for _, g := range m.met {
		pos := g.parties[0].pos + 1
		if more := pos + 1 - len(m.begins); more > 0 {
			m.begins = append(m.begins, make([]int, more)...)
		}
		m.begins[pos]++
	}
	for i := 1; i < len(m.begins); i++ {
		m.begins[i] += m.begins[i-1]
	}
	m.sorted = slices.Grow(m.sorted[:0], len(m.met))[:len(m.met)]
	for _, g := range m.met {
		at := &m.begins[g.parties[0].pos]
		m.sorted[*at] = g
		*at++
	}
	return m.sorted
}

// ends returns the ranks of a message; -1 of a collective.
func (p *party) ends() (src, dst int32) {
	if p.op.form.kind == model.KindCollective {
		return -1, -1
	}
	src, dst = int32(p.at.rank.Rank), p.op.peer
	if p.op.form.kind == model.KindRecv {
		src, dst = dst, src
	}
	return src, dst
}

// rendezvous returns the key under which the operation meets others, as
// model.Rendezvous does.
func (v *rankView) rendezvous(op *commOp) (meetKey, bool) {
	if !op.numbered || op.form.scope == model.ScopeProcess || op.form.scope == "" {
		return meetKey{}, false
	}
	k := meetKey{meet: op.form.meet, src: -1, dst: -1, number: op.number}
	if op.form.kind == model.KindCollective {
		return k, true
	}
	if op.peer < 0 || v.rank.Rank < 0 || v.rank.Rank > math.MaxInt32 {
		return meetKey{}, false
	}
	k.src, k.dst = int32(v.rank.Rank), op.peer
	if op.form.kind == model.KindRecv {
		k.src, k.dst = k.dst, k.src
	}
	return k, true
}

// reset takes back what the last step needed, and makes ready for so many operations.
func (m *matcher) reset(comms int) {
	m.found.reset(comms)
	for _, g := range m.order {
		clear(g.parties)
		*g = gathering{parties: g.parties[:0]}
	}
	m.free = append(m.free, m.order...)
	m.order = m.order[:0]
}

// of returns the gathering of an operation. Groups without a common member may bear
// one name, as PyTorch's split groups do; the digest of their ranks tells them apart.
func (m *matcher) of(key meetKey, op *commOp) *gathering {
	at := m.found.at(key)
	first := *at
	for g := first; g != nil; g = g.other {
		if g.digest == op.form.digest {
			return g
		}
	}
	var g *gathering
	if n := len(m.free); n > 0 {
		g, m.free = m.free[n-1], m.free[:n-1]
	} else {
		g = &gathering{}
	}
	g.kind, g.digest, g.other = op.form.kind, op.form.digest, first
	*at = g
	m.order = append(m.order, g)
	return g
}

// settle joins members that do not know their group's ranks with the only group there
// is, unless they are in it already; among several groups they stay apart.
func (m *matcher) settle() (twice int) {
	for _, g := range m.found.first {
		if g.other == nil || g.other.other != nil {
			continue
		}
		unknown, only := g, g.other
		if unknown.digest != "" {
			unknown, only = only, unknown
		}
		if unknown.digest == "" {
			twice += only.absorb(unknown)
			unknown.settled = true
		}
	}
	return twice
}

// absorb takes the parties of o whose ranks are not in g, and counts the others.
func (g *gathering) absorb(o *gathering) (twice int) {
	in := map[*rankView]bool{}
	for _, p := range g.parties {
		in[p.at] = true
	}
	for _, p := range o.parties {
		if in[p.at] {
			twice++
			continue
		}
		g.parties = append(g.parties, p)
	}
	slices.SortFunc(g.parties, func(a, b party) int { return cmp.Compare(a.at.index, b.at.index) })
	return twice
}

// join adds a party; false where its rank is in already. Parties come rank by rank.
func (g *gathering) join(p party) bool {
	if n := len(g.parties); n > 0 && g.parties[n-1].at == p.at {
		return false
	}
	g.parties = append(g.parties, p)
	return true
}

// size returns how many members the communicator has, 0 where unknown.
func (g *gathering) size() int {
	if g.kind != model.KindCollective {
		return 2
	}
	var n int64
	for _, p := range g.parties {
		n = max(n, p.op.form.size)
	}
	return int(n)
}

func (g *gathering) name() string {
	if g.kind != model.KindCollective {
		return model.SendRecv
	}
	return g.parties[0].op.form.collective
}

func (g *gathering) bytes() int64 { return max(0, g.parties[0].op.bytes) }

// waiters says who waits for whom: every member for the last, or only some for
// one.
type waiters uint8

const (
	waitNobody    waiters = iota // not decidable from what was recorded
	waitAll                      // everyone for the last arriver
	waitForRoot                  // leaves of a broadcast for its root
	waitForSender                // the receiver for the sender
)

// waiters returns the meeting's rule. An all_to_all is taken to make everyone
// wait: each member needs every other's part, save where splits are empty. That
// serves the attribution of waits, which is an estimate; as a constraint on
// clocks it is not used.
func (g *gathering) waiters() waiters {
	if g.kind != model.KindCollective {
		return waitForSender
	}
	switch g.name() {
	case model.AllReduce, model.AllGather, model.ReduceScatter, model.Barrier, model.AllToAll:
		return waitAll
	case model.Broadcast:
		if g.root() >= 0 {
			return waitForRoot
		}
	}
	return waitNobody
}

// root returns the index of the root among the parties, or -1.
func (g *gathering) root() int {
	if g.kind != model.KindCollective {
		return slices.IndexFunc(g.parties, func(p party) bool { return p.op.form.kind == model.KindSend })
	}
	return slices.IndexFunc(g.parties, func(p party) bool {
		return p.op.root >= 0 && p.op.commRank == p.op.root
	})
}

// meeting is a gathering on the timeline.
type meeting struct {
	*gathering
	rule    waiters
	enter   []int64 // of each party, corrected Unix ns
	exit    []int64
	exposed []int64 // transfer of each party after the last arrival, no computing beside it
	last    int     // party that the others wait for
	arrived int64   // its arrival
	// attributed: the waits are owed to parties[last]. open: they may be owed to a member
	// of which nothing was recorded; where both, that one was hardly later.
	attributed, open bool
	impossible       bool // it cannot have been as stamped
}

// placer puts gatherings on the timeline. What it fills is used again for the next step.
type placer struct {
	meetings []meeting
	times    []int64
	out      []*meeting
	arrivals []uint64 // when the last member of each arrived, and its place
	arrived  []int64  // of every communication
	waits    [][]int64
}

// byArrival returns the placed meetings by their last arrival, those of one instant as they
// were placed.
func (r *placer) byArrival() []*meeting {
	if len(r.meetings) == 0 {
		return r.out
	}
	first, last := r.meetings[0].arrived, r.meetings[0].arrived
	for i := range r.meetings {
		at := r.meetings[i].arrived
		first, last = min(first, at), max(last, at)
	}
	// Both in one number, where there is room for both.
	low := bits.Len(uint(len(r.meetings)))
	if bits.Len64(uint64(last)-uint64(first))+low > 64 {
		slices.SortStableFunc(r.out, func(a, b *meeting) int { return cmp.Compare(a.arrived, b.arrived) })
		return r.out
	}
	r.arrivals = r.arrivals[:0]
	for i := range r.meetings {
		r.arrivals = append(r.arrivals, uint64(r.meetings[i].arrived-first)<<low|uint64(i))
	}
	slices.Sort(r.arrivals)
	for n, a := range r.arrivals {
		r.out[n] = &r.meetings[a&(1<<low-1)]
	}
	return r.out
}

func (r *placer) place(met []*gathering) []*meeting {
	n := 0
	for _, g := range met {
		n += len(g.parties)
	}
	r.times = slices.Grow(r.times[:0], 3*n)[:3*n]
	clear(r.times)
	r.meetings = slices.Grow(r.meetings[:0], len(met))[:len(met)]
	r.out = r.out[:0]
	times := r.times
	for i, g := range met {
		m, n := &r.meetings[i], len(g.parties)
		m.gathering, m.rule, m.enter, m.exit, m.exposed = g, g.waiters(), times[:n:n], times[n:2*n:2*n], times[2*n:3*n:3*n]
		times = times[3*n:]
		m.place()
		r.out = append(r.out, m)
	}
	return r.out
}

// place fills when the parties came and went, and who is waited for.
func (m *meeting) place() {
	for i := range m.parties {
		p := &m.parties[i]
		shift := p.at.shift(p.op)
		m.enter[i], m.exit[i] = p.op.start+shift, p.op.end+shift
	}
	switch m.rule {
	case waitForRoot, waitForSender:
		m.last = m.root()
	default:
		m.last = argmax(m.enter)
	}
	m.arrived = m.enter[m.last]
	m.attributed, m.open = m.rule != waitNobody && m.comparable(), false
	m.impossible = false
}

// withdraw takes the attribution from incomplete meetings whose last seen member
// may have waited itself, for one who was not seen. A member that waits for
// nobody spends the transfer only: so it stays attributed where it left as fast
// as the last arrivers of complete meetings of this kind do, or in a small part
// of the time that the others waited for it. In the latter case one who was not seen may
// still have been the last, by less than that.
func withdraw(meetings []*meeting) {
	if !slices.ContainsFunc(meetings, func(m *meeting) bool { return !m.complete() }) {
		return
	}
	stays := map[kindOfMeeting][]int64{}
	for _, m := range meetings {
		if m.complete() && !m.parties[m.last].op.inferred {
			stays[m.class()] = append(stays[m.class()], m.lastStay())
		}
	}
	for _, m := range meetings {
		if m.complete() {
			continue
		}
		of := stays[m.class()]
		slices.Sort(of)
		usual := stats.MedianMidpoint(of)
		spread := float64(m.arrived - slices.Min(m.enter))
		if stay := m.lastStay(); stay > usual {
			m.open = m.attributed
			m.attributed = m.attributed && stay <= int64(promptLeave*spread)
		}
	}
}

// kindOfMeeting groups meetings whose transfers can be expected to last alike.
type kindOfMeeting struct {
	name, comm  string
	size, scale int
}

func (m *meeting) class() kindOfMeeting {
	return kindOfMeeting{m.name(), m.parties[0].op.form.comm, m.size(), bits.Len64(uint64(max(0, m.bytes())))}
}

// promptLeave is the share of the arrivals' spread within which a last arriver
// must leave to be believed the last although a member is missing.
const promptLeave = 0.25

// lastStay is how long the last arriver stayed.
func (m *meeting) lastStay() int64 { return m.exit[m.last] - m.enter[m.last] }

// complete reports whether every member is here; where the communicator's size
// is not known, it cannot be said, and is taken as yes.
func (g *gathering) complete() bool {
	size := g.size()
	return size == 0 || len(g.parties) >= size
}

// comparable reports whether the stamps of all parties stand on one timeline.
func (g *gathering) comparable() bool {
	first := &g.parties[0]
	for i := 1; i < len(g.parties); i++ {
		p := &g.parties[i]
		if first.op.clock == "" && p.op.clock == "" {
			a, b := &first.at.offset, &p.at.offset
			if a.Reference != b.Reference || a.Conflict || b.Conflict {
				return false
			}
			continue
		}
		a, b := first.at.clockOf(first.op), p.at.clockOf(p.op)
		oa, _ := first.at.clocks.Offset(a)
		ob, _ := p.at.clocks.Offset(b)
		if !first.at.clocks.Comparable(a, b) || oa.Conflict || ob.Conflict {
			return false
		}
	}
	return true
}

// consistent reports whether the parties did the same thing: a name or a size
// that differs tells that a number was shared by different collectives. Bytes
// are compared only where every member moves as many.
func (g *gathering) consistent() bool {
	if g.kind != model.KindCollective {
		return len(g.parties) == 2
	}
	if size := g.size(); size > 0 && len(g.parties) > size {
		return false
	}
	first := g.parties[0].op
	for i := range g.parties {
		op := g.parties[i].op
		if op.form != first.form && op.form.collective != first.form.collective {
			return false
		}
		if op.bytes != first.bytes && op.bytes >= 0 && first.bytes >= 0 && sameBytes(op.form.collective) {
			return false
		}
	}
	return true
}

// sameBytes reports whether all members of the named collective move as many
// bytes. Gathers, scatters and exchanges may be uneven.
func sameBytes(name string) bool {
	return name == model.AllReduce || name == model.Broadcast || name == model.Reduce
}

func argmax(v []int64) int {
	best := 0
	for i := range v {
		if v[i] > v[best] {
			best = i
		}
	}
	return best
}
