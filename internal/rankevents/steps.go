// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"cmp"
	"math"
	"slices"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

const maxStep = math.MaxInt64

// firstSpans is the room of a new step, 2 KiB.
const firstSpans = 64

// keptSteps is how many closed steps are kept for reuse; a backlog needs more, once.
const keptSteps = 64

// keptSpans bounds the room for spans in the steps that are kept, 8 MiB.
const keptSpans = 1 << 18

// held is about how many bytes the open steps take.
func (t *stepTable) held() int {
	return t.heldSpans*int(unsafe.Sizeof(span{})) + t.heldKeys*int(unsafe.Sizeof(keyState{})) + t.heldLinks*int(unsafe.Sizeof(model.SpanRef{})) +
		t.pages.Bytes() + len(t.open)*int(unsafe.Sizeof(step{}))
}

// full reports whether there are too many open steps, or they take too much.
func (t *stepTable) full() bool {
	return len(t.open) > t.max || (len(t.open) > 1 && t.held() > t.budget)
}

// step gathers one step of one rank.
type step struct {
	n       int64
	pass    uint64 // in which its first record was read
	begin   uint64 // MONOTONIC_RAW ns; 0 while unknown
	first   uint64 // earliest launch
	end     uint64 // latest end of an operation
	lastEnd uint64 // of operations and scopes, for a step that nothing follows
	laterAt uint64 // when it was first seen that a later step had begun; 0: not yet

	ops, comms, emitted, lost, overflow, unmeasured int64
	bytes                                           uint64
	waits                                           [4]uint64 // ns: gpu, peer, wire, flush
	keys                                            []keyState
	spans                                           []span
	witnessed                                       bool // what the device ran besides communication is among them
	links                                           []model.SpanRef
	linksDropped                                    int64

	phase     ring.Phase
	phaseTook uint64

	seqFrom int64 // number of the first operation of a key
	table   *stepTable
}

// keyState is one operation key in one step.
type keyState struct {
	seq  int64
	hist stats.Recorder
}

// What ran in a span.
type activity uint8

const (
	ranComm activity = iota
	ranKernel
	ranCopy
	activities
)

// span is when something ran, host ns.
type span struct {
	start, end, launch uint64
	what               activity
}

// stepTable are the open steps of a rank, by number.
type stepTable struct {
	max, maxOps int
	pass        uint64 // in which the record was read that is folded
	open        []*step
	cur         *step // the last used
	free        []*step
	pages       stats.Pool
	closed      int64  // the newest closed step; below all where none was
	prevEnd     uint64 // of the newest closed step
	budget      int    // bytes of all open steps
	heldSpans   int    // of open steps
	heldKeys    int    // of open steps
	heldLinks   int    // of open steps
	freeSpans   int    // room for spans in free steps
	lastBegin   uint64 // latest mark
}

func (t *stepTable) init(maxOpen, maxOps, budget int) {
	t.max, t.maxOps, t.budget = maxOpen, maxOps, budget
	t.closed = -1
}

// of returns the open step n; nil where it is closed.
func (t *stepTable) of(n int64) *step {
	if t.cur != nil && t.cur.n == n {
		return t.cur
	}
	return t.find(n)
}

// at returns the place of step n among the open ones, and whether it is one.
func (t *stepTable) at(n int64) (int, bool) {
	return slices.BinarySearchFunc(t.open, n, func(s *step, n int64) int { return cmp.Compare(s.n, n) })
}

// has reports whether step n is open.
func (t *stepTable) has(n int64) bool {
	_, found := t.at(n)
	return found
}

func (t *stepTable) find(n int64) *step {
	if n <= t.closed {
		return nil
	}
	i, found := t.at(n)
	if !found {
		t.open = slices.Insert(t.open, i, t.fresh(n))
	}
	t.cur = t.open[i]
	return t.cur
}

func (t *stepTable) fresh(n int64) *step {
	if i := len(t.free); i > 0 {
		s := t.free[i-1]
		t.free = t.free[:i-1]
		t.freeSpans -= cap(s.spans)
		t.heldKeys += len(s.keys)
		s.n, s.pass = n, t.pass
		return s
	}
	return &step{n: n, pass: t.pass, spans: make([]span, 0, firstSpans), table: t}
}

// closable reports whether the first open step is over: of those begun before
// the slots were noted the newest is later, nothing of it was in flight, of which
// oldest was the oldest or the first whose kernels may come, and it is known when a
// later one began.
func (t *stepTable) closable(later, oldest int64) bool {
	return len(t.open) > 0 && t.open[0].n < min(later, oldest) && t.begun() > t.open[0].n
}

// begun is the newest step of which the beginning is known; -1 where none is.
func (t *stepTable) begun() int64 {
	for i := len(t.open) - 1; i >= 0; i-- {
		if t.open[i].begin != 0 {
			return t.open[i].n
		}
	}
	return t.closed
}

// remove takes the first open step out.
func (t *stepTable) remove() *step {
	s := t.open[0]
	t.open = slices.Delete(t.open, 0, 1)
	t.cur = nil
	t.closed = s.n
	return s
}

// recycle empties a closed step for the next.
func (t *stepTable) recycle(s *step) {
	for i := range s.keys {
		t.pages.Reset(&s.keys[i].hist)
		s.keys[i].seq = 0
	}
	t.heldSpans -= len(s.spans)
	t.heldKeys -= len(s.keys)
	t.heldLinks -= len(s.links)
	*s = step{keys: s.keys, spans: s.spans[:0], links: s.links[:0], table: t}
	if len(t.free) < keptSteps && t.freeSpans+cap(s.spans) <= keptSpans {
		t.freeSpans += cap(s.spans)
		t.free = append(t.free, s)
	}
}

// key returns the state of an operation key in the step.
func (s *step) key(i int) *keyState {
	for len(s.keys) <= i {
		s.keys = append(s.keys, keyState{seq: s.seqFrom})
		s.table.heldKeys++
	}
	return &s.keys[i]
}

// mark notes that a step began. A program that counts from the beginning again
// starts a new sequence of steps: the open ones are closed by the caller.
func (r *Rank) mark(n int64, begin uint64) {
	if n < 0 {
		return
	}
	if n <= r.steps.closed && begin > r.steps.lastBegin {
		r.restart(n)
	}
	r.steps.lastBegin = max(r.steps.lastBegin, begin)
	if s := r.room(n); s != nil && s.begin == 0 {
		s.begin = begin
		r.kernels.begins.add(n, begin)
	}
}

// restart closes all steps, so that n can follow.
func (r *Rank) restart(n int64) {
	r.stats.Renumbered++
	for len(r.steps.open) > 0 {
		r.closeStep()
	}
	r.steps.closed = n - 1
	r.kernels.restart()
}

// room returns the open step n, closing the oldest where there are too many; nil
// where n is closed, or a replay is to open no step.
func (r *Rank) room(n int64) *step {
	if r.silent && !r.steps.has(n) {
		return nil
	}
	s := r.steps.of(n)
	if s != nil {
		s.pass = min(s.pass, r.steps.pass)
	}
	for r.steps.full() {
		r.stats.StepsEvicted++
		oldest := r.steps.open[0]
		r.closeStep()
		if oldest == s {
			return nil
		}
	}
	return s
}

// expire closes steps that have waited too long for what is in flight of them.
func (r *Rank) expire() {
	deadline := uint64(r.node.cfg.StepDeadline)
	later := r.steps.begun()
	for _, s := range r.steps.open {
		if s.laterAt == 0 && s.n < later {
			s.laterAt = r.now
		}
	}
	for len(r.steps.open) > 0 {
		s := r.steps.open[0]
		if s.laterAt == 0 || r.now < s.laterAt+deadline {
			return
		}
		r.stats.StepsExpired++
		r.closeStep()
	}
}
