// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"iter"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/torchname"
)

// What a duration was measured with.
const (
	// TimingEvents: the device's events (TORCH_NCCL_ENABLE_TIMING).
	TimingEvents = "device_events"
	// TimingWatchdog: when PyTorch's watchdog, which looks now and then, saw it start and end.
	TimingWatchdog = "watchdog"
)

// FinishedOp is an operation that was over when the dump was written.
type FinishedOp struct {
	// Op ends when it was seen to be over, some time after it was. Where its duration was
	// measured, it begins that long before; else it begins when it was enqueued, and its end
	// counts as inferred.
	Op model.Op
	// Latency is from when it was enqueued to when it was seen to have started, s: unknown by
	// default, since that needs TORCH_NCCL_ENABLE_TIMING.
	Latency  model.Optional[float64]
	Duration model.Optional[float64] // s
	Timing   string                  // of Duration
}

// Finished are the operations of a dump that were seen to be over after a time, Unix ns.
// Those whose end was not stamped, as with Gloo, are not among them.
func Finished(s *model.RankState, d *flightrecorder.Dump, after int64) iter.Seq[FinishedOp] {
	comms := map[flightrecorder.Tag]*model.CommState{}
	for i := range s.Comms {
		c := &s.Comms[i]
		comms[flightrecorder.Tag{Name: c.Comm.ID, Desc: c.Comm.Name}] = c
	}
	return func(yield func(FinishedOp) bool) {
		for i := range d.Entries {
			e := &d.Entries[i]
			if e.State != flightrecorder.Completed || e.Created <= 0 || e.EndSeen < e.Created || e.EndSeen <= after {
				continue
			}
			tag := d.Tag(e)
			c := comms[tag]
			if c == nil {
				c = &model.CommState{Comm: model.Comm{ID: tag.Name, Name: tag.Desc}, Scope: model.ScopeComm}
			}
			f := FinishedOp{Op: finishedOp(d, e, c)}
			f.time(e)
			if !yield(f) {
				return
			}
		}
	}
}

// time sets when it began and ended, as well as that is known.
func (f *FinishedOp) time(e *flightrecorder.Entry) {
	f.Op.Start, f.Op.End, f.Op.EndInferred = e.Created, e.EndSeen, true
	started := e.StartSeen >= e.Created && e.StartSeen <= e.EndSeen
	if started {
		f.Latency = model.Some(seconds(e.StartSeen - e.Created))
	}
	switch {
	case e.Duration >= 0 && e.Duration*msToNs <= float64(e.EndSeen-e.Created):
		f.Duration, f.Timing = model.Some(e.Duration*1e-3), TimingEvents
		f.Op.Start, f.Op.EndInferred = e.EndSeen-int64(e.Duration*msToNs), false
	case started:
		f.Duration, f.Timing = model.Some(seconds(e.EndSeen-e.StartSeen)), TimingWatchdog
	}
}

const msToNs = 1e6

func seconds(ns int64) float64 { return float64(ns) * 1e-9 }

func finishedOp(d *flightrecorder.Dump, e *flightrecorder.Entry, c *model.CommState) model.Op {
	_, call, ok := strings.Cut(d.Name(e), ":")
	if !ok {
		call = d.Name(e)
	}
	fn, ends, _ := strings.Cut(call, " ")
	op := model.Op{
		Kind: model.KindCollective, Name: fn, Launch: model.Some(e.Created), Comm: c.Comm,
		Collective: model.Collective{SeqScope: c.Scope, State: stateCompleted},
	}
	seq := e.Coll
	switch name := torchname.Collective(fn); {
	case name == torchname.Send || name == torchname.Recv:
		op.Kind, op.Name, seq = model.KindSend, name, e.P2P
		if name == torchname.Recv {
			op.Kind = model.KindRecv
		}
		setPeer(&op, ends, c)
	case name != "":
		op.Name, op.Collective.Name = name, name
	}
	if seq >= 0 {
		op.Collective.Seq = model.Some(seq)
	}
	op.Key, op.Seq = op.Name+" "+c.Comm.ID, number(e)
	in, _ := d.Sizes(e)
	inType, _ := d.Types(e)
	if t, ok := torchname.DTypeOf(inType); ok {
		op.Collective.DType = t.Name
		if in.Elems >= 0 && in.Elems <= maxElems {
			op.Collective.Bytes = model.Some(in.Elems * t.Size)
		}
	}
	if _, id := d.Thread(e); id != "" {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			op.ThreadID = model.Some(n)
		}
	}
	return op
}

// maxElems keeps a product of sizes within 64 bits; the largest element has 16 bytes.
const maxElems = 1 << 58

// setPeer reads the ends of a message, by their ranks in the group: "0->1" of who sends,
// "1<-0" of who receives. The second is the other side.
func setPeer(op *model.Op, ends string, c *model.CommState) {
	_, other, ok := strings.Cut(ends, "->")
	if !ok {
		_, other, ok = strings.Cut(ends, "<-")
	}
	local, err := strconv.ParseInt(other, 10, 64)
	switch {
	case !ok || err != nil || local < 0:
	case local < int64(len(c.Members)):
		op.Peer = model.Some(c.Members[local])
	default:
		op.PeerLocal = model.Some(local)
	}
}

// number tells operations of one name on one communicator apart: by the operation's own
// count, since those of one batch share the communicator's.
func number(e *flightrecorder.Entry) int64 {
	for _, n := range []int64{e.Op, e.Record} {
		if n >= 0 {
			return n
		}
	}
	return e.Coll
}
