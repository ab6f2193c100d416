// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// The key that is read from a span is that of the operation that the span was made of, for every kind.
func TestPartitionKeys_SpansOfOperations_HaveTheirKeys(t *testing.T) {
	rank := model.Rank{JobID: "j", Incarnation: "i", Rank: 3}
	collective := model.Collective{Name: model.AllReduce, Seq: model.Some(int64(7))}
	scoped := func(s model.SeqScope) model.Collective { c := collective; c.SeqScope = s; return c }
	ops := []model.Op{
		{Kind: model.KindCollective, Comm: model.Comm{ID: "c"}, Collective: scoped(model.ScopeCommFunc)},
		{Kind: model.KindCollective, Comm: model.Comm{ID: "c"}, Collective: scoped(model.ScopeComm)},
		{Kind: model.KindCollective, Comm: model.Comm{ID: "c"}, Step: model.Some(int64(2)), Collective: scoped(model.ScopeOrdinal)},
		{Kind: model.KindCollective, Comm: model.Comm{ID: "c"}, Step: model.Some(int64(2)), Collective: scoped(model.ScopeProcess)},
		{Kind: model.KindSend, Comm: model.Comm{ID: "c"}, Peer: model.Some(int64(1)), Collective: scoped(model.ScopeComm)},
		{Kind: model.KindRecv, Comm: model.Comm{ID: "c"}, Peer: model.Some(int64(1)), Collective: scoped(model.ScopeComm)},
		{Kind: model.KindCompute, Step: model.Some(int64(2))},
		{Kind: model.KindStep, Step: model.Some(int64(2))},
		{Kind: model.KindHost},
	}
	for i := range ops {
		ops[i].Name = "x"
	}
	td := OpsToTraces(&rank, ops)
	var keys PartitionKeys
	keys.Resource(td.ResourceSpans().At(0).Resource())
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	for i := range ops {
		assert.Equal(t, model.AppendPartitionKey(nil, &rank, &ops[i]), keys.Span(spans.At(i)), "%s %s", ops[i].Kind, ops[i].Collective.SeqScope)
	}
}

func TestPartitionKeys_SpanOfOthers_GoesByItsTrace(t *testing.T) {
	td := ptrace.NewTraces()
	s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	id := pcommon.TraceID{1, 2, 3}
	s.SetTraceID(id)
	var keys PartitionKeys
	keys.Resource(td.ResourceSpans().At(0).Resource())
	assert.Equal(t, id[:], keys.Span(s))
	// An operation whose resource names no rank is none that can be matched.
	s.Attributes().PutStr("lockstep.op.kind", "collective")
	assert.Equal(t, id[:], keys.Span(s))
}

func TestJobKey_IDThenService(t *testing.T) {
	res := pcommon.NewResource()
	assert.Empty(t, JobKey(res))
	res.Attributes().PutStr("service.name", "llama")
	assert.Equal(t, "llama", JobKey(res))
	res.Attributes().PutStr("lockstep.job.id", "4711")
	assert.Equal(t, "4711", JobKey(res))
	res.Attributes().PutInt("lockstep.job.id", 4711)
	assert.Equal(t, "llama", JobKey(res), "an id of a wrong type is none")
}
