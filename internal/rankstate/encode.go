// SPDX-License-Identifier: Apache-2.0

package rankstate

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Encode returns the wire form of s, at most MaxBytes. Where the state is larger than the
// limits, call stacks are left out first, then operations that are over, then open ones from
// the newest on, then members, then communicators: Dropped counts operations, and Partial
// says what else.
func Encode(s *model.RankState) []byte {
	c := fit(s)
	b, ok := encode(&c)
	for _, reduce := range reductions {
		for !ok && reduce(&c) {
			b, ok = encode(&c)
		}
	}
	return b
}

// encode reports whether the form is within the limits.
func encode(s *model.RankState) ([]byte, bool) {
	w := writer{refs: map[string]uint64{"": 0}}
	sections := [sectionsEnd][]byte{
		sectionRank:   w.section(func() { w.rank(&s.Rank) }),
		sectionState:  w.section(func() { w.state(s) }),
		sectionComms:  w.section(func() { w.comms(s.Comms) }),
		sectionOps:    w.section(func() { w.ops(s.Ops) }),
		sectionStacks: w.section(func() { w.stacks(s.Stacks) }),
		sectionHost:   w.section(func() { w.text(s.HostStack) }),
	}
	table := binary.AppendUvarint(make([]byte, 0, len(w.table)+binary.MaxVarintLen32), uint64(len(w.refs)-1))
	sections[sectionStrings] = append(table, w.table...)
	room := len(magic) + 1
	for _, section := range sections {
		room += len(section) + 2*binary.MaxVarintLen32
	}
	out := append(append(make([]byte, 0, room), magic...), Version)
	for i, section := range sections {
		if i >= sectionStrings && (i != sectionHost || s.HostStack != "") {
			out = binary.AppendUvarint(out, uint64(i))
			out = binary.AppendUvarint(out, uint64(len(section)))
			out = append(out, section...)
		}
	}
	return out, len(out) <= MaxBytes && len(w.refs)-1 <= MaxStrings
}

type writer struct {
	refs  map[string]uint64
	table []byte // the strings, each behind its length
	b     []byte
}

func (w *writer) section(put func()) []byte {
	w.b = nil
	put()
	return w.b
}

func (w *writer) uvarint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) varint(v int64)   { w.b = binary.AppendVarint(w.b, v) }

// float writes a number with its bytes turned round: those of plain numbers end in zeros.
func (w *writer) float(v float64) { w.uvarint(bits.ReverseBytes64(math.Float64bits(v))) }

// text writes the place of a string in the table, which gets it.
func (w *writer) text(s string) {
	ref, ok := w.refs[s]
	if !ok {
		ref = uint64(len(w.refs))
		w.refs[s] = ref
		w.table = append(binary.AppendUvarint(w.table, uint64(len(s))), s...)
	}
	w.uvarint(ref)
}

func (w *writer) texts(list ...string) {
	for _, s := range list {
		w.text(s)
	}
}

// optInts writes the values that are known, behind flags and a mask of them: the first's bit
// is first.
func (w *writer) optInts(flags, first uint64, values ...model.Optional[int64]) {
	mask := flags
	for i, o := range values {
		if o.OK {
			mask |= first << i
		}
	}
	w.uvarint(mask)
	for _, o := range values {
		if o.OK {
			w.varint(o.V)
		}
	}
}

func flag(is bool, bit uint64) uint64 {
	if is {
		return bit
	}
	return 0
}

func (w *writer) rank(r *model.Rank) {
	w.varint(r.Rank)
	w.texts(r.JobName, r.JobID, r.Incarnation, r.HostName, r.HostID, r.HWID, r.ClockID)
	p := &r.Parallel
	w.optInts(0, rankLocal, r.LocalRank, r.WorldSize, p.DP, p.PP, p.TP, p.CP, p.EP, r.PID, r.ClockEpoch)
}

func (w *writer) state(s *model.RankState) {
	w.uvarint(flag(s.OnlyActive, stateOnlyActive) | flag(s.Silent.OK, stateSilent) | flag(s.ScopeFor.OK, stateScopeFor))
	w.varint(s.Time)
	w.varint(s.LastEnqueue)
	w.varint(s.Dropped)
	w.texts(string(s.Source), s.Name, s.Partial, s.LibVersion, string(s.Process), s.Phase, s.Scope)
	if s.Silent.OK {
		w.float(s.Silent.V)
	}
	if s.ScopeFor.OK {
		w.float(s.ScopeFor.V)
	}
}

func (w *writer) comms(comms []model.CommState) {
	w.uvarint(uint64(len(comms)))
	for i := range comms {
		c := &comms[i]
		flags := flag(c.MembersInferred, commInferred) | flag(c.P2PShared, commP2PShared) | flag(c.FrontiersInferred, commFrontiersInferred)
		w.optInts(flags, commSize, c.Comm.Size, c.Comm.Rank)
		w.texts(c.Comm.ID, c.Comm.Name, c.Comm.Digest, c.Backend, string(c.Scope), c.Untracked)
		w.b = appendMembers(w.b, c.Members)
		w.uvarint(uint64(len(c.Frontiers)))
		for _, f := range c.Frontiers {
			w.text(f.Func)
			w.optInts(0, frontierEnqueued, f.Enqueued, f.Started, f.Completed, f.FirstKept)
		}
	}
}

func (w *writer) ops(ops []model.StateOp) {
	w.uvarint(uint64(len(ops)))
	var created, seq int64
	for i := range ops {
		o := &ops[i]
		w.opFlags(o)
		w.texts(string(o.Kind), o.Name, o.Recorded, o.In, o.Out, o.InType, o.OutType, o.Thread)
		w.uvarint(uint64(o.Comm))
		w.varint(o.Seq - seq)
		seq = o.Seq
		if o.Created != 0 {
			w.varint(o.Created - created)
			created = o.Created
		}
		if o.Timeout.OK {
			w.float(o.Timeout.V)
		}
		if o.Stack > 0 {
			w.uvarint(uint64(o.Stack))
		}
		for _, p := range []*model.ProxyWait{&o.Send, &o.Receive} {
			if *p != (model.ProxyWait{}) {
				w.wait(p)
			}
		}
		if o.Nth.OK {
			w.varint(o.Nth.V)
		}
	}
}

func (w *writer) opFlags(o *model.StateOp) {
	flags := flag(o.Created != 0, opCreated) | flag(o.Done, opDone) | flag(o.Started, opStarted) | flag(o.Enqueueing, opEnqueueing) |
		flag(o.Timeout.OK, opTimeout) | flag(o.Stack > 0, opStack) |
		flag(o.Send != model.ProxyWait{}, opSend) | flag(o.Receive != model.ProxyWait{}, opReceive) | flag(o.Nth.OK, opNth)
	w.optInts(flags, opBatch, o.Batch, o.Peer, o.PeerLocal, o.Root, o.InElems, o.OutElems, o.Bytes)
}

func (w *writer) wait(p *model.ProxyWait) {
	w.optInts(flag(p.For.OK, waitFor), waitPeer, p.Peer)
	w.text(p.State)
	if p.For.OK {
		w.float(p.For.V)
	}
}

func (w *writer) stacks(stacks []string) {
	w.uvarint(uint64(len(stacks)))
	w.texts(stacks...)
}
