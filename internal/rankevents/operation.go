// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"strings"

	"github.com/lockstep-otel/lockstep/internal/gpuclock"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// operation fills op from a record, all but its step and its number.
func (r *Rank) operation(op *model.Op, rec *ring.Record, c *commState, f *funcState, t times) {
	flags := rec.Flags()
	op.Kind, op.Name, op.Key = model.KindCollective, f.name, f.text
	op.Start, op.End, op.Launch = r.unix(t.start), r.unix(t.end), model.Some(r.unix(t.launch))
	op.Stream = model.Some(int64(rec.Stream()))
	op.EndInferred = !t.measured()
	op.GraphCaptured = flags&ring.FlagGraph != 0
	if flags&ring.FlagGroup != 0 {
		op.Group = model.Some(int64(rec.Group()))
	}
	op.Comm = model.Comm{
		ID: c.id, Name: c.comm.Name, Digest: r.digest(c),
		Size: positive(c.comm.Ranks), Rank: known(c.comm.Rank),
	}
	r.collective(op, rec, f)
	if flags&ring.FlagWaits != 0 {
		op.Waits = waitsOf(rec)
	}
	switch {
	case flags&ring.FlagSend != 0:
		op.Kind = model.KindSend
		r.peer(op, c, rec.Peer())
	case flags&ring.FlagRecv != 0:
		op.Kind = model.KindRecv
		r.peer(op, c, rec.Peer())
	default:
		op.Collective.Root = rootOf(rec, f)
		if _, ok := wireSteps(rec); ok && flags&ring.FlagWaits != 0 {
			r.peer(op, c, rec.WirePeer())
		}
	}
	if t.origin&fromGPU != 0 {
		r.noteClock(op, rec, c)
	}
}

func (r *Rank) digest(c *commState) string {
	if m := r.node.comms[c.comm.Hash]; m != nil {
		return m.digest
	}
	return ""
}

func positive(v int32) model.Optional[int64] {
	if v <= 0 {
		return model.Optional[int64]{}
	}
	return model.Some(int64(v))
}

func (r *Rank) collective(op *model.Op, rec *ring.Record, f *funcState) {
	c := &op.Collective
	c.Name, c.Seq, c.SeqScope = f.name, model.Some(int64(rec.Seq())), model.ScopeCommFunc
	c.Bytes = model.Some(int64(rec.Bytes()))
	c.DType = r.dtype(rec.DType())
	c.Algo, c.Proto = r.text(rec.Algo()), r.text(rec.Proto())
	if n := rec.Channels(); n > 0 {
		c.Channels = model.Some(int64(n))
	}
	c.State = stateOf(rec)
}

// stateOf says how far an operation was seen to get.
func stateOf(rec *ring.Record) string {
	switch {
	case measured(rec):
		return "completed"
	case rec.Flags()&ring.FlagProxy != 0 || rec.KernelStart() != 0:
		return "started"
	}
	return "scheduled"
}

// text returns a string of the ring by a code of eight bits; they are asked for
// with every operation.
func (r *Rank) text(code uint8) string {
	if code == 0 {
		return ""
	}
	if s := r.texts[code]; s != "" {
		return s
	}
	r.texts[code] = r.src.String(uint16(code))
	return r.texts[code]
}

// dtype returns the name of a data type, as in "bfloat16", by its code.
func (r *Rank) dtype(code uint8) string {
	if r.dtypes[code] == "" {
		r.dtypes[code] = strings.ToLower(strings.TrimPrefix(r.text(code), "nccl"))
	}
	return r.dtypes[code]
}

func rootOf(rec *ring.Record, f *funcState) model.Optional[int64] {
	if f.name == model.Broadcast || f.name == model.Reduce {
		return known(rec.Root())
	}
	return model.Optional[int64]{}
}

func waitsOf(rec *ring.Record) model.ProxyWaits {
	gpu, peer, wire, flush := rec.Waits()
	some := func(ns uint64) model.Optional[float64] { return model.Some(seconds(ns)) }
	w := model.ProxyWaits{GPU: some(gpu), Peer: some(peer), Flush: some(flush)}
	if steps, ok := wireSteps(rec); ok {
		w.Wire, w.WireSteps = some(wire), model.Some(steps)
	}
	return w
}

// wireSteps returns how many sent steps the wire waits are the sum over. What
// sent nothing waited for no wire: its wait is unknown rather than 0. Nor has a
// collective one that says no peer.
func wireSteps(rec *ring.Record) (int64, bool) {
	message := rec.Flags()&(ring.FlagSend|ring.FlagRecv) != 0
	if rec.SendSteps() == 0 || (!message && rec.WirePeer() < 0) {
		return 0, false
	}
	return int64(rec.SendSteps()), true
}

// peer names the other side, by its global rank where that is known.
func (r *Rank) peer(op *model.Op, c *commState, local int32) {
	if op.Peer = r.node.globalRank(c.comm.Hash, local); !op.Peer.OK {
		op.PeerLocal = known(local)
	}
}

// noteClock says how a GPU stamp became host time, or puts it back.
func (r *Rank) noteClock(op *model.Op, rec *ring.Record, c *commState) {
	raw := rec.KernelStart()
	if r.node.cfg.RawGPUClock && c.fit.Unit() == gpuclock.UnitNanoseconds {
		op.Start, op.End, op.ClockID = int64(raw), int64(max(rec.KernelStop(), raw)), r.gpuClockOf(c.comm.GPU, "globaltimer")
		return
	}
	op.Clock = model.ClockNote{
		Offset:   model.Some(float64(op.Start-int64(raw)) * 1e-9),
		Bound:    model.Some(c.fit.Bound(raw) * 1e-9),
		Sigma:    model.Some(c.fit.Sigma() * 1e-9),
		Timeline: r.clock, RawStart: model.Some(int64(raw)),
	}
}

// gpuClockOf names a clock of a GPU.
func (r *Rank) gpuClockOf(gpu uint32, clock string) string {
	id := r.uuidOf(gpu)
	if id == "" {
		id = "pid " + itoa(int64(r.header.PID))
	}
	return "gpu:" + id + "/" + clock
}
