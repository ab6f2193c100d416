// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

func TestOpsRoundTrip(t *testing.T) {
	for seed := range uint64(500) {
		sparse := seed%2 == 1
		rank := randomRank(t, seed, sparse)
		ops := []model.Op{randomOp(t, seed+1000, sparse), randomOp(t, seed+2000, sparse)}
		got, problems := TracesToOps(throughTheWire(t, OpsToTraces(&rank, ops)))
		require.Empty(t, problems)
		if rank.Incarnation == "" && rank.JobID != "" {
			rank.Incarnation = got[0].Rank.Incarnation // see TestJobsWithoutIncarnationStayApart
		}
		require.Equal(t, []model.RankOps{{Rank: rank, Ops: ops}}, got, "seed %d", seed)
	}
}

func TestJobsWithoutIncarnationStayApart(t *testing.T) {
	seen := map[string]bool{}
	for _, job := range []string{"a", "b"} {
		got, _ := TracesToOps(OpsToTraces(&model.Rank{JobID: job}, []model.Op{{Kind: model.KindCompute, Name: "gemm"}}))
		require.NotEmpty(t, got[0].Rank.Incarnation)
		seen[got[0].Rank.Incarnation] = true
	}
	assert.Len(t, seen, 2)
	got, _ := TracesToOps(OpsToTraces(&model.Rank{JobID: "a", Incarnation: "life"}, []model.Op{{Kind: model.KindCompute, Name: "gemm"}}))
	assert.Equal(t, "life", got[0].Rank.Incarnation)
}

// throughTheWire marshals and unmarshals, as between two collectors.
func throughTheWire(t *testing.T, td ptrace.Traces) ptrace.Traces {
	t.Helper()
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	back, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(b)
	require.NoError(t, err)
	return back
}

func TestKeyEqualToNameIsOmitted(t *testing.T) {
	op := model.Op{Kind: model.KindCompute, Name: "gemm", Key: "gemm"}
	td := OpsToTraces(&model.Rank{}, []model.Op{op})
	_, written := firstSpan(td).Attributes().Get(semconv.OpKey)
	assert.False(t, written)
	got, _ := TracesToOps(td)
	assert.Equal(t, op.ComparisonKey(), got[0].Ops[0].ComparisonKey())
}

func TestSpanTree(t *testing.T) {
	rank := model.Rank{Incarnation: "inc", Rank: 3}
	ops := []model.Op{
		{Kind: model.KindCollective, Name: "all_reduce", Step: model.Some(int64(7)), Stream: model.Some(int64(20))},
		{Kind: model.KindStep, Name: "step", Step: model.Some(int64(7))},
		{Kind: model.KindSend, Name: "send"},
		{Kind: model.KindRecv, Name: "recv", Step: model.Some(int64(0))},
	}
	spans := OpsToTraces(&rank, ops).ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	trace := model.StepTraceID("inc", 7)
	step := pcommon.SpanID(model.StepSpanID(trace, 3))

	collective := spans.At(0)
	assert.Equal(t, pcommon.TraceID(trace), collective.TraceID())
	assert.Equal(t, pcommon.SpanID(model.OpSpanID(trace, 3, 20, "all_reduce", 0)), collective.SpanID())
	assert.Equal(t, step, collective.ParentSpanID())
	assert.Equal(t, ptrace.SpanKindInternal, collective.Kind())

	assert.Equal(t, step, spans.At(1).SpanID())
	assert.Equal(t, pcommon.SpanID(model.RootSpanID(trace)), spans.At(1).ParentSpanID())

	assert.Equal(t, ptrace.SpanKindProducer, spans.At(2).Kind())
	assert.True(t, spans.At(2).ParentSpanID().IsEmpty(), "an operation without a step has no step for a parent")
	assert.Equal(t, ptrace.SpanKindConsumer, spans.At(3).Kind())
	assert.Equal(t, pcommon.TraceID(model.StepTraceID("inc", 0)), spans.At(3).TraceID())
}

func TestRootSpan(t *testing.T) {
	td := ptrace.NewTraces()
	RootToTraces(&Root{JobName: "n", JobID: "j", Incarnation: "inc", Step: 7, Start: 10, End: 30, Omitted: 5, Limit: 2000}, td)
	s := firstSpan(td)
	trace := model.StepTraceID("inc", 7)
	assert.Equal(t, pcommon.TraceID(trace), s.TraceID())
	assert.Equal(t, pcommon.SpanID(model.RootSpanID(trace)), s.SpanID())
	assert.True(t, s.ParentSpanID().IsEmpty())
	assert.Equal(t, map[string]any{"lockstep.step": int64(7), "lockstep.story.omitted": int64(5), "lockstep.story.limit": int64(2000)}, s.Attributes().AsRaw())
	assert.Equal(t, map[string]any{"service.name": "n", "lockstep.job.id": "j", "lockstep.job.incarnation": "inc"},
		td.ResourceSpans().At(0).Resource().Attributes().AsRaw())
	ops, problems := TracesToOps(td)
	assert.Empty(t, ops)
	assert.Empty(t, problems, "a span of our own is no surprise")
}

func TestRootSpan_SpansWereLost_SaysWhyAndHowMany(t *testing.T) {
	td := ptrace.NewTraces()
	RootToTraces(&Root{Incomplete: "gateway_ended", Lost: 5}, td)
	a := firstSpan(td).Attributes().AsRaw()
	assert.Equal(t, []any{"gateway_ended", int64(5)}, []any{a["lockstep.step.incomplete"], a["lockstep.step.lost"]})
}

func TestResource(t *testing.T) {
	res := pcommon.NewResource()
	RankToResource(&model.Rank{JobID: "j", Incarnation: "i", Rank: 0, HWID: "GPU-1"}, res)
	assert.Equal(t, map[string]any{
		"service.instance.id": "j/i/0", "lockstep.job.id": "j", "lockstep.job.incarnation": "i",
		"lockstep.rank": int64(0), "hw.id": "GPU-1", "hw.type": "gpu",
	}, res.Attributes().AsRaw())
}

func TestForeignAndBrokenSpans(t *testing.T) {
	td := OpsToTraces(&model.Rank{Rank: 2}, []model.Op{{Kind: model.KindCopy, Name: "memcpy"}, {Kind: model.KindCopy}})
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	spans.At(0).Attributes().PutStr(semconv.StreamID, "20")
	spans.At(1).Attributes().PutDouble(semconv.OpKind, 1)
	spans.AppendEmpty().SetName("GET /")
	spans.AppendEmpty().SetName("GET /")
	homeless := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	homeless.Attributes().PutStr(semconv.OpKind, "copy")

	got, problems := TracesToOps(td)
	require.Len(t, got, 1)
	assert.Equal(t, []model.Op{{Kind: model.KindCopy, Name: "memcpy"}}, got[0].Ops)
	rank := int64(2)
	assert.Equal(t, []model.Problem{
		{Offset: -1, Rank: &rank, What: "read attribute lockstep.stream.id: got type Str (1 times)"},
		{Offset: -1, What: `leave out span: attribute lockstep.op.kind: got Double "1"; want one of compute, collective, p2p.send, p2p.recv, copy, host, scope, step (1 times)`},
		{Offset: -1, What: "span without lockstep.op.kind is no operation and was passed over (2 times)"},
		{Offset: -1, What: "leave out span: attribute lockstep.rank of the resource: got none; want an integer of at least 0 (1 times)"},
	}, problems)
}

func TestOneRankOfTwoResources(t *testing.T) {
	host := model.Rank{JobID: "j", Incarnation: "i", Rank: 1, ClockID: "host:a/b/raw"}
	gpu := host
	gpu.ClockID = "gpu:u/globaltimer"
	td := OpsToTraces(&host, []model.Op{{Kind: model.KindHost, Name: "a"}})
	AppendOps(td, &gpu, []model.Op{{Kind: model.KindCompute, Name: "b"}})
	got, problems := TracesToOps(td)
	require.Empty(t, problems)
	require.Len(t, got, 1)
	assert.Equal(t, host, got[0].Rank)
	assert.Equal(t, []model.Op{
		{Kind: model.KindHost, Name: "a"},
		{Kind: model.KindCompute, Name: "b", ClockID: "gpu:u/globaltimer"},
	}, got[0].Ops)
}

func TestTwoProcessesOfOneRankStayApart(t *testing.T) {
	first := model.Rank{JobID: "j", Incarnation: "i", Rank: 1, HostName: "a", PID: model.Some[int64](1)}
	second := first
	second.HostName, second.PID = "b", model.Some[int64](2)
	less := model.Rank{JobID: "j", Incarnation: "i", Rank: 1, HostName: "b"} // another source of the second
	td := OpsToTraces(&first, []model.Op{{Kind: model.KindHost, Name: "x"}})
	AppendOps(td, &second, []model.Op{{Kind: model.KindHost, Name: "y"}})
	AppendOps(td, &less, []model.Op{{Kind: model.KindHost, Name: "z"}})
	got, problems := TracesToOps(td)
	require.Empty(t, problems)
	require.Len(t, got, 2)
	assert.Equal(t, first, got[0].Rank)
	assert.Len(t, got[0].Ops, 1)
	assert.Equal(t, second, got[1].Rank)
	assert.Len(t, got[1].Ops, 2)

	for n := range int64(100) {
		more := first
		more.PID = model.Some(n + 10)
		AppendOps(td, &more, []model.Op{{Kind: model.KindHost, Name: "x"}})
	}
	got, _ = TracesToOps(td)
	assert.Len(t, got, maxProcesses)
	assert.Len(t, got[0].Ops, 1, "what is beyond goes to none of the first")
}

func TestProblemsAreBounded(t *testing.T) {
	var p Problems
	for i := range int64(maxProblems + 10) {
		p.add(&i, "broken")
	}
	assert.Equal(t, int64(maxProblems+10), p.Count())
	list := p.List()
	assert.Len(t, list, maxProblems+1)
	assert.Equal(t, "further problems beyond 256 kinds (10 times)", list[maxProblems].What)
}

func TestProblems_TextsCutBeyondTheBound_AreNoFaults(t *testing.T) {
	var p Problems
	for i := range int64(maxProblems + 10) {
		n := p.notes(&i)
		n.note("name", pcommon.ValueTypeStr, shortened)
	}
	assert.Zero(t, p.Count())
	assert.Equal(t, int64(maxProblems+10), p.TextsCut())
	assert.Equal(t, "further problems beyond 256 kinds (10 times)", p.List()[maxProblems].What)
}

func firstSpan(td ptrace.Traces) ptrace.Span {
	return td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
}
