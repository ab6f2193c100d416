// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// standing is what is known of a rank that does not go on.
type standing struct {
	told    bool   // its state is told of, and has to be once more when it goes on
	toldAt  uint64 // ns
	quietAt uint64 // before then it has not been without traffic for StallAfter
	unseen  uint64 // what the ring had no room for when the rank was last seen to go on
	slots   []ring.Slot
	places  map[uint16]int // in RankState.Comms, by communicator
}

// watch hands on the state of a rank that stalls or has no traffic, again each
// StateInterval, and once more when it goes on. A rank that works costs one comparison, and
// a reading of its frontiers per StallAfter.
func (r *Rank) watch() {
	st := &r.standing
	if r.node.cfg.StateInterval <= 0 {
		return
	}
	stands := len(r.stalls.told) > 0 || r.quiet()
	switch {
	case stands && st.told && r.now < st.toldAt+uint64(r.node.cfg.StateInterval):
		return
	case !stands && !st.told:
		return
	}
	st.told, st.toldAt = stands, r.now
	process := model.ProcessState("")
	if pid, ok := r.src.Holder(); ok {
		process = processState(procDirectory, pid)
	}
	r.handOnState(process)
}

// quiet reports whether the rank has had traffic, and for StallAfter none.
func (r *Rank) quiet() bool {
	st := &r.standing
	if r.now < st.quietAt {
		return false
	}
	after := uint64(r.node.cfg.StallAfter)
	last := r.lastTraffic()
	st.quietAt = last + after
	if last == 0 {
		st.quietAt = r.now + after
	}
	if r.now >= st.quietAt {
		return true
	}
	st.unseen = r.unseen()
	return false
}

// unseen counts what the ring had no room for.
func (r *Rank) unseen() uint64 {
	d := r.src.Drops()
	return d[ring.DropSlots] + d[ring.DropComms] + d[ring.DropFrontiers]
}

// lastTraffic is when the rank last enqueued or completed an operation; 0 where it has not.
func (r *Rank) lastTraffic() (last uint64) {
	r.frontiers = r.src.Frontiers(r.frontiers[:0])
	for i := range r.frontiers {
		f := &r.frontiers[i]
		last = max(last, f.Enqueued.At, f.Completed.At)
	}
	for i := range r.slots {
		last = max(last, r.slots[i].Record.EnqueueBegin())
	}
	return min(last, r.now)
}

// ended hands on the state of a rank whose process is gone. Only one that closed its ring
// ended in order: a process that is killed, or calls _exit, leaves it open.
func (r *Rank) ended(died bool) {
	if r.node.cfg.StateInterval <= 0 || r.lastTraffic() == 0 {
		return
	}
	if died {
		r.handOnState(model.ProcessDead)
		return
	}
	if _, closed, err := r.src.Alive(); closed && err == nil {
		r.handOnState(model.ProcessEnded)
	}
}

// handOnState reads the frontiers before what is open: what is then open was not complete
// when they were read.
func (r *Rank) handOnState(process model.ProcessState) {
	st := &r.standing
	r.frontiers = r.src.Frontiers(r.frontiers[:0])
	st.slots = r.src.InFlight(st.slots[:0])
	s := model.RankState{
		Rank: r.Identity(), Time: r.unix(r.now), Source: model.StateRankEvents, Process: process,
	}
	s.Scope, s.Phase, s.ScopeFor = r.hostScope()
	_, s.Silent = r.silence()
	if n := r.unseen(); n > st.unseen {
		s.Partial = "the ring had no room for " + itoa(int64(n-st.unseen)) + " operations, scopes or communicators"
	}
	st.places = map[uint16]int{}
	r.stateOps(&s)
	r.stateFrontiers(&s)
	r.batch.States = append(r.batch.States, s)
}

// commPlace returns where a communicator stands in the state, and puts it there. What has no
// entry in the ring's table is none that others know.
func (r *Rank) commPlace(s *model.RankState, index uint16) (int, bool) {
	if at, ok := r.standing.places[index]; ok {
		return at, true
	}
	c := r.comm(index)
	if c.comm.Hash == 0 {
		return 0, false
	}
	for i := range s.Comms {
		if s.Comms[i].Comm.ID == c.id { // made anew under one hash
			r.standing.places[index] = i
			return i, true
		}
	}
	s.Comms = append(s.Comms, model.CommState{
		Comm:    model.Comm{ID: c.id, Name: c.comm.Name, Digest: r.digest(c), Size: positive(c.comm.Ranks), Rank: known(c.comm.Rank)},
		Backend: "nccl", Members: r.node.membersOf(c.comm.Hash), Scope: model.ScopeCommFunc,
	})
	r.standing.places[index] = len(s.Comms) - 1
	return len(s.Comms) - 1, true
}

// stateOps adds what is open, in the order in which it was enqueued.
func (r *Rank) stateOps(s *model.RankState) {
	slots := r.standing.slots
	slices.SortFunc(slots, func(a, b ring.Slot) int {
		return cmp.Or(cmp.Compare(a.Record.EnqueueBegin(), b.Record.EnqueueBegin()), cmp.Compare(a.Order, b.Order))
	})
	for i := range slots {
		slot := &slots[i]
		at, ok := r.commPlace(s, slot.Record.Comm())
		switch {
		case slot.State == ring.SlotEnding:
		case !ok || len(s.Ops) >= maxStalls:
			s.Dropped++
		default:
			s.Ops = append(s.Ops, r.stateOp(slot, at))
		}
		s.LastEnqueue = max(s.LastEnqueue, r.unix(slot.Record.EnqueueBegin()))
	}
}

func (r *Rank) stateOp(slot *ring.Slot, at int) model.StateOp {
	rec := &slot.Record
	c := r.comm(rec.Comm())
	f := r.fn(c, rec.Func())
	flags := rec.Flags()
	o := model.StateOp{
		Kind: model.KindCollective, Name: f.name, Recorded: r.src.String(uint16(rec.Func())), Comm: at, Seq: int64(rec.Seq()),
		Bytes: model.Some(int64(rec.Bytes())), InType: r.dtype(rec.DType()), OutType: r.dtype(rec.DType()),
		Created: r.unix(rec.EnqueueBegin()), Started: slot.State > ring.SlotEnqueued, Enqueueing: slot.State == ring.SlotEnqueueing,
		Send: r.proxyWait(c, slot.Send), Receive: r.proxyWait(c, slot.Receive),
	}
	if flags&ring.FlagGroup != 0 && rec.Group() != 0 {
		o.Batch = model.Some(int64(rec.Group()))
	}
	switch {
	case flags&ring.FlagSend != 0:
		o.Kind, o.Name = model.KindSend, model.OpSend
	case flags&ring.FlagRecv != 0:
		o.Kind, o.Name = model.KindRecv, model.OpRecv
	default:
		o.Root = rootOf(rec, f)
		return o
	}
	if o.Peer = r.node.globalRank(c.comm.Hash, rec.Peer()); !o.Peer.OK {
		o.PeerLocal = known(rec.Peer())
	}
	if n := rec.Seq(); n <= math.MaxInt64 { // else there was no room to count it
		o.Nth = model.Some(int64(n))
	}
	return o
}

// stateFrontiers adds how far each function has come. Messages are numbered per pair and
// counted over all: the two compare only where there is one pair.
func (r *Rank) stateFrontiers(s *model.RankState) {
	for i := range r.frontiers {
		f := &r.frontiers[i]
		s.LastEnqueue = max(s.LastEnqueue, r.enqueuedAt(f))
		c := r.comm(f.Comm)
		if _, used := r.standing.places[f.Comm]; c.comm.Ended && !used {
			continue
		}
		at, ok := r.commPlace(s, f.Comm)
		if !ok {
			continue
		}
		name := r.fn(c, f.Func).name
		if (name == model.OpSend || name == model.OpRecv) && c.comm.Ranks != 2 {
			continue
		}
		to := model.Frontier{Func: name, Enqueued: reached(f.Enqueued), Started: reached(f.Started), Completed: reached(f.Completed)}
		settle(&to, s.Ops, at, f.Open)
		s.Comms[at].Frontiers = append(s.Comms[at].Frontiers, to)
	}
}

func (r *Rank) enqueuedAt(f *ring.Frontier) int64 {
	if !f.Enqueued.Known || f.Enqueued.At == 0 {
		return 0
	}
	return r.unix(min(f.Enqueued.At, r.now))
}

// settle makes a frontier agree with what is open: all before the first that is open is
// over, and what is open was enqueued. Where neither says that all of it was completed, as
// of operations whose end nobody sees, it is not known how far that is.
func settle(f *model.Frontier, ops []model.StateOp, comm int, open uint64) {
	first, any := int64(0), false
	for i := range ops {
		o := &ops[i]
		if o.Comm != comm || o.Name != f.Func {
			continue
		}
		if !any || o.Seq < first {
			first, any = o.Seq, true
		}
		f.Enqueued = model.Some(max(f.Enqueued.Or(o.Seq), o.Seq))
	}
	if !f.Completed.OK {
		return
	}
	switch {
	case any && f.Completed.V >= first-1:
		f.Completed.V = first - 1
	case any, open == 0 && f.Completed.V < f.Enqueued.V:
		f.Completed = model.Optional[int64]{}
	}
}
