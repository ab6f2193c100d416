// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// FindingsToLogs returns the findings as log events, one resource per job.
func FindingsToLogs(findings []model.Finding) plog.Logs {
	ld := plog.NewLogs()
	records := map[jobKey]plog.LogRecordSlice{}
	for i := range findings {
		f := &findings[i]
		key := jobKey{f.JobName, f.JobID, f.Incarnation}
		to, ok := records[key]
		if !ok {
			rl := ld.ResourceLogs().AppendEmpty()
			jobResource(f.JobName, f.JobID, f.Incarnation, rl.Resource())
			sl := rl.ScopeLogs().AppendEmpty()
			sl.Scope().SetName(ScopeName)
			to = sl.LogRecords()
			records[key] = to
		}
		FindingToLog(f, to.AppendEmpty())
	}
	return ld
}

type jobKey struct{ name, id, incarnation string }

// FindingToLog writes a finding as a log event. The record alone says
// everything, the job too, so that it survives a change of its resource.
func FindingToLog(f *model.Finding, lr plog.LogRecord) {
	lr.SetEventName(semconv.EventFinding)
	lr.SetTimestamp(pcommon.Timestamp(f.Time))
	lr.SetObservedTimestamp(pcommon.Timestamp(f.Time))
	number, text := severity(f.Severity)
	lr.SetSeverityNumber(number)
	lr.SetSeverityText(text)
	lr.Body().SetStr(report.Sentence(f))
	if len(f.Links) > 0 {
		lr.SetTraceID(pcommon.TraceID(f.Links[0].Trace))
		lr.SetSpanID(pcommon.SpanID(f.Links[0].Span))
	}
	lr.Attributes().EnsureCapacity(len(findingFields.fields))
	findingFields.write(f, lr.Attributes())
}

// LogToFinding reads a finding; false where the record is another event. Only
// attributes are read: the sentence is for people.
func LogToFinding(lr plog.LogRecord, p *Problems) (model.Finding, bool) {
	if lr.EventName() != semconv.EventFinding {
		return model.Finding{}, false
	}
	f := model.Finding{Time: int64(lr.Timestamp()), Severity: fromSeverity(lr.SeverityNumber())}
	findingFields.read(&f, lr.Attributes(), p.notes(nil))
	return f, true
}

func severity(s model.Severity) (plog.SeverityNumber, string) {
	switch s {
	case model.SeverityError:
		return plog.SeverityNumberError, s.String()
	case model.SeverityWarn:
		return plog.SeverityNumberWarn, s.String()
	default:
		return plog.SeverityNumberInfo, s.String()
	}
}

func fromSeverity(n plog.SeverityNumber) model.Severity {
	switch {
	case n >= plog.SeverityNumberError:
		return model.SeverityError
	case n >= plog.SeverityNumberWarn:
		return model.SeverityWarn
	default:
		return model.SeverityInfo
	}
}
