// SPDX-License-Identifier: Apache-2.0

package stepmap

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/straggler/stragglertest"
)

// spansOf returns the spans by rank and name; the root's rank is -1.
func spansOf(td ptrace.Traces) map[int64]map[string]ptrace.Span {
	out := map[int64]map[string]ptrace.Span{}
	for _, rs := range td.ResourceSpans().All() {
		rank := int64(-1)
		if v, ok := rs.Resource().Attributes().Get("lockstep.rank"); ok {
			rank = v.Int()
		}
		if out[rank] == nil {
			out[rank] = map[string]ptrace.Span{}
		}
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			out[rank][s.Name()] = s
		}
	}
	return out
}

func attr(t *testing.T, s ptrace.Span, name string) any {
	t.Helper()
	v, ok := s.Attributes().Get(name)
	require.True(t, ok, "no %s on %s", name, s.Name())
	return v.AsRaw()
}

func TestAnnotate(t *testing.T) {
	td := ptrace.NewTraces()
	reports, findings := stragglertest.SlowRank2(t, func(r *model.Rank, ops []model.Op) {
		if ops[0].Step.V == 5 {
			otelmap.AppendOps(td, r, ops)
		}
	})
	Annotate(td, reports, findings, true)
	spans := spansOf(td)
	last := spans[2]["all_reduce"]

	victim := spans[0]["all_reduce"]
	assert.Equal(t, int64(2), attr(t, victim, "lockstep.wait.owed_to"))
	assert.InDelta(t, 0.020, attr(t, victim, "lockstep.wait.suffered.seconds"), 1e-9)
	require.Equal(t, 1, victim.Links().Len())
	assert.Equal(t, last.SpanID(), victim.Links().At(0).SpanID())
	assert.Equal(t, last.TraceID(), victim.Links().At(0).TraceID())
	assert.Equal(t, map[string]any{"lockstep.link.relation": "last_arriver"}, victim.Links().At(0).Attributes().AsRaw())

	assert.Equal(t, int64(2), attr(t, last, "lockstep.wait.owed_to"))
	assert.Zero(t, last.Links().Len(), "nobody links to itself")

	step := spans[0]["step"]
	var sum float64
	for _, part := range []string{"compute", "compute_overlapped", "transfer", "wait", "launch_idle", "dependency_idle", "copy"} {
		sum += attr(t, step, "lockstep.summary."+part).(float64)
	}
	assert.InDelta(t, 0.031, sum, 1e-6)
	assert.InDelta(t, 0.020, attr(t, step, "lockstep.summary.wait"), 1e-9)
	assert.Equal(t, int64(2), attr(t, step, "lockstep.summary.ops"))
	assert.Equal(t, int64(1), attr(t, step, "lockstep.summary.collectives"))
	byKey, err := otelmap.UnmarshalHistograms(attr(t, step, "lockstep.summary.histograms").(string))
	require.NoError(t, err)
	assert.Equal(t, int64(1), byKey["gemm"].Count)
	assert.InDelta(t, 0.010, byKey["gemm"].Sum, 1e-9)

	_, accused := step.Attributes().Get("lockstep.straggler.class")
	assert.False(t, accused, "no finding stands against rank 0")
	assert.Equal(t, "compute", attr(t, spans[2]["step"], "lockstep.straggler.class"))
	assert.Equal(t, findings[0].ID, attr(t, spans[2]["step"], "lockstep.finding.id"))
	// Rank 2 computes for 30 ms, its peers for 10, 11 and 13: their median is 11.
	assert.InDelta(t, 0.019, attr(t, spans[2]["step"], "lockstep.straggler.excess"), 1e-9)

	_, touched := spans[0]["gemm"].Attributes().Get("lockstep.wait.owed_to")
	assert.False(t, touched)
}

// Before a step is analysed, what stands against its ranks is known all the same.
func TestAnnotateWithoutAReport(t *testing.T) {
	td := ptrace.NewTraces()
	_, findings := stragglertest.SlowRank2(t, func(r *model.Rank, ops []model.Op) {
		if ops[0].Step.V == 5 {
			otelmap.AppendOps(td, r, ops)
		}
	})
	require.Equal(t, "gemm", findings[0].Op)
	Annotate(td, nil, findings, true)
	spans := spansOf(td)
	assert.Equal(t, "compute", attr(t, spans[2]["step"], "lockstep.straggler.class"))
	assert.Equal(t, findings[0].ID, attr(t, spans[2]["step"], "lockstep.finding.id"))
	assert.Equal(t, "compute", attr(t, spans[2]["gemm"], "lockstep.straggler.class"), "the operation at fault")
	assert.InDelta(t, 0.019, attr(t, spans[2]["step"], "lockstep.straggler.excess"), 0.001, "what is typical")
	_, known := spans[2]["step"].Attributes().Get("lockstep.summary.wait")
	assert.False(t, known)
	for _, s := range []ptrace.Span{spans[2]["all_reduce"], spans[0]["gemm"], spans[0]["step"]} {
		_, accused := s.Attributes().Get("lockstep.straggler.class")
		assert.False(t, accused, s.Name())
	}
}

func TestTheMostPointedFindingIsWritten(t *testing.T) {
	const kind = model.FindingStraggler
	all := []model.Finding{
		{Kind: kind, Incarnation: "inc", ID: "stage", Class: model.ClassStageImbalance, Ranks: []int64{0, 1, 2, 3}, CostSeconds: model.Some(9.0), Evidence: evidence.Text(`{"excess_seconds":0.5}`)},
		{Kind: kind, Incarnation: "inc", ID: "node", Class: model.ClassNode, Host: "n", Ranks: []int64{1, 2}, CostSeconds: model.Some(5.0)},
		{Kind: kind, Incarnation: "inc", ID: "little", Class: model.ClassHost, Rank: model.Some(int64(2)), CostSeconds: model.Some(1.0)},
		{Kind: kind, Incarnation: "inc", ID: "much", Class: model.ClassCompute, Rank: model.Some(int64(2)), CostSeconds: model.Some(2.0)},
		{Kind: model.FindingClock, Incarnation: "inc", ID: "clock", Class: model.ClassSkew, Rank: model.Some(int64(3))},
		{Kind: kind, Incarnation: "other", ID: "other", Class: model.ClassCompute, Rank: model.Some(int64(0))},
	}
	backward := slices.Clone(all)
	slices.Reverse(backward)
	for _, findings := range [][]model.Finding{all, backward} {
		td := ptrace.NewTraces()
		reports, _ := stragglertest.SlowRank2(t, func(r *model.Rank, ops []model.Op) {
			if ops[0].Step.V == 5 {
				otelmap.AppendOps(td, r, ops)
			}
		})
		Annotate(td, reports, findings, false)
		spans := spansOf(td)
		for r, want := range map[int64]string{0: "stage", 1: "node", 2: "much", 3: "stage"} {
			assert.Equal(t, want, attr(t, spans[r]["step"], "lockstep.finding.id"))
		}
		assert.InDelta(t, 0.5, attr(t, spans[0]["step"], "lockstep.straggler.excess"), 0, "the stage's, over other stages")
		assert.InDelta(t, -0.002, attr(t, spans[1]["step"], "lockstep.straggler.excess"), 1e-9, "of this step: it computes for 11 ms, its peers for 10, 13 and 30")
	}
}

func TestTheSummaryOfMoreOperationsStays(t *testing.T) {
	for name, tc := range map[string]struct {
		ops  int64
		want float64 // the summary's compute
	}{
		"the source folded more": {3, 9},
		"as many":                {2, 0.010},
		"fewer":                  {1, 0.010},
	} {
		t.Run(name, func(t *testing.T) {
			td := ptrace.NewTraces()
			reports, findings := stragglertest.SlowRank2(t, func(r *model.Rank, ops []model.Op) {
				if ops[0].Step.V == 5 {
					otelmap.AppendOps(td, r, ops)
				}
			})
			spans := spansOf(td)
			for _, by := range spans {
				source := otelmap.Summary{Compute: 9, Ops: tc.ops, Histograms: "the source's"}
				otelmap.WriteSummary(&source, by["step"])
			}
			Annotate(td, reports, findings, true)
			step := spans[2]["step"]
			assert.InDelta(t, tc.want, attr(t, spans[0]["step"], "lockstep.summary.compute"), 1e-6)
			assert.Equal(t, tc.ops == 3, attr(t, step, "lockstep.summary.histograms") == "the source's")
			assert.Equal(t, "compute", attr(t, step, "lockstep.straggler.class"), "what the analysis found is told all the same")
		})
	}
}

func TestAnnotatingTwiceChangesNothing(t *testing.T) {
	td := ptrace.NewTraces()
	reports, findings := stragglertest.SlowRank2(t, func(r *model.Rank, ops []model.Op) { otelmap.AppendOps(td, r, ops) })
	Annotate(td, reports, findings, true)
	once := ptrace.NewTraces()
	td.CopyTo(once)
	Annotate(td, reports, findings, true)
	assert.Equal(t, once, td)
}

func TestForeignSpansAreLeftAlone(t *testing.T) {
	td := ptrace.NewTraces()
	rank := stragglertest.Rank(0)
	otelmap.AppendOps(td, &rank, stragglertest.Ops(99, 10)) // of a step that nobody reported
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("GET /")
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	spans.AppendEmpty().Attributes().PutInt("lockstep.op.kind", 5)
	spans.AppendEmpty().SetSpanID(pcommon.SpanID{1})
	before := ptrace.NewTraces()
	td.CopyTo(before)
	reports, findings := stragglertest.SlowRank2(t, func(*model.Rank, []model.Op) {})
	Annotate(td, reports, findings, true)
	assert.Equal(t, before, td)
}
