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

func stepFor(refs ...model.SpanRef) model.Op {
	return model.Op{Kind: model.KindStep, Name: "step", Step: model.Some(int64(7)), Start: model.EarliestTime + 100, End: model.EarliestTime + 300, Links: refs}
}

func refOf(n byte) model.SpanRef {
	return model.SpanRef{Trace: model.TraceID{n, 15: 1}, Span: model.SpanID{n, 7: 2}}
}

func TestStepsAreLinkedToWhatTheyWorkFor(t *testing.T) {
	rank := model.Rank{JobID: "j", Incarnation: "i", Rank: 3}
	op := stepFor(refOf(1), refOf(2))
	op.LinksDropped = 5
	td := OpsToTraces(&rank, []model.Op{op})
	s := firstSpan(td)
	require.Equal(t, 2, s.Links().Len())
	assert.Equal(t, pcommon.TraceID(refOf(2).Trace), s.Links().At(1).TraceID())
	assert.Equal(t, pcommon.SpanID(refOf(2).Span), s.Links().At(1).SpanID())
	assert.Equal(t, map[string]any{"lockstep.link.relation": "request"}, s.Links().At(1).Attributes().AsRaw())
	assert.Equal(t, uint32(5), s.DroppedLinksCount())

	// Links of other relations are no requests.
	AddLink(s, refOf(9), semconv.LinkLastArriver)
	s.Links().AppendEmpty()
	got, problems := TracesToOps(td)
	require.Empty(t, problems)
	assert.Equal(t, op, got[0].Ops[0])
}

func TestLinksBeyondTheBoundAreCounted(t *testing.T) {
	many := make([]model.SpanRef, model.MaxStepLinks+3)
	for i := range many {
		many[i] = refOf(byte(i))
	}
	td := OpsToTraces(&model.Rank{}, []model.Op{stepFor(many...)})
	s := firstSpan(td)
	assert.Equal(t, []int{model.MaxStepLinks, 3}, []int{s.Links().Len(), int(s.DroppedLinksCount())})
	AddLink(s, refOf(200), semconv.LinkRequest)
	got, _ := TracesToOps(td)
	assert.Len(t, got[0].Ops[0].Links, model.MaxStepLinks)
	assert.Equal(t, int64(4), got[0].Ops[0].LinksDropped)
}

// From a span of a request's trace, the step below it leads to the step's own trace.
func TestRequestSpans(t *testing.T) {
	rank := model.Rank{JobName: "llama", JobID: "j", Incarnation: "i", Rank: 3}
	op := stepFor(refOf(1), refOf(2))
	td := OpsToTraces(&rank, []model.Op{op})
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	require.Equal(t, 2, AppendRequestSpans(spans, &rank, &op))
	s := spans.At(1)
	assert.Equal(t, "lockstep step 7", s.Name())
	assert.Equal(t, ptrace.SpanKindInternal, s.Kind())
	assert.Equal(t, pcommon.TraceID(refOf(1).Trace), s.TraceID())
	assert.Equal(t, pcommon.SpanID(refOf(1).Span), s.ParentSpanID())
	assert.Equal(t, []pcommon.Timestamp{pcommon.Timestamp(model.EarliestTime + 100), pcommon.Timestamp(model.EarliestTime + 300)}, []pcommon.Timestamp{s.StartTimestamp(), s.EndTimestamp()})
	assert.Equal(t, map[string]any{
		"lockstep.request.span": true, "lockstep.step": int64(7), "lockstep.rank": int64(3),
		"lockstep.job.id": "j", "lockstep.job.incarnation": "i",
	}, s.Attributes().AsRaw())
	require.Equal(t, 1, s.Links().Len())
	step := spans.At(0)
	assert.Equal(t, []any{step.TraceID(), step.SpanID()}, []any{s.Links().At(0).TraceID(), s.Links().At(0).SpanID()})
	assert.NotEqual(t, s.SpanID(), spans.At(2).SpanID())

	again := ptrace.NewSpanSlice()
	AppendRequestSpans(again, &rank, &op)
	assert.Equal(t, s.SpanID(), again.At(0).SpanID(), "whoever sees the step makes the same span")

	got, problems := TracesToOps(td)
	assert.Empty(t, problems)
	require.Len(t, got, 1)
	assert.Equal(t, []model.Op{op}, got[0].Ops, "it is no operation")

	// Two spans of one request, and two ranks, have spans of their own.
	ids := map[pcommon.SpanID]bool{}
	for _, r := range []int64{3, 4} {
		rank.Rank = r
		both := stepFor(refOf(1), model.SpanRef{Trace: refOf(1).Trace, Span: refOf(2).Span})
		out := ptrace.NewSpanSlice()
		AppendRequestSpans(out, &rank, &both)
		ids[out.At(0).SpanID()], ids[out.At(1).SpanID()] = true, true
	}
	assert.Len(t, ids, 4)
}

func TestRequestSpansAreOfStepsOnlyAndBounded(t *testing.T) {
	op := stepFor(make([]model.SpanRef, 1000)...)
	out := ptrace.NewSpanSlice()
	assert.Equal(t, model.MaxStepLinks, AppendRequestSpans(out, &model.Rank{}, &op))
	assert.Equal(t, model.MaxStepLinks, out.Len())
	op.Kind = model.KindScope
	assert.Zero(t, AppendRequestSpans(out, &model.Rank{}, &op))
	op = stepFor(refOf(1))
	op.Step = model.Optional[int64]{}
	assert.Zero(t, AppendRequestSpans(out, &model.Rank{}, &op))
}
