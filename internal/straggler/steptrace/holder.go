// SPDX-License-Identifier: Apache-2.0

package steptrace

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// longestKept is how many of a rank's longest operations in a step are kept
// beside communication: enough to see what a late rank was doing.
const longestKept = 3

// Holder keeps the operations that the step traces of open steps may need, and
// returns those of a step when its report is there. It is not safe for concurrent use.
type Holder struct {
	limit   int // spans of a step trace
	maxHeld int // operations kept over all open steps
	held    int
	bytes   int64            // of all kept operations, about
	jobs    map[string]int64 // the same, by incarnation
	dropped int64
	steps   *bounded.Map[stepKey, *heldStep] // the oldest first
	now     func() time.Time
	touched time.Time // when the time of all steps began anew
}

type stepKey struct {
	incarnation string
	step        int64
}

type heldStep struct {
	ranks map[int64]*heldRank
	size  int
	bytes int64
	first time.Time // when something came first, as the next
	last  time.Time
}

type heldRank struct {
	rank    model.Rank
	ops     []model.Op // communication and the step
	longest []model.Op // of the rest, longest first
}

// NewHolder returns a holder for step traces of at most limit spans, the root not
// counted, that keeps at most maxHeld operations.
func NewHolder(limit, maxHeld int, now func() time.Time) *Holder {
	return &Holder{limit: limit, maxHeld: maxHeld, steps: bounded.NewMap(bounded.MapConfig[stepKey, *heldStep]{Compare: byAge}), jobs: map[string]int64{}, now: now}
}

// Held returns how many operations are kept now.
func (h *Holder) Held() int { return h.held }

// Dropped returns how many operations were not kept for want of room, or were
// kept for a step that was never reported.
func (h *Holder) Dropped() int64 { return h.dropped }

// Keep keeps the operations that a step trace may need.
func (h *Holder) Keep(rank *model.Rank, ops []model.Op) {
	now := h.now()
	for i := range ops {
		op := &ops[i]
		if !op.Step.OK {
			continue
		}
		if h.full() && !h.makeRoom(rank.Incarnation) {
			h.dropped++
			continue
		}
		s := h.step(stepKey{rank.Incarnation, op.Step.V}, now)
		size, bytes := s.size, s.bytes
		s.keep(rank, op)
		h.held += s.size - size
		h.count(rank.Incarnation, s.bytes-bytes)
	}
}

func (h *Holder) step(key stepKey, now time.Time) *heldStep {
	s, ok := h.steps.Peek(key)
	if !ok {
		s = &heldStep{ranks: map[int64]*heldRank{}, first: now, bytes: stepBytes}
		h.steps.Set(key, s)
		h.count(key.incarnation, stepBytes)
	}
	s.last = now
	return s
}

func (s *heldStep) keep(rank *model.Rank, op *model.Op) {
	r := s.ranks[rank.Rank]
	if r == nil {
		r = &heldRank{rank: *rank}
		s.ranks[rank.Rank] = r
		s.bytes += rankSize(rank)
	}
	before := len(r.ops) + len(r.longest)
	switch {
	case op.Kind.IsComm() || op.Kind == model.KindStep:
		r.ops = append(r.ops, *op)
		s.bytes += opSize(op)
	case op.Kind != model.KindScope:
		s.bytes += r.keepLongest(op)
	}
	s.size += len(r.ops) + len(r.longest) - before
}

// keepLongest keeps the operation where it is among the longest, and returns by how many bytes more
// are kept.
func (r *heldRank) keepLongest(op *model.Op) (more int64) {
	n := len(r.longest)
	if n == longestKept {
		if op.Duration() <= r.longest[n-1].Duration() {
			return 0
		}
		more = -opSize(&r.longest[n-1])
	}
	more += opSize(op)
	at, _ := slices.BinarySearchFunc(r.longest, op, func(a model.Op, b *model.Op) int { return cmp.Compare(b.Duration(), a.Duration()) })
	r.longest = slices.Insert(r.longest, at, *op)
	r.longest = r.longest[:min(len(r.longest), longestKept)]
	return more
}

// Touch begins the time of all steps anew, for Prune: their deadlines begin anew.
func (h *Holder) Touch() { h.touched = h.now() }

// Prune drops the steps of which something came last before the given time, unless Touch was called since then. None of
// them will be reported: their operations came after the step was closed.
func (h *Holder) Prune(before time.Time) {
	if _, s, ok := h.steps.Oldest(); !ok || !s.first.Before(before) || !h.touched.Before(before) {
		return
	}
	for key, s := range h.steps.All() {
		if !s.first.Before(before) {
			return
		}
		if s.last.Before(before) {
			h.drop(key)
		}
	}
}

// drop drops what was kept for a step that is not reported.
func (h *Holder) drop(key stepKey) { h.dropped += int64(h.take(key).size) }

func (h *Holder) take(key stepKey) *heldStep {
	s, ok := h.steps.Delete(key)
	if ok {
		h.held -= s.size
		h.count(key.incarnation, -s.bytes)
	}
	return s
}
