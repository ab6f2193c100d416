// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"math"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// future is how far beyond the beginning of a pass a stamp is believed: a pass may
// have to wait for who takes its batches.
const future = uint64(time.Hour)

// record takes one record of the ring.
func (r *Rank) record(_ int, rec *ring.Record) {
	switch rec.Kind() {
	case ring.KindOp:
		r.op(rec)
	case ring.KindStep:
		r.enterMarked()
		if m := rec.StepMark(); m.Begin <= r.now+future {
			r.mark(m.Step, m.Begin)
		} else {
			r.stats.BadTimes++
		}
	case ring.KindScope:
		r.scope(rec)
	case ring.KindProxyStep:
		r.proxyStep(rec)
	case ring.KindAPI:
		r.call(rec)
	case ring.KindKernel:
		r.holdKernel(rec)
	case ring.KindClock:
		r.clockRecord(rec)
	case ring.KindLink:
		r.link(rec)
	case ring.KindResume:
		r.resumed(rec)
	case ring.KindFingerprint:
		r.fingerprint(rec)
	default:
		r.stats.NotMapped++
	}
}

// op folds an operation, or keeps it until its step is known.
func (r *Rank) op(rec *ring.Record) {
	if rec.EnqueueBegin() > r.now+future {
		r.stats.BadTimes++
		return
	}
	if n, ok := rec.Step(); ok {
		r.enterMarked()
		r.fold(rec, int64(n), true)
		return
	}
	if r.marked {
		r.fold(rec, 0, false)
		return
	}
	r.hold(rec)
}

// enterMarked is called for what a program that marks its steps says.
func (r *Rank) enterMarked() {
	if r.marked {
		return
	}
	r.marked = true
	if r.anchor.numbering() {
		r.restart(0)
	}
	for i := range r.pending {
		r.fold(&r.pending[i].Record, 0, false)
	}
	r.pending = r.pending[:0]
}

// timesOrigin says where times come from.
type timesOrigin uint8

const (
	fromGPU     timesOrigin = 1 << iota // start is a converted GPU stamp
	endMeasured                         // end was observed; else it is a bound
)

// times are when an operation ran, MONOTONIC_RAW ns. Four fields: structs of more
// do not stay in registers.
type times struct {
	launch, start, end uint64
	origin             timesOrigin
}

func (t times) measured() bool { return t.origin&endMeasured != 0 }

// unmeasured are the flags of operations whose end nobody observed.
const unmeasured = ring.FlagInferred | ring.FlagEnqueuedOnly

// measured reports whether an operation's end was observed. An operation that was
// open when its communicator ended says no time of completion.
func measured(rec *ring.Record) bool {
	return rec.Flags()&unmeasured == 0 && rec.CompletedAt() != 0
}

func (r *Rank) timesOf(rec *ring.Record, c *commState) times {
	flags := rec.Flags()
	launch, seen := rec.EnqueueBegin(), rec.CompletedAt()
	t := times{launch: launch, start: launch + uint64(rec.EnqueueTook()), end: max(seen, launch)}
	if measured(rec) {
		t.origin = endMeasured
	}
	if flags&ring.FlagProxy != 0 {
		t.start, _ = rec.ProxyStart()
		if stop, ok := rec.ProxyStop(); ok && stop > launch && t.measured() {
			t.end = stop
		}
	}
	if flags&ring.FlagKernel != 0 {
		r.kernelTimes(rec, c, &t)
	}
	if seen >= launch && t.end > seen {
		t.end = seen
	}
	t.end = max(min(t.end, r.now+future), launch)
	if !t.measured() {
		t.start = min(max(t.start, launch), r.now+future)
		t.end = max(t.start, c.endBefore(rec, t))
		return t
	}
	t.start = min(max(t.start, launch), t.end)
	if !r.again {
		c.note(t.launch, t.start, rec.Stream())
	}
	return t
}

// kernelTimes puts GPU stamps in place of what the host saw.
func (r *Rank) kernelTimes(rec *ring.Record, c *commState, t *times) {
	start, stop := rec.KernelStart(), rec.KernelStop()
	if max(start, stop) > math.MaxInt64 {
		return // no time of a span
	}
	if start != 0 && stop != 0 && t.measured() && rec.Flags()&ring.FlagKernelPart == 0 && !r.again {
		c.fit.Add(t.launch, start, stop, rec.CompletedAt())
	}
	if start != 0 {
		if h, ok := c.fit.Host(start); ok {
			t.start, t.origin = h, t.origin|fromGPU
		}
	}
	if stop != 0 && t.measured() {
		if h, ok := c.fit.Host(stop); ok {
			t.end = h
		}
	}
}

// fold puts an operation into its step.
func (r *Rank) fold(rec *ring.Record, n int64, stepped bool) {
	c := r.comm(rec.Comm())
	f := r.fn(c, rec.Func())
	if rec.Flags()&ring.FlagGroup != 0 && rec.Flags()&(ring.FlagSend|ring.FlagRecv) != 0 && r.group(rec, c, n, stepped) {
		return
	}
	t := r.timesOf(rec, c)
	r.count(rec, c, f, t, n, stepped)
}

// count adds an operation to its step, and to the batch where the level asks for
// it.
func (r *Rank) count(rec *ring.Record, c *commState, f *funcState, t times, n int64, stepped bool) {
	r.stats.Operations++
	seq := int64(rec.Seq())
	var s *step
	if stepped {
		s = r.room(n)
	}
	switch {
	case s != nil:
		seq = s.add(rec, f.key, t, r)
	case stepped:
		r.stats.Late++
	default:
		r.stats.WithoutStep++
	}
	if r.node.cfg.Level < ring.LevelCollectives {
		return
	}
	op := r.next()
	r.operation(op, rec, c, f, t)
	op.Seq = seq
	if stepped {
		op.Step = model.Some(n)
	}
	if s != nil {
		s.emitted++
	}
}

// add folds an operation and returns its number among those of its key.
func (s *step) add(rec *ring.Record, key int, t times, r *Rank) int64 {
	k := s.key(key)
	seq := k.seq
	k.seq++
	s.ops++
	s.comms++
	s.bytes += rec.Bytes()
	if rec.Flags()&ring.FlagWaits != 0 {
		gpu, peer, wire, flush := rec.Waits()
		s.waits[0] += gpu
		s.waits[1] += peer
		s.waits[2] += wire
		s.waits[3] += flush
	}
	if s.first == 0 || t.launch < s.first {
		s.first = t.launch
	}
	if !t.measured() {
		s.unmeasured++
		r.stats.EndsInferred++
		return seq
	}
	k.hist.Add(t.end-t.start, &r.steps.pages)
	s.end = max(s.end, t.end)
	s.keep(span{t.start, t.end, t.launch, ranComm}, r)
	return seq
}

// keep remembers when something ran, for the step's split.
func (s *step) keep(sp span, r *Rank) {
	if len(s.spans) >= r.steps.maxOps {
		s.overflow++
		r.stats.SplitOverflow++
		return
	}
	s.spans = append(s.spans, sp)
	r.steps.heldSpans++
}
