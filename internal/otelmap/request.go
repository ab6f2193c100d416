// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// writeLinks links a step's span to those that the step works for.
func writeLinks(op *model.Op, s ptrace.Span) {
	for _, ref := range op.Links[:min(len(op.Links), model.MaxStepLinks)] {
		AddLink(s, ref, semconv.LinkRequest)
	}
	dropped := op.LinksDropped + int64(max(len(op.Links)-model.MaxStepLinks, 0))
	if dropped > 0 {
		s.SetDroppedLinksCount(uint32(min(dropped, math.MaxUint32)))
	}
}

// readLinks reads them back. Links of other relations say something else.
func readLinks(s ptrace.Span, op *model.Op) {
	op.LinksDropped = int64(s.DroppedLinksCount())
	for _, l := range s.Links().All() {
		v, ok := l.Attributes().Get(semconv.LinkRelation)
		if !ok || v.Type() != pcommon.ValueTypeStr || v.Str() != semconv.LinkRequest {
			continue
		}
		if len(op.Links) >= model.MaxStepLinks {
			op.LinksDropped++
			continue
		}
		op.Links = append(op.Links, model.SpanRef{Trace: model.TraceID(l.TraceID()), Span: model.SpanID(l.SpanID())})
	}
}

// AppendRequestSpans adds to spans, for each span that a step works for, one below it
// that shows the step and links to it: so a request can be walked into what the ranks
// did for it. It returns how many there are, at most model.MaxStepLinks.
func AppendRequestSpans(spans ptrace.SpanSlice, r *model.Rank, op *model.Op) int {
	if op.Kind != model.KindStep || !op.Step.OK {
		return 0
	}
	links := op.Links[:min(len(op.Links), model.MaxStepLinks)]
	for _, ref := range links {
		requestSpan(r, op, ref, spans.AppendEmpty())
	}
	return len(links)
}

// requestAttributes are how many attributes a request's span has.
const requestAttributes = 5

func requestSpan(r *model.Rank, op *model.Op, ref model.SpanRef, s ptrace.Span) {
	name := "lockstep step " + strconv.FormatInt(op.Step.V, 10)
	s.SetTraceID(pcommon.TraceID(ref.Trace))
	s.SetSpanID(pcommon.SpanID(model.OpSpanID(ref.Trace, r.Rank, 0, name+" of "+r.Incarnation+" for "+ref.String(), 0)))
	s.SetParentSpanID(pcommon.SpanID(ref.Span))
	s.SetName(name)
	s.SetKind(ptrace.SpanKindInternal)
	s.SetStartTimestamp(pcommon.Timestamp(op.Start))
	s.SetEndTimestamp(pcommon.Timestamp(op.End))
	m := s.Attributes()
	m.EnsureCapacity(requestAttributes)
	m.PutBool(semconv.RequestSpan, true)
	m.PutInt(semconv.Step, op.Step.V)
	m.PutInt(semconv.Rank, r.Rank)
	m.PutStr(semconv.JobID, r.JobID)
	m.PutStr(semconv.JobIncarnation, r.Incarnation)
	AddLink(s, r.Ref(op), semconv.LinkStep)
}
