// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// FindingsToTraces returns the findings as spans, one resource per job.
func FindingsToTraces(findings []model.Finding) ptrace.Traces {
	td := ptrace.NewTraces()
	spans := map[jobKey]ptrace.SpanSlice{}
	for i := range findings {
		f := &findings[i]
		key := jobKey{f.JobName, f.JobID, f.Incarnation}
		to, ok := spans[key]
		if !ok {
			to = jobSpans(td, key)
			spans[key] = to
		}
		FindingToSpan(f, to.AppendEmpty())
	}
	return td
}

func jobSpans(td ptrace.Traces, job jobKey) ptrace.SpanSlice {
	rs := td.ResourceSpans().AppendEmpty()
	// Who draws spans sorts them by service.
	jobResource(cmp.Or(job.name, job.id), job.id, job.incarnation, rs.Resource())
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName(ScopeName)
	return ss.Spans()
}

// FindingToSpan renders a finding as a span. A finding about one step stands in
// that step's trace, below its root; one that was judged over several, in the
// trace of its incident: inside one step, an interval of many would dwarf it, and
// a backend that adjusts children to their parent would move it.
func FindingToSpan(f *model.Finding, s ptrace.Span) {
	trace, inStep := findingTrace(f)
	s.SetTraceID(pcommon.TraceID(trace))
	s.SetSpanID(pcommon.SpanID(model.OpSpanID(trace, model.RootRank, 0, semconv.EventFinding+" "+f.ID, 0)))
	if inStep {
		s.SetParentSpanID(pcommon.SpanID(model.RootSpanID(trace)))
	}
	s.SetName("finding " + f.Kind)
	s.SetKind(ptrace.SpanKindInternal)
	s.SetStartTimestamp(pcommon.Timestamp(f.Start))
	s.SetEndTimestamp(pcommon.Timestamp(max(f.Time, f.Start)))
	if f.Severity == model.SeverityError {
		s.Status().SetCode(ptrace.StatusCodeError)
		s.Status().SetMessage(report.Sentence(f))
	}
	s.Attributes().EnsureCapacity(len(findingFields.fields))
	findingFields.write(f, s.Attributes())
	for _, ref := range f.Links[:min(len(f.Links), maxLinks)] {
		AddLink(s, ref, semconv.LinkEvidence)
	}
}

func findingTrace(f *model.Finding) (trace model.TraceID, inStep bool) {
	switch {
	case f.StepFirst.OK && f.StepLast == f.StepFirst:
		return model.StepTraceID(f.Incarnation, f.StepFirst.V), true
	case f.IncidentID != "":
		return model.IncidentTraceID(f.Incarnation, f.IncidentID), false
	default:
		return model.IncidentTraceID(f.Incarnation, f.ID), false
	}
}

// AddLink adds a link to ref that says what it means.
func AddLink(s ptrace.Span, ref model.SpanRef, relation string) {
	l := s.Links().AppendEmpty()
	l.SetTraceID(pcommon.TraceID(ref.Trace))
	l.SetSpanID(pcommon.SpanID(ref.Span))
	l.Attributes().PutStr(semconv.LinkRelation, relation)
}
