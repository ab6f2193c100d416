// SPDX-License-Identifier: Apache-2.0

package rankstate

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// The least bytes that a record takes.
const (
	leastComm     = 9 // flags, six strings, and two counts
	leastFrontier = 2
	leastOp       = 11 // flags, eight strings, communicator and number
	leastStack    = 1
)

func (r *reader) rank(k *model.Rank) {
	k.Rank = r.varint()
	if notRank(k.Rank) {
		r.fail("read rank: got %d; want 0 to %d", k.Rank, math.MaxInt32)
	}
	r.texts(&k.JobName, &k.JobID, &k.Incarnation, &k.HostName, &k.HostID, &k.HWID, &k.ClockID)
	p := &k.Parallel
	r.optInts(r.mask(rankEnd), rankLocal, &k.LocalRank, &k.WorldSize, &p.DP, &p.PP, &p.TP, &p.CP, &p.EP, &k.PID, &k.ClockEpoch)
}

func (r *reader) state(s *model.RankState) {
	m := r.mask(stateEnd)
	s.OnlyActive = m&stateOnlyActive != 0
	s.Time = r.varint()
	s.LastEnqueue = r.varint()
	s.Dropped = r.varint()
	r.texts((*string)(&s.Source), &s.Name, &s.Partial, &s.LibVersion, (*string)(&s.Process), &s.Phase, &s.Scope)
	s.Silent = r.optFloat(m&stateSilent != 0)
	s.ScopeFor = r.optFloat(m&stateScopeFor != 0)
}

func (r *reader) comms(s *model.RankState) {
	n := r.records("communicators", MaxComms, leastComm)
	if n == 0 {
		return
	}
	if cap(s.Comms) < n {
		s.Comms = make([]model.CommState, n)
	}
	s.Comms = s.Comms[:n]
	for i := range s.Comms {
		s.Comms[i] = model.CommState{Frontiers: s.Comms[i].Frontiers[:0]}
		if r.err != nil {
			return
		}
		r.comm(&s.Comms[i])
	}
}

func (r *reader) comm(c *model.CommState) {
	m := r.mask(commEnd)
	c.MembersInferred = m&commInferred != 0
	c.P2PShared = m&commP2PShared != 0
	c.FrontiersInferred = m&commFrontiersInferred != 0
	r.optInts(m, commSize, &c.Comm.Size, &c.Comm.Rank)
	r.texts(&c.Comm.ID, &c.Comm.Name, &c.Comm.Digest, &c.Backend, (*string)(&c.Scope), &c.Untracked)
	c.Members = r.members(r.room)
	r.room -= len(c.Members)
	n := r.records("frontiers", MaxFrontiers, leastFrontier)
	if n == 0 {
		return
	}
	c.Frontiers = sized(c.Frontiers, n)
	for i := range c.Frontiers {
		f := &c.Frontiers[i]
		f.Func = r.text()
		r.optInts(r.mask(frontierEnd), frontierEnqueued, &f.Enqueued, &f.Started, &f.Completed, &f.FirstKept)
	}
}

func (r *reader) ops(s *model.RankState) {
	n := r.records("operations", MaxOps, leastOp)
	if n == 0 {
		return
	}
	s.Ops = sized(s.Ops, n)
	var created, seq int64
	for i := range s.Ops {
		if r.err != nil {
			return
		}
		r.op(&s.Ops[i], &created, &seq)
		if c := s.Ops[i].Comm; c >= len(s.Comms) {
			r.fail("read operation: got place %d of %d communicators", c, len(s.Comms))
		}
	}
}

// op reads an operation; created and seq are those of the one before.
func (r *reader) op(o *model.StateOp, created, seq *int64) {
	m := r.mask(opEnd)
	o.Done, o.Started, o.Enqueueing = m&opDone != 0, m&opStarted != 0, m&opEnqueueing != 0
	r.optInts(m, opBatch, &o.Batch, &o.Peer, &o.PeerLocal, &o.Root, &o.InElems, &o.OutElems, &o.Bytes)
	r.texts((*string)(&o.Kind), &o.Name, &o.Recorded, &o.In, &o.Out, &o.InType, &o.OutType, &o.Thread)
	if r.err == nil && !knownKind(o.Kind) {
		r.fail("read operation: got kind %.40q; want a collective, a send or a receive", o.Kind)
	}
	o.Comm = r.count("a communicator", MaxComms)
	*seq += r.varint()
	o.Seq = *seq
	if m&opCreated != 0 {
		*created += r.varint()
		o.Created = *created
	}
	o.Timeout = r.optFloat(m&opTimeout != 0)
	if m&opStack != 0 {
		o.Stack = r.count("a call stack", MaxStacks)
	}
	if m&opSend != 0 {
		r.wait(&o.Send)
	}
	if m&opReceive != 0 {
		r.wait(&o.Receive)
	}
	r.optInts(m, opNth, &o.Nth)
}

func (r *reader) wait(w *model.ProxyWait) {
	m := r.mask(waitEnd)
	r.optInts(m, waitPeer, &w.Peer)
	w.State = r.text()
	w.For = r.optFloat(m&waitFor != 0)
}

func (r *reader) stacks(s *model.RankState) {
	n := r.records("call stacks", MaxStacks, leastStack)
	if n == 0 {
		return
	}
	s.Stacks = sized(s.Stacks, n)
	for i := range s.Stacks {
		s.Stacks[i] = r.text()
	}
}
