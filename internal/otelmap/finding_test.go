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
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
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
	assert.Equal(t, "rank 7: straggler (host), at all_to_all; the others together waited 32.5ms per step for it (76.0 % of all wait); "+
		"mending it alone would save 505µs per step (2.1 % of the step); the cause precedes the recording (confidence 0.60)",
		lr.Body().Str())
}

func TestSentencePlaces(t *testing.T) {
	tests := map[string]model.Finding{
		"rank 0 on n1: straggler (confidence 0.00)": {Kind: "straggler", Rank: model.Some(int64(0)), Host: "n1"},
		"3 ranks: fabric (confidence 0.00)":         {Kind: "fabric", Ranks: []int64{1, 2, 3}},
		"900 ranks: fabric (confidence 0.00)":       {Kind: "fabric", Ranks: []int64{1}, RanksCount: model.Some(int64(900))},
		"host n1: clock (confidence 0.00)":          {Kind: "clock", Host: "n1"},
		"link a-b: fabric (confidence 0.00)":        {Kind: "fabric", Link: "a-b"},
		"host n1: clock (step) (confidence 0.95)": {
			Kind: "clock", Class: "step", Host: "n1", Confidence: 0.95, Evidence: evidence.Text(`{"timeline":"t","jump_seconds":0.5,"steps":1}`), // of the clock
		},
		"link rank 2 -> rank 3, sent from n1: straggler (link), at all_reduce; mending it alone would save 20ms per step; which end is at fault is not decided (confidence 0.90)": {
			Kind: "straggler", Class: "link", Cause: "unknown", Rank: model.Some(int64(2)), Host: "n1", Link: "rank 2 -> rank 3", Op: "all_reduce",
			CostSeconds: model.Some(0.020), Confidence: 0.9,
		},
		"rank 1: straggler (host), cause compile, at forward (confidence 0.90)": {
			Kind: "straggler", Class: "host", Cause: "compile", Rank: model.Some(int64(1)), Op: "forward", Confidence: 0.9,
		},
		"rank 1: straggler (host), outside of any scope (confidence 0.90)": {
			Kind: "straggler", Class: "host", Rank: model.Some(int64(1)), Op: "(other)", Confidence: 0.9,
		},
		"rank 1: straggler (compute), at (other) (confidence 0.90)": {
			Kind: "straggler", Class: "compute", Rank: model.Some(int64(1)), Op: "(other)", Confidence: 0.9,
		},
		"rank 1: straggler; mending it alone would save 20ms per step (confidence 0.90, 64 steps judged)": {
			Kind: "straggler", Rank: model.Some(int64(1)), CostSeconds: model.Some(0.020), Confidence: 0.9, Evidence: evidence.Text(`{"steps":64}`),
		},
		"rank 1: straggler; mending it alone would save at least 20ms per step, or up to 30ms by way of what was not seen (confidence 0.90)": {
			Kind: "straggler", Rank: model.Some(int64(1)), CostSeconds: model.Some(0.020), CostLeast: model.Some(0.020), CostMost: model.Some(0.03), Confidence: 0.9,
		},
		"rank 1: straggler; mending it alone would save 0s per step, and 4ms once the other stragglers are mended (confidence 0.90)": {
			Kind: "straggler", Rank: model.Some(int64(1)), CostSeconds: model.Some(0.0), Confidence: 0.9,
			Evidence: evidence.Text(`{"cost_once_others_are_mended_seconds":0.004}`),
		},
		"rank 1: straggler; mending it alone would save 20ms per step, or down to 0s where who was not seen was late, too (confidence 0.90)": {
			Kind: "straggler", Rank: model.Some(int64(1)), CostSeconds: model.Some(0.020), CostLeast: model.Some(0.0), Confidence: 0.9,
		},
		"rank 1: straggler (method kair, 64 steps judged)": {
			Kind: "straggler", Rank: model.Some(int64(1)), Confidence: 0.99, Evidence: evidence.Text(`{"method":"kair","steps":64}`),
		},
		"rank 1: straggler (confidence 0.90, 1 step judged)": {
			Kind: "straggler", Rank: model.Some(int64(1)), Confidence: 0.9, Evidence: evidence.Text(`{"steps":1}`),
		},
		"rank 2 nic tx on n1: straggler (link) (confidence 0.90)": {
			Kind: "straggler", Class: "link", Rank: model.Some(int64(2)), Host: "n1", Link: "rank 2 nic tx", Confidence: 0.9,
		},
		"link group c7: straggler (link); which end is at fault is not decided (confidence 0.90)": {
			Kind: "straggler", Class: "link", Link: "group c7", Ranks: []int64{1, 2}, Confidence: 0.9,
		},
		"host n1 (8 ranks): straggler (node), cause throttle, all of its ranks alike; mending it alone would save 20ms per step (10.0 % of the step) (confidence 0.90)": {
			Kind: "straggler", Class: "node", Cause: "throttle", Host: "n1", Ranks: []int64{0, 1, 2, 3, 4, 5, 6, 7}, CostSeconds: model.Some(0.020), CostShare: model.Some(0.1), Confidence: 0.9,
		},
		"rank 3 on n1: straggler (kernel_choice), another kernel than its peers' for the same work, at gemm (confidence 0.90)": {
			Kind: "straggler", Class: "kernel_choice", Rank: model.Some(int64(3)), Host: "n1", Op: "gemm", Confidence: 0.9,
		},
		"stage 2 (1 rank): straggler (stage_imbalance), more work than the other stages; spreading the work evenly would save 20ms per step; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "stage_imbalance", Op: "stage 2", Ranks: []int64{9}, CostSeconds: model.Some(0.020), Confidence: 0.9,
		},
		"ranks 3, 7: straggler (work_imbalance), more work than their peers, at expert_gemm; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "work_imbalance", Ranks: []int64{3, 7}, Op: "expert_gemm", Confidence: 0.9,
		},
		"ranks 0-8 and 91 more: straggler (work_imbalance), more work than their peers; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "work_imbalance", Ranks: []int64{0, 1, 2, 3, 4, 5, 6, 7, 8}, RanksCount: model.Some(int64(100)), Confidence: 0.9,
		},
		"job j: straggler (work_imbalance), who has more work than its peers changes; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "work_imbalance", JobID: "j", Confidence: 0.9,
		},
		"job j: straggler (jitter), cause gc, pauses of 40ms rotate over the ranks, every 12 steps on each; being rid of them would save 20ms per step; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "jitter", Cause: "gc", JobID: "j", CostSeconds: model.Some(0.020), Confidence: 0.9, Evidence: evidence.Text(`{"pauses":{"median_seconds":0.04,"period_steps":12}}`),
		},
		"job j: straggler (jitter), pauses rotate over the ranks; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "jitter", JobID: "j", Confidence: 0.9, Evidence: evidence.Text("none"),
		},
		"job j: straggler (job_wide), all ranks alike since step 40, at gemm; it adds 20ms per step; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "job_wide", JobID: "j", StepFirst: model.Some(int64(40)), Op: "gemm", CostSeconds: model.Some(0.020), Confidence: 0.9,
		},
		"communicator c1: desync (confidence 0.00)":        {Kind: "desync", CommID: "c1"},
		"job j: epoch, cause checkpoint (confidence 1.00)": {Kind: "epoch", JobID: "j", Cause: "checkpoint", Confidence: 1},
	}
	for want, f := range tests {
		assert.Equal(t, want, Sentence(&f))
	}
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
