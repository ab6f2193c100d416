// SPDX-License-Identifier: Apache-2.0

package epochmap

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// Save is one save that became whole.
type Save struct {
	JobID, JobName, Generation string
	Epoch                      int64
	Start, End                 time.Time
	// FromFiles: Start is a modification time; else it is when the save was heard of first.
	FromFiles bool
	Domains   int
	Last      model.Domain         // that confirmed; none where it is not known
	Confirmed []model.Confirmation // the last of each kind
}

// AppendSave adds a save as a span: the only one of its trace.
func AppendSave(s *Save, to ptrace.Traces) {
	rs := to.ResourceSpans().AppendEmpty()
	// Who draws spans sorts them by service.
	JobToResource(s.JobID, cmp.Or(s.JobName, s.JobID), rs.Resource())
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName(otelmap.ScopeName)
	span := ss.Spans().AppendEmpty()
	trace := model.IncidentTraceID(s.JobID, fmt.Sprintf("save %s %d %d", s.Generation, s.Epoch, s.Start.UnixNano()))
	span.SetTraceID(pcommon.TraceID(trace))
	span.SetSpanID(pcommon.SpanID(model.RootSpanID(trace)))
	span.SetName("checkpoint save")
	span.SetKind(ptrace.SpanKindInternal)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(s.Start))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(s.End))
	m := span.Attributes()
	m.PutInt(semconv.EpochSave, s.Epoch)
	if s.Generation != "" {
		m.PutStr(semconv.EpochGeneration, s.Generation)
	}
	m.PutInt(semconv.EpochDomains, int64(s.Domains))
	if s.Last.Kind != "" {
		m.PutStr(semconv.EpochLastDomain, strings.TrimSpace(string(s.Last.Kind)+" "+s.Last.ID))
	}
	for _, c := range s.Confirmed {
		event := span.Events().AppendEmpty()
		event.SetName(string(c.Domain.Kind) + " confirmed")
		event.SetTimestamp(pcommon.Timestamp(c.Time)) //nolint:gosec // a time of today
		event.Attributes().PutStr(semconv.EpochDomainKind, string(c.Domain.Kind))
		if c.Domain.ID != "" {
			event.Attributes().PutStr(semconv.EpochDomainID, c.Domain.ID)
		}
	}
	m.PutStr(semconv.EpochBegunBy, map[bool]string{true: "file", false: "observation"}[s.FromFiles])
}
