// SPDX-License-Identifier: Apache-2.0

package stragglerprocessor

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// holder keeps the spans of steps that have not been analysed. It is not safe
// for concurrent use.
type holder struct {
	max         int
	now         func() time.Time
	steps       *bounded.Map[stepKey, *heldStep] // the oldest first
	spans       int
	bytes       int64 // of these and of what they stand under, about
	unannotated int64 // steps passed on before they were analysed
}

const (
	// heldBytes is how many bytes there are for each span that may be held.
	heldBytes = 1536
	// inMemory is how much more a span takes in memory than on the wire, and perSpan what it takes
	// in any case.
	inMemory = 3
	perSpan  = 256
)

var sizer ptrace.ProtoMarshaler

type stepKey struct {
	incarnation string
	step        int64
}

type heldStep struct {
	key   stepKey
	td    ptrace.Traces
	spans int
	bytes int64
	first time.Time
}

func newHolder(maxSpans int, now func() time.Time) *holder {
	return &holder{max: maxSpans, now: now, steps: bounded.NewMap(bounded.MapConfig[stepKey, *heldStep]{})}
}

// take moves the operations that name a step out of td; the rest stays.
func (h *holder) take(td ptrace.Traces) {
	td.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
		rank, ok := otelmap.ResourceToRank(rs.Resource(), nil)
		if !ok {
			return false
		}
		head := sizer.ResourceSpansSize(rs)
		for _, ss := range rs.ScopeSpans().All() {
			head -= sizer.ScopeSpansSize(ss)
		}
		rs.ScopeSpans().RemoveIf(func(ss ptrace.ScopeSpans) bool {
			h.takeScope(rank.Incarnation, int64(head)*inMemory, rs, ss)
			return ss.Spans().Len() == 0
		})
		return rs.ScopeSpans().Len() == 0
	})
}

// takeScope moves the operations of a scope that name a step, as long as there is room: each step
// that they are of gets a copy of the resource, of so many bytes.
func (h *holder) takeScope(incarnation string, head int64, rs ptrace.ResourceSpans, ss ptrace.ScopeSpans) {
	to := map[int64]ptrace.SpanSlice{}
	left := map[int64]bool{}
	ss.Spans().RemoveIf(func(s ptrace.Span) bool {
		step, ok := s.Attributes().Get(semconv.Step)
		if !ok || !otelmap.IsOp(s) {
			return false
		}
		n := step.Int()
		size := int64(sizer.SpanSize(s))*inMemory + perSpan
		dest, ok := to[n]
		if !ok {
			size += head
		}
		if left[n] || h.bytes+size > 2*h.maxBytes() {
			if !left[n] {
				left[n] = true
				h.unannotated++
			}
			return false
		}
		held := h.step(stepKey{incarnation, n})
		if !ok {
			dest = held.under(rs, ss)
			to[n] = dest
		}
		s.MoveTo(dest.AppendEmpty())
		held.spans++
		h.spans++
		held.bytes += size
		h.bytes += size
		return true
	})
}

func (h *holder) maxBytes() int64 { return int64(h.max) * heldBytes }

func (h *holder) step(key stepKey) *heldStep {
	s, ok := h.steps.Peek(key)
	if !ok {
		s = &heldStep{key: key, td: ptrace.NewTraces(), first: h.now()}
		h.steps.Set(key, s)
	}
	return s
}

// under returns where spans of this resource and scope go.
func (s *heldStep) under(rs ptrace.ResourceSpans, ss ptrace.ScopeSpans) ptrace.SpanSlice {
	r := s.td.ResourceSpans().AppendEmpty()
	rs.Resource().CopyTo(r.Resource())
	r.SetSchemaUrl(rs.SchemaUrl())
	scope := r.ScopeSpans().AppendEmpty()
	ss.Scope().CopyTo(scope.Scope())
	scope.SetSchemaUrl(ss.SchemaUrl())
	return scope.Spans()
}

// release moves the spans of an analysed step to td.
func (h *holder) release(rep *straggler.StepReport, td ptrace.Traces) {
	if s, ok := h.steps.Peek(stepKey{rep.Incarnation, rep.Step}); ok {
		h.move(s, td)
	}
}

func (h *holder) move(s *heldStep, td ptrace.Traces) {
	h.spans -= s.spans
	h.bytes -= s.bytes
	h.steps.Delete(s.key)
	s.td.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
}

// shrink moves the oldest steps to td while too many spans are held, or too many bytes.
func (h *holder) shrink(td ptrace.Traces) {
	for h.spans > h.max || h.bytes > h.maxBytes() {
		_, oldest, _ := h.steps.Oldest()
		h.giveUp(oldest, td)
	}
}

// giveUp moves a step to td that was not analysed.
func (h *holder) giveUp(s *heldStep, td ptrace.Traces) {
	h.move(s, td)
	h.unannotated++
}

// prune moves the steps first seen before to td: they were analysed already, or
// never will be.
func (h *holder) prune(before time.Time, td ptrace.Traces) {
	for _, s := range h.steps.All() {
		if !s.first.Before(before) {
			return
		}
		h.giveUp(s, td)
	}
}

// releaseAll moves everything to td.
func (h *holder) releaseAll(td ptrace.Traces) {
	for _, s := range h.steps.All() {
		h.move(s, td)
	}
}
