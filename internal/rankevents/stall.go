// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// maxStalls bounds the operations that are told of at a time; each is the oldest
// of its communicator, so that this many communicators hang.
const maxStalls = 1024

// stall is an operation that was told of.
type stall struct {
	op     model.OpenOp
	comm   uint16
	fn     uint8
	toldAt uint64
	pass   uint64 // in which it was last seen
	silent bool   // it was told that its process gives no sign of life
}

// holder is the operation that holds up a communicator: its oldest in flight. One
// that was enqueued long before its turn holds up nobody until then.
type holder struct {
	handle, seen uint64
	since        uint64 // 0: not asked for yet
	next         bool   // another held the communicator before it
}

// stallTable are the operations that were told of, by handle, and the holders of
// communicators.
type stallTable struct {
	told    map[uint64]*stall
	oldest  map[uint16]int // place in slots of the oldest operation, by communicator
	count   map[uint16]int64
	holders map[uint16]holder
}

func (t *stallTable) init() {
	t.told, t.oldest, t.count = map[uint64]*stall{}, map[uint16]int{}, map[uint16]int64{}
	t.holders = map[uint16]holder{}
}

// gather finds the oldest operation in flight on each communicator: those behind
// it wait for it.
func (t *stallTable) gather(slots []ring.Slot) {
	clear(t.oldest)
	clear(t.count)
	for i := range slots {
		comm := slots[i].Record.Comm()
		t.count[comm]++
		if j, ok := t.oldest[comm]; !ok || slots[i].Order < slots[j].Order {
			t.oldest[comm] = i
		}
	}
}

// hold notes which operations are the oldest, and since which pass.
func (t *stallTable) hold(slots []ring.Slot, now uint64) {
	for comm := range t.holders {
		if _, ok := t.oldest[comm]; !ok {
			delete(t.holders, comm)
		}
	}
	for comm, i := range t.oldest {
		if handle := slots[i].Record.Handle(); t.holders[comm].handle != handle {
			_, next := t.holders[comm]
			t.holders[comm] = holder{handle: handle, seen: now, next: next}
		}
	}
}

// stalled tells of operations that have held up their communicator for long, and
// of their end.
func (r *Rank) stalled() {
	if len(r.slots) == 0 && len(r.stalls.told) == 0 {
		clear(r.stalls.holders)
		return
	}
	r.stalls.gather(r.slots)
	r.stalls.hold(r.slots, r.now)
	after, repeat := uint64(r.node.cfg.StallAfter), uint64(r.node.cfg.StallRepeat)
	read := false
	for comm, i := range r.stalls.oldest {
		s := &r.slots[i]
		if r.now < s.Record.EnqueueBegin()+after {
			continue
		}
		if !read {
			r.frontiers, read = r.src.Frontiers(r.frontiers[:0]), true
		}
		if r.now < r.holdsSince(s)+after {
			continue
		}
		r.tell(s, r.stalls.count[comm]-1, repeat)
	}
	for handle, st := range r.stalls.told {
		if st.pass == r.pass || r.slotOpen(handle) {
			continue
		}
		if !read {
			r.frontiers, read = r.src.Frontiers(r.frontiers[:0]), true
		}
		delete(r.stalls.told, handle)
		r.batch.Open = append(r.batch.Open, r.closedOp(st))
	}
}

// closedOp is an operation that was told of and has ended: who it was, and what is
// so now.
func (r *Rank) closedOp(st *stall) model.OpenOp {
	o := model.OpenOp{
		Op: st.op.Op, Time: r.unix(r.now), Since: st.op.Since, Status: model.StatusClosed,
		Age:    seconds(r.now - min(uint64(st.op.Since), r.now)),
		Behind: r.stalls.count[st.comm], InFlight: int64(len(r.slots)),
	}
	o.Op.Collective.State, o.Op.Waits = "", model.ProxyWaits{}
	if o.Op.Kind == model.KindCollective { // with whom its proxy waited
		o.Op.Peer, o.Op.PeerLocal = model.Optional[int64]{}, model.Optional[int64]{}
	}
	r.reach(&o, st.comm, st.fn)
	return o
}

// holdsSince returns since when the oldest operation of its communicator holds it
// up: since it was enqueued, or since the last before it completed, where that was
// later. What completed after it was first seen, on another stream, says nothing.
func (r *Rank) holdsSince(s *ring.Slot) uint64 {
	comm := s.Record.Comm()
	h := r.stalls.holders[comm]
	if h.since != 0 {
		return h.since
	}
	h.since = s.Record.EnqueueBegin()
	known := false
	for i := range r.frontiers {
		if f := &r.frontiers[i]; f.Comm == comm && f.Completed.Known {
			h.since, known = max(h.since, min(f.Completed.At, h.seen)), true
		}
	}
	if h.next && !known {
		h.since = max(h.since, h.seen)
	}
	r.stalls.holders[comm] = h
	return h.since
}

func (r *Rank) slotOpen(handle uint64) bool {
	for i := range r.slots {
		if r.slots[i].Record.Handle() == handle {
			return true
		}
	}
	return false
}

func (r *Rank) tell(s *ring.Slot, behind int64, repeat uint64) {
	handle := s.Record.Handle()
	st := r.stalls.told[handle]
	status := model.StatusUpdated
	if st == nil {
		if len(r.stalls.told) >= maxStalls {
			r.stats.OpenOverflow++
			return
		}
		st = &stall{comm: s.Record.Comm(), fn: s.Record.Func()}
		r.stalls.told[handle] = st
		status = model.StatusOpen
	}
	st.pass = r.pass
	silent, _ := r.silence()
	if status == model.StatusUpdated && r.now < st.toldAt+repeat && (!silent || st.silent) {
		return
	}
	st.toldAt, st.silent = r.now, st.silent || silent
	st.op = r.openOp(s, behind)
	st.op.Status = status
	r.batch.Open = append(r.batch.Open, st.op)
}

// died tells of what a process left open: the oldest operation of each
// communicator, each with the number of those behind it. It is noticed late, by a
// reader that came later very late: the events are of its last sign of life.
func (r *Rank) died() {
	r.now = r.lastSign()
	r.stalls.gather(r.slots)
	r.frontiers = r.src.Frontiers(r.frontiers[:0])
	for comm, i := range r.stalls.oldest {
		op := r.openOp(&r.slots[i], r.stalls.count[comm]-1)
		op.Status, op.ProcessDied, op.InFlight = model.StatusOpen, true, int64(len(r.slots))
		op.Silent = model.Optional[float64]{} // for ever
		r.batch.Open = append(r.batch.Open, op)
	}
}

// lastSign is when a process was last seen to live: by its heartbeat, or by what it
// left open.
func (r *Rank) lastSign() uint64 {
	last := r.src.Heartbeat()
	for i := range r.slots {
		s := &r.slots[i]
		last = max(last, s.Last, s.Record.EnqueueBegin())
	}
	if last == 0 {
		return r.now
	}
	return min(last, r.now)
}

// proxyStates are the values of lockstep.proxy.state.
var proxyStates = map[ring.ProxyState]string{
	ring.ProxySendGPU: "send_gpu", ring.ProxySendPeer: "send_peer", ring.ProxySendWire: "send_wire",
	ring.ProxyRecv: "recv_peer_or_wire", ring.ProxyRecvFlush: "recv_flush", ring.ProxyRecvGPU: "recv_gpu",
}

func (r *Rank) openOp(s *ring.Slot, behind int64) model.OpenOp {
	rec := &s.Record
	c := r.comm(rec.Comm())
	f := r.fn(c, rec.Func())
	launch := rec.EnqueueBegin()
	var op model.Op
	r.operation(&op, rec, c, f, times{launch: launch, start: launch, end: launch})
	op.EndInferred = false // it has none
	op.Collective.State = "started"
	if s.State <= ring.SlotEnqueued {
		op.Collective.State = "scheduled"
	}
	if n, ok := rec.Step(); ok {
		op.Step = model.Some(int64(n))
	}
	_, silent := r.silence()
	open := model.OpenOp{
		Op: op, Time: r.unix(r.now), Since: int64(launch), Age: seconds(r.now - min(launch, r.now)), Behind: behind,
		InFlight: int64(len(r.slots)), Enqueueing: s.State == ring.SlotEnqueueing,
		Send: r.proxyWait(c, s.Send), Receive: r.proxyWait(c, s.Receive), Silent: silent,
	}
	if state := proxyStates[s.Proxy]; state != "" && s.ProxySince != 0 {
		open.ProxyState = state
		open.ProxyFor = model.Some(seconds(r.now - min(s.ProxySince, r.now)))
		r.peer(&open.Op, c, s.ProxyPeer)
	}
	open.Scope, _, open.ScopeFor = r.hostScope()
	r.reach(&open, rec.Comm(), rec.Func())
	return open
}

func (r *Rank) proxyWait(c *commState, w ring.Wait) model.ProxyWait {
	state := proxyStates[w.State]
	if state == "" {
		return model.ProxyWait{}
	}
	return model.ProxyWait{
		State: state, For: model.Some(seconds(r.now - min(w.Since, r.now))), Peer: r.node.globalRank(c.comm.Hash, w.Peer),
	}
}

// silence is how long the process has given no sign of life, and whether that is
// longer than one that runs takes.
func (r *Rank) silence() (long bool, s model.Optional[float64]) {
	if r.src.Heartbeat() == 0 {
		return false, s
	}
	ns := r.now - r.lastSign()
	return ns >= uint64(model.SilentAfter), model.Some(seconds(ns))
}

// reach fills in how far the function of an operation has come.
func (r *Rank) reach(o *model.OpenOp, comm uint16, fn uint8) {
	for i := range r.frontiers {
		if f := &r.frontiers[i]; f.Comm == comm && f.Func == fn {
			o.Enqueued, o.Started, o.Completed = reached(f.Enqueued), reached(f.Started), reached(f.Completed)
		}
	}
}

func reached(m ring.Mark) model.Optional[int64] {
	return model.Optional[int64]{V: int64(m.Seq), OK: m.Known}
}
