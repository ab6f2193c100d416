// SPDX-License-Identifier: Apache-2.0

package model

import (
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// Data of users that is kept is bounded in bytes. Bytes estimates what a value takes: its size,
// what its slices hold, and its texts, each as if it were its own.

func textBytes(texts ...string) (n int) {
	for _, t := range texts {
		n += len(t)
	}
	return n
}

const bytesOfInt = 8

// TextBytes returns the bytes of a rank's texts.
func (r *Rank) TextBytes() int {
	return textBytes(r.JobName, r.JobID, r.Incarnation, r.HostName, r.HostID, r.HWID, r.ClockID)
}

// TextBytes returns the bytes of a communicator's texts.
func (c *Comm) TextBytes() int { return len(c.ID) + len(c.Name) + len(c.Digest) }

// Bytes estimates what a finding takes.
func (f *Finding) Bytes() int {
	return int(unsafe.Sizeof(*f)) + bytesOfInt*(len(f.Ranks)+len(f.Waiting)+len(f.Candidates)) + len(f.Links)*int(unsafe.Sizeof(SpanRef{})) +
		textBytes(f.JobName, f.JobID, f.Incarnation, f.Kind, f.Class, f.Cause, f.ID, f.Status, f.Host, f.HWID, f.Op, f.CommID, f.CommName,
			f.Link, f.Clock, f.Stack, f.Action, f.IncidentID) + evidence.Bytes(f.Evidence)
}

// Bytes estimates what an operation takes.
func (o *Op) Bytes() int {
	c := &o.Collective
	return int(unsafe.Sizeof(*o)) + len(o.Links)*int(unsafe.Sizeof(SpanRef{})) + o.Comm.TextBytes() +
		textBytes(string(o.Kind), o.Name, o.Key, o.ClockID, o.Phase, o.WorkGrid, o.Stack, c.Name, string(c.SeqScope), c.DType, c.Algo, c.Proto, c.State,
			o.Clock.Timeline, o.Clock.Verdict, o.Straggler.Class)
}

// Bytes estimates what operations of a rank take.
func (r *RankOps) Bytes() int {
	n := int(unsafe.Sizeof(*r)) + r.Rank.TextBytes()
	for i := range r.Ops {
		n += r.Ops[i].Bytes()
	}
	return n
}

// Bytes estimates what an operation in flight takes.
func (o *OpenOp) Bytes() int {
	return int(unsafe.Sizeof(*o)-unsafe.Sizeof(o.Op)) + o.Op.Bytes() + textBytes(o.Status, o.ProxyState, o.Send.State, o.Receive.State, o.Scope)
}

// Bytes estimates what a state takes, without the lists of members: the states of a job share them.
func (s *RankState) Bytes() int {
	n := int(unsafe.Sizeof(*s)) + s.Rank.TextBytes() + textBytes(string(s.Source), s.Name, s.Partial, s.LibVersion, string(s.Process), s.Phase, s.Scope, s.HostStack) +
		cap(s.Comms)*int(unsafe.Sizeof(CommState{})) + cap(s.Ops)*int(unsafe.Sizeof(StateOp{})) + cap(s.Stacks)*int(unsafe.Sizeof(""))
	for i := range s.Comms {
		c := &s.Comms[i]
		n += c.Comm.TextBytes() + len(c.Backend) + len(c.Scope) + len(c.Untracked) + cap(c.Frontiers)*int(unsafe.Sizeof(Frontier{}))
		for k := range c.Frontiers {
			n += len(c.Frontiers[k].Func)
		}
	}
	for i := range s.Ops {
		o := &s.Ops[i]
		n += len(o.Kind) + len(o.Name) + len(o.Recorded) + len(o.In) + len(o.Out) + len(o.InType) + len(o.OutType) + len(o.Thread) +
			len(o.Send.State) + len(o.Receive.State)
	}
	return n + textBytes(s.Stacks...)
}
