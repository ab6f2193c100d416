// SPDX-License-Identifier: Apache-2.0

package epochmap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestSavesAreSpans(t *testing.T) {
	start := time.Unix(1_760_000_000, 7)
	full := Save{
		JobID: "job", JobName: "llama", Generation: "8 ranks", Epoch: 100, Start: start, End: start.Add(time.Minute), FromFiles: true,
		Domains: 9, Last: model.Domain{Kind: model.DomainOptimizer, ID: "rank 3"},
		Confirmed: []model.Confirmation{{Domain: model.Domain{Kind: model.DomainCommit}, Time: start.UnixNano()}, {Domain: model.Domain{Kind: model.DomainOptimizer, ID: "rank 3"}, Time: start.Add(time.Minute).UnixNano()}},
	}
	td := ptrace.NewTraces()
	AppendSave(&full, td)
	AppendSave(&full, td)
	least := Save{JobID: "job", Epoch: 100, Start: start.Add(1), End: start.Add(1)}
	AppendSave(&least, td)
	require.Equal(t, 3, td.SpanCount())
	span := func(i int) ptrace.Span { return td.ResourceSpans().At(i).ScopeSpans().At(0).Spans().At(0) }
	assert.Equal(t, map[string]any{"lockstep.job.id": "job", "service.name": "llama"}, td.ResourceSpans().At(0).Resource().Attributes().AsRaw())
	assert.Equal(t, map[string]any{"lockstep.job.id": "job", "service.name": "job"}, td.ResourceSpans().At(2).Resource().Attributes().AsRaw(), "Jaeger lists services")
	assert.Equal(t, "checkpoint save", span(0).Name())
	assert.Equal(t, time.Minute, span(0).EndTimestamp().AsTime().Sub(span(0).StartTimestamp().AsTime()))
	assert.Equal(t, map[string]any{
		"lockstep.epoch.save": int64(100), "lockstep.epoch.generation": "8 ranks", "lockstep.epoch.domains": int64(9),
		"lockstep.epoch.last_domain": "optimizer rank 3", "lockstep.epoch.begun_by": "file",
	}, span(0).Attributes().AsRaw())
	require.Equal(t, 2, span(0).Events().Len())
	last := span(0).Events().At(1)
	assert.Equal(t, []any{"optimizer confirmed", span(0).EndTimestamp()}, []any{last.Name(), last.Timestamp()})
	assert.Equal(t, map[string]any{"lockstep.epoch.domain.kind": "optimizer", "lockstep.epoch.domain.id": "rank 3"}, last.Attributes().AsRaw())
	assert.Equal(t, map[string]any{"lockstep.epoch.domain.kind": "commit"}, span(0).Events().At(0).Attributes().AsRaw())
	assert.Equal(t, map[string]any{"lockstep.epoch.save": int64(100), "lockstep.epoch.domains": int64(0), "lockstep.epoch.begun_by": "observation"}, span(2).Attributes().AsRaw())
	assert.Equal(t, span(0).TraceID(), span(1).TraceID(), "one save is one span, however often it is told")
	assert.Equal(t, span(0).SpanID(), span(1).SpanID())
	assert.NotEqual(t, span(0).TraceID(), span(2).TraceID())
	assert.True(t, span(0).ParentSpanID().IsEmpty())
}
