// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

func TestFindingRoundTrip(t *testing.T) {
	for seed := range uint64(500) {
		want := randomFinding(t, seed, seed%2 == 1)
		lr := plog.NewLogRecord()
		FindingToLog(&want, lr)
		var p Problems
		got, ok := LogToFinding(lr, &p)
		require.True(t, ok)
		require.Zero(t, p.Count())
		require.Equal(t, want, got, "seed %d", seed)
	}
}

func rank7() model.Finding {
	trace := model.StepTraceID("inc", 4)
	return model.Finding{
		Time: 2000, Start: 1000, Severity: model.SeverityWarn,
		JobName: "dlrm", JobID: "job", Incarnation: "inc",
		Kind: model.FindingStraggler, Class: model.ClassHost, ID: "f1", Revision: 1, Status: model.StatusOpen,
		Rank: model.Some(int64(7)), Op: "all_to_all", StepFirst: model.Some(int64(4)), StepLast: model.Some(int64(4)),
		BeforeWindow: true,
		WaitCaused:   model.Some(0.0325), WaitCausedShare: model.Some(0.76),
		CostSeconds: model.Some(0.000505), CostShare: model.Some(0.021),
		Confidence: 0.6,
		Links:      []model.SpanRef{{Trace: trace, Span: model.OpSpanID(trace, 7, 1, "all_to_all", 0)}},
	}
}

func TestFindingLogRecord(t *testing.T) {
	f := rank7()
	ld := FindingsToLogs([]model.Finding{f, f})
	require.Equal(t, 1, ld.ResourceLogs().Len())
	require.Equal(t, 2, ld.LogRecordCount())
	assert.Equal(t, map[string]any{"service.name": "dlrm", "lockstep.job.id": "job", "lockstep.job.incarnation": "inc"},
		ld.ResourceLogs().At(0).Resource().Attributes().AsRaw())
	lr := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	assert.Equal(t, "lockstep.finding", lr.EventName())
	assert.Equal(t, plog.SeverityNumberWarn, lr.SeverityNumber())
	assert.Equal(t, "WARN", lr.SeverityText())
	assert.Equal(t, pcommon.TraceID(f.Links[0].Trace), lr.TraceID())
	assert.Equal(t, pcommon.SpanID(f.Links[0].Span), lr.SpanID())
	assert.Equal(t, "rank 7: straggler (host), at all_to_all; the others together waited 32.5 ms per step for it (76.0 % of all wait); "+
		"mending it alone would save 505 µs per step (2.10 % of the step); the cause precedes the recording (confidence 0.60)",
		lr.Body().Str())
}

func TestFindingSpan(t *testing.T) {
	f := rank7()
	td := FindingsToTraces([]model.Finding{f})
	s := firstSpan(td)
	assert.Equal(t, "finding straggler", s.Name())
	assert.Equal(t, pcommon.TraceID(f.Links[0].Trace), s.TraceID())
	assert.Equal(t, pcommon.SpanID(model.RootSpanID(f.Links[0].Trace)), s.ParentSpanID())
	assert.Equal(t, pcommon.Timestamp(1000), s.StartTimestamp())
	assert.Equal(t, pcommon.Timestamp(2000), s.EndTimestamp())
	assert.Equal(t, ptrace.StatusCodeUnset, s.Status().Code())
	assert.Equal(t, FindingAttributes(&f), s.Attributes().AsRaw())
	require.Equal(t, 1, s.Links().Len())
	assert.Equal(t, pcommon.SpanID(f.Links[0].Span), s.Links().At(0).SpanID())
	assert.Equal(t, map[string]any{"lockstep.link.relation": "evidence"}, s.Links().At(0).Attributes().AsRaw())

	f.Severity = model.SeverityError
	s = firstSpan(FindingsToTraces([]model.Finding{f}))
	assert.Equal(t, ptrace.StatusCodeError, s.Status().Code())
}

func TestFindingSpanTrace(t *testing.T) {
	tests := []struct {
		name   string
		f      model.Finding
		want   model.TraceID
		parent bool
	}{
		{"one step", model.Finding{Incarnation: "i", IncidentID: "x", StepFirst: model.Some(int64(3)), StepLast: model.Some(int64(3))}, model.StepTraceID("i", 3), true},
		{"several steps", model.Finding{Incarnation: "i", IncidentID: "x", StepFirst: model.Some(int64(3)), StepLast: model.Some(int64(4))}, model.IncidentTraceID("i", "x"), false},
		{"incident", model.Finding{Incarnation: "i", ID: "f", IncidentID: "x"}, model.IncidentTraceID("i", "x"), false},
		{"alone", model.Finding{Incarnation: "i", ID: "f"}, model.IncidentTraceID("i", "f"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := firstSpan(FindingsToTraces([]model.Finding{tt.f}))
			assert.Equal(t, pcommon.TraceID(tt.want), s.TraceID())
			assert.Equal(t, tt.parent, !s.ParentSpanID().IsEmpty())
		})
	}
}

func TestFindingRanksAreCut(t *testing.T) {
	many := make([]int64, semconv.MaxFindingRanks+1)
	a := FindingAttributes(&model.Finding{Ranks: many, Waiting: many, Candidates: many})
	for _, list := range []string{semconv.FindingRanks, semconv.FindingWaiting, semconv.FindingCandidates} {
		assert.Len(t, a[list], semconv.MaxFindingRanks)
		assert.Equal(t, int64(semconv.MaxFindingRanks+1), a[list+".count"])
	}
}

func TestFindingAttributesAreJSON(t *testing.T) {
	f := rank7()
	b, err := json.Marshal(FindingAttributes(&f))
	require.NoError(t, err)
	var back map[string]any
	require.NoError(t, json.Unmarshal(b, &back))
	assert.InDelta(t, 7, back["lockstep.finding.rank"], 0)
	assert.Equal(t, []any{f.Links[0].String()}, back["lockstep.finding.links"])
}

func TestLogToFindingBadInput(t *testing.T) {
	f := rank7()
	lr := plog.NewLogRecord()
	FindingToLog(&f, lr)
	a := lr.Attributes()
	a.PutStr(semconv.FindingRank, "7")
	a.PutStr(semconv.FindingConfidence, "high")
	a.PutInt(semconv.FindingCostShare, 1)
	a.PutBool(semconv.FindingKind, true)
	a.PutInt(semconv.FindingBeforeWindow, 1)
	a.PutStr(semconv.FindingRanks, "1,2")
	a.PutEmptySlice(semconv.FindingLinks).AppendEmpty().SetStr("no-hex")
	var p Problems
	got, ok := LogToFinding(lr, &p)
	require.True(t, ok)
	assert.Equal(t, int64(6), p.Count(), "%v", p.List())
	assert.False(t, got.Rank.OK)
	assert.Equal(t, model.Some(1.0), got.CostShare, "an integer is a fine number of seconds")
	assert.Empty(t, got.Links)
	assert.Equal(t, "f1", got.ID)

	lr.SetEventName("something.else")
	_, ok = LogToFinding(lr, nil)
	assert.False(t, ok)
}
