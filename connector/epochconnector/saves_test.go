// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/epoch/watch"
)

func TestASaveIsASpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.tell(t, 10, 10, 10)
		r.pass(t, time.Minute)
		begun := time.Now()
		r.tell(t, 20, 20, 0)
		r.pass(t, time.Minute)
		assert.Zero(t, r.traces.SpanCount())
		r.tell(t, 20, 20, 20)
		r.pass(t, time.Minute)
		require.Equal(t, 1, r.traces.SpanCount())
		rs := r.traces.AllTraces()[0].ResourceSpans().At(0)
		assert.Equal(t, map[string]any{"lockstep.job.id": "job", "service.name": "llama"}, rs.Resource().Attributes().AsRaw())
		span := rs.ScopeSpans().At(0).Spans().At(0)
		assert.Equal(t, begun.UTC(), span.StartTimestamp().AsTime())
		assert.LessOrEqual(t, span.EndTimestamp().AsTime().Sub(begun), time.Minute+newDefaultConfig().CheckInterval)
		last, _ := span.Attributes().Get("lockstep.epoch.last_domain")
		assert.Equal(t, "model rank 1", last.AsString())
		assert.EqualValues(t, 1, r.counter(t, "spans_lost"), "the first was whole when it was heard of")
		r.stop(t)
	})
}

// Who takes no spans costs the findings nothing.
func TestFindingsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		logs, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return r.logs.ConsumeLogs(ctx, ld)
		})
		require.NoError(t, err)
		r = newRig(t, logs)
		next, err := consumer.NewTraces(func(ctx context.Context, _ ptrace.Traces) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.NoError(t, err)
		r.tell(t, 10, 10, 10)
		r.pass(t, time.Minute)
		r.faces[0].(*face).handle.Value.traces = []consumer.Traces{next}
		r.tell(t, 20, 20, 0)
		r.pass(t, time.Minute)
		r.tell(t, 20, 20, 20)
		r.send(t, line(nvmlLine, nil))
		for _, f := range r.faces {
			_ = f.Shutdown(t.Context())
		}
		assert.Len(t, r.said(t), 1)
		require.NoError(t, r.telemetry.Shutdown(t.Context()))
	})
}

func TestSpansThatAreRefused(t *testing.T) {
	h, err := newHub(newDefaultConfig(), component.MustNewID("epoch"), componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	next, err := consumer.NewTraces(func(context.Context, ptrace.Traces) error { return errors.New("full") })
	require.NoError(t, err)
	h.traces = append(h.traces, next)
	td := h.saves([]watch.Span{{Job: "j", Save: 1}, {Job: "j", Save: 2}})
	require.Error(t, h.sendSaves(t.Context(), td))
	assert.EqualValues(t, 2, h.spansRefused.Load())
}
