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
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
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
		holds := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		r.tell(t, 10, 10, 10)
		r.pass(t, time.Minute)
		r.refuses.Store(&holds)
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

// Spans of saves that are refused are sent again.
func TestSpans_Refused_AreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.tell(t, 10, 10, 10)
		r.pass(t, time.Minute)
		before, lost := r.traces.SpanCount(), r.counter(t, "spans_lost")
		full := func(context.Context) error { return errors.New("full") }
		r.refuses.Store(&full)
		r.tell(t, 20, 20, 0)
		r.pass(t, time.Minute)
		r.tell(t, 20, 20, 20)
		r.pass(t, time.Minute)
		require.Equal(t, before, r.traces.SpanCount())
		r.refuses.Store(nil)
		r.pass(t, time.Minute)
		assert.Greater(t, r.traces.SpanCount(), before)
		assert.Equal(t, lost, r.counter(t, "spans_lost"))
		r.stop(t)
	})
}
