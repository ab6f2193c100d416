// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// Root is the span of a whole step, over all ranks.
type Root struct {
	JobName, JobID, Incarnation string
	Step                        int64
	Start, End                  int64  // Unix ns, from the first rank's start to the last one's end
	Omitted                     int64  // spans of the step that its story leaves out
	Limit                       int64  // the configured most
	Incomplete                  string // why operations are missing; empty: none is known to be
	Lost                        int64  // operations that were lost
}

// RootToTraces appends the step's root span to td.
func RootToTraces(r *Root, td ptrace.Traces) {
	trace := model.StepTraceID(r.Incarnation, r.Step)
	s := jobSpans(td, jobKey{r.JobName, r.JobID, r.Incarnation}).AppendEmpty()
	s.SetTraceID(pcommon.TraceID(trace))
	s.SetSpanID(pcommon.SpanID(model.RootSpanID(trace)))
	s.SetName("step")
	s.SetKind(ptrace.SpanKindInternal)
	s.SetStartTimestamp(pcommon.Timestamp(r.Start))
	s.SetEndTimestamp(pcommon.Timestamp(r.End))
	s.Attributes().PutInt(semconv.Step, r.Step)
	s.Attributes().PutInt(semconv.StoryOmitted, r.Omitted)
	s.Attributes().PutInt(semconv.StoryLimit, r.Limit)
	if r.Incomplete != "" {
		s.Attributes().PutStr(semconv.StepIncomplete, r.Incomplete)
		s.Attributes().PutInt(semconv.StepLost, r.Lost)
	}
}
