// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
)

var summaryWire = map[string]pcommon.ValueType{
	"lockstep.summary.compute": typeDouble, "lockstep.summary.compute_overlapped": typeDouble,
	"lockstep.summary.transfer": typeDouble, "lockstep.summary.wait": typeDouble,
	"lockstep.summary.launch_idle": typeDouble, "lockstep.summary.dependency_idle": typeDouble,
	"lockstep.summary.copy": typeDouble,
	"lockstep.summary.ops":  typeInt, "lockstep.summary.collectives": typeInt,
	"lockstep.summary.histograms": typeStr,
}

func TestSummaryRoundTrip(t *testing.T) {
	for seed := range uint64(50) {
		var want Summary
		newFiller(seed, seed%2 == 1).fill(t, reflect.ValueOf(&want).Elem())
		s := ptrace.NewSpan()
		WriteSummary(&want, s)
		var p Problems
		require.Equal(t, want, ReadSummary(s, &p))
		require.Zero(t, p.Count())
	}
	s := ptrace.NewSpan()
	WriteSummary(&Summary{Histograms: "{}"}, s)
	assert.Equal(t, summaryWire, typesOf(s.Attributes()), "parts of zero are written too: they sum to the step")
	for _, name := range constBlock(t, "../semconv/attributes.go", "Step summary attributes, on the span of kind \"step\" only. The seven parts of\nthe exclusive split are seconds and sum to the step.\n") {
		assert.Contains(t, summaryWire, name)
	}
}

// A note on a span reads back as the operation's.
func TestNoteIsReadWithTheOperation(t *testing.T) {
	want := model.StragglerNote{Class: "host", Excess: model.Some(0.5), OwedTo: model.Some(int64(0)), Suffered: model.Some(0.25)}
	td := OpsToTraces(&model.Rank{}, []model.Op{{Kind: model.KindCollective}})
	WriteNote(&want, firstSpan(td))
	got, _ := TracesToOps(td)
	assert.Equal(t, want, got[0].Ops[0].Straggler)
}

func TestLinkOnce(t *testing.T) {
	s := ptrace.NewSpan()
	trace := model.StepTraceID("i", 1)
	a, b := model.SpanRef{Trace: trace, Span: model.StepSpanID(trace, 1)}, model.SpanRef{Trace: trace, Span: model.StepSpanID(trace, 2)}
	LinkOnce(s, a, "last_arriver")
	LinkOnce(s, a, "last_arriver")
	LinkOnce(s, b, "last_arriver")
	assert.Equal(t, 2, s.Links().Len())
}

// The summaries are those of the ranks that have operations, also behind a rank of which nothing can be true.
func TestReadOpsAndSummaries_EachStep_HasItsOwn(t *testing.T) {
	td := ptrace.NewTraces()
	AppendOps(td, &model.Rank{JobID: "job", Rank: 1}, []model.Op{{Kind: model.KindCompute, Name: "late", Start: 9, End: 5}})
	step := model.Op{Kind: model.KindStep, Name: "step", Start: 5, End: 9}
	gemm := model.Op{Kind: model.KindCompute, Name: "gemm", Start: 5, End: 7}
	AppendOps(td, &model.Rank{JobID: "job", Rank: 2}, []model.Op{gemm, step, step})
	AppendOps(td, &model.Rank{JobID: "job", Rank: 3}, []model.Op{gemm})
	spans := td.ResourceSpans().At(1).ScopeSpans().At(0).Spans()
	want := Summary{Compute: 0.5, Ops: 1, Histograms: "{}"}
	WriteSummary(&want, spans.At(2))
	spans.At(0).Attributes().PutInt("lockstep.summary.ops", 7) // on no step

	ranks, summaries := ReadOpsAndSummaries(td, nil)
	require.Len(t, ranks, 2)
	require.Len(t, summaries, 2)
	assert.Equal(t, int64(2), ranks[0].Rank.Rank)
	assert.Equal(t, StepSummaries{2: &want}, summaries[0])
	assert.Nil(t, summaries[1])
	assert.Equal(t, ReadOps(td, nil), ranks)
}
