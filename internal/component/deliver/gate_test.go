// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

func spans(n int) ptrace.Traces {
	td := ptrace.NewTraces()
	to := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for range n {
		to.AppendEmpty()
	}
	return td
}

func records(n int) plog.Logs {
	ld := plog.NewLogs()
	to := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range n {
		to.AppendEmpty()
	}
	return ld
}

func points(n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	to := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints()
	for range n {
		to.AppendEmpty()
	}
	return md
}

func newGate() (*deliver.Gate, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.InfoLevel)
	return deliver.NewGate(zap.New(core)), logs
}

func TestGate_Open_PassesEverything(t *testing.T) {
	g, logs := newGate()
	traces, events, series := &consumertest.TracesSink{}, &consumertest.LogsSink{}, &consumertest.MetricsSink{}
	require.NoError(t, g.Traces(traces).ConsumeTraces(t.Context(), spans(2)))
	require.NoError(t, g.Logs(events).ConsumeLogs(t.Context(), records(3)))
	require.NoError(t, g.Metrics(series).ConsumeMetrics(t.Context(), points(4)))
	assert.Equal(t, []int{2, 3, 4}, []int{traces.SpanCount(), events.LogRecordCount(), series.DataPointCount()})
	refusing := consumertest.NewErr(assert.AnError)
	require.ErrorIs(t, g.Traces(refusing).ConsumeTraces(t.Context(), spans(1)), assert.AnError)
	assert.True(t, g.Traces(mutating{}).Capabilities().MutatesData)
	assert.Nil(t, g.Traces(nil))
	assert.Nil(t, g.Logs(nil))
	assert.Nil(t, g.Metrics(nil))
	_, stopped := g.Stop(t.Context())
	require.NoError(t, stopped())
	assert.Zero(t, logs.Len())
}

// A queue on disk has time to read what it was given last before its exporter stops.
func TestGate_DataWasTakenLately_StopsAfterwards(t *testing.T) {
	for name, c := range map[string]struct {
		gate  func(*zap.Logger) *deliver.Gate
		ago   time.Duration // negative: during the stop
		items int
		took  time.Duration
	}{
		"during the stop":            {deliver.NewGate, -1, 1, 200 * time.Millisecond},
		"nothing during the stop":    {deliver.NewGate, -1, 0, 0},
		"before the stop":            {deliver.NewGate, 50 * time.Millisecond, 1, 0},
		"inner, during the stop":     {deliver.NewInnerGate, -1, 1, 200 * time.Millisecond},
		"inner, shortly before":      {deliver.NewInnerGate, 50 * time.Millisecond, 1, 150 * time.Millisecond},
		"inner, nothing in it":       {deliver.NewInnerGate, 50 * time.Millisecond, 0, 0},
		"inner, longer before":       {deliver.NewInnerGate, time.Second, 1, 0},
		"inner, at the same instant": {deliver.NewInnerGate, 0, 1, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := c.gate(zap.NewNop())
				give := func() {
					require.NoError(t, g.Traces(&consumertest.TracesSink{}).ConsumeTraces(t.Context(), spans(c.items)))
				}
				if c.ago >= 0 {
					give()
					time.Sleep(c.ago)
				}
				began := time.Now()
				_, stopped := g.Stop(t.Context())
				if c.ago < 0 {
					give()
				}
				require.NoError(t, stopped())
				assert.Equal(t, c.took, time.Since(began))
			})
		})
	}
}

// What was refused waits for nothing.
func TestGate_DataWasRefused_StopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate()
		last, stopped := g.Stop(t.Context())
		require.Error(t, g.Traces(consumertest.NewErr(assert.AnError)).ConsumeTraces(last, spans(1)))
		began := time.Now()
		require.NoError(t, stopped())
		assert.Zero(t, time.Since(began))
	})
}

type mutating struct{ consumer.Traces }

func (mutating) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// stop stops a component that waits for a call under way, and then gives one span more.
func stop(t *testing.T, ctx context.Context, g *deliver.Gate, next consumer.Traces, running <-chan error) (took time.Duration, err error) { //nolint:revive // t is first in tests
	t.Helper()
	began := time.Now()
	last, stopped := g.Stop(ctx)
	if running != nil {
		require.ErrorIs(t, <-running, deliver.ErrClosed)
	}
	require.Error(t, next.ConsumeTraces(last, spans(1)))
	err = stopped()
	return time.Since(began), err
}

func TestGate_NextNeverReturns_StopsInTime(t *testing.T) {
	for name, c := range map[string]struct{ deadline, most time.Duration }{
		"without a deadline":      {0, deliver.ShutdownLimit},
		"with an early deadline":  {time.Second, time.Second},
		"with a late deadline":    {time.Hour, deliver.ShutdownLimit},
		"with a deadline already": {-time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, logs := newGate()
				next := g.Traces(delivertest.NewStuck(t))
				running := make(chan error, 1)
				go func() { running <- next.ConsumeTraces(t.Context(), spans(7)) }()
				synctest.Wait()
				ctx := t.Context()
				if c.deadline != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				took, err := stop(t, ctx, g, next, running)
				assert.LessOrEqual(t, took, c.most)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "(traces)")
				require.ErrorContains(t, err, "8 items were not delivered")
				require.Equal(t, 1, logs.Len())
				assert.EqualValues(t, 8, logs.All()[0].ContextMap()["items_not_delivered"])

				_, stopped := g.Stop(t.Context())
				require.NoError(t, stopped(), "it was reported")
			})
		})
	}
}

func TestGate_ShutdownCancelled_ClosesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		took, err := stop(t, ctx, g, g.Traces(delivertest.NewStuck(t)), nil)
		assert.Equal(t, time.Second, took)
		require.Error(t, err)
	})
}

// A next component that heeds its context is not left behind.
func TestGate_NextHeedsItsContext_NoneLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, logs := newGate()
		next, err := consumer.NewTraces(func(ctx context.Context, _ ptrace.Traces) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.NoError(t, err)
		took, err := stop(t, t.Context(), g, g.Traces(next), nil)
		require.NoError(t, err, "the component itself counts what was refused")
		assert.Less(t, took, deliver.ShutdownLimit)
		assert.Zero(t, logs.Len())
	})
}

// While one next component is stuck, there is time for what the others get last.
func TestGate_OneIsStuck_TheOtherGetsTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate()
		stuck, sink := g.Logs(delivertest.NewStuck(t)), &consumertest.TracesSink{}
		running := make(chan error, 1)
		go func() { running <- stuck.ConsumeLogs(t.Context(), records(2)) }()
		synctest.Wait()
		last, stopped := g.Stop(t.Context())
		require.ErrorIs(t, <-running, deliver.ErrClosed)
		require.ErrorIs(t, stuck.ConsumeLogs(last, records(3)), deliver.ErrClosed)
		require.NoError(t, last.Err())
		require.NoError(t, g.Traces(sink).ConsumeTraces(last, spans(1)))
		assert.Equal(t, 1, sink.SpanCount())
		require.ErrorContains(t, stopped(), "1 calls (logs) of the next component did not return and are left behind; 5 items were not delivered")
	})
}

// A call that began before is cancelled before it would be left behind.
func TestGate_CallUnderWayHeedsItsContext_NotLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate()
		next, err := consumer.NewTraces(func(ctx context.Context, _ ptrace.Traces) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.NoError(t, err)
		running := make(chan error, 1)
		go func() { running <- g.Traces(next).ConsumeTraces(t.Context(), spans(1)) }()
		synctest.Wait()
		_, stopped := g.Stop(t.Context())
		require.ErrorIs(t, <-running, context.Canceled)
		require.NoError(t, stopped())
	})
}

// Another outlet of the component that stops later still delivers.
func TestGate_StoppedInTime_StaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate()
		sink := &consumertest.TracesSink{}
		_, stopped := g.Stop(t.Context())
		require.NoError(t, stopped())
		time.Sleep(2 * deliver.ShutdownLimit)
		require.NoError(t, g.Traces(sink).ConsumeTraces(t.Context(), spans(1)))
		assert.Equal(t, 1, sink.SpanCount())
	})
}

// A sending queue on disk has time to read what came last; without anything there is no wait.
func TestGate_LastWasTaken_QueuesHaveTimeToRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, given := range []bool{true, false} {
			g := deliver.NewGate(zap.NewNop())
			next := g.Logs(consumertest.NewNop())
			last, stopped := g.Stop(t.Context())
			began := time.Now()
			if given {
				ld := plog.NewLogs()
				ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
				require.NoError(t, next.ConsumeLogs(last, ld))
			}
			require.NoError(t, stopped())
			assert.Equal(t, given, time.Since(began) > 0)
			assert.LessOrEqual(t, time.Since(began), time.Second)
			require.NoError(t, stopped(), "once more costs nothing")
		}
	})
}

// A panic is a refusal for good of what was given, and logged with its stack once.
func TestGate_NextPanics_RefusedForGood(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	g := deliver.NewGate(zap.New(core))
	sink, calls := &consumertest.TracesSink{}, 0
	next, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		if calls++; calls < 3 {
			panic("index out of range")
		}
		return sink.ConsumeTraces(ctx, td)
	})
	require.NoError(t, err)
	to := g.Traces(next)
	for range 2 {
		err := to.ConsumeTraces(t.Context(), spans(2))
		require.ErrorContains(t, err, "pass on traces: the next component panicked: index out of range")
		require.True(t, deliver.IsPermanent(err))
	}
	require.NoError(t, to.ConsumeTraces(t.Context(), spans(2)), "a panic is of the data, not of the next component")
	assert.Equal(t, 2, sink.SpanCount())
	require.Equal(t, 2, logs.Len())
	assert.Equal(t, []zapcore.Level{zapcore.ErrorLevel, zapcore.DebugLevel}, []zapcore.Level{logs.All()[0].Level, logs.All()[1].Level})
	assert.Contains(t, logs.All()[0].ContextMap()["stack"], "gate_test.go")
	_, stopped := g.Stop(t.Context())
	require.NoError(t, stopped(), "it was refused, and no call is left behind")
}

// A next component that ends the goroutine of its call is not waited for.
func TestGate_NextEndsItsGoroutine_RefusedForGood(t *testing.T) {
	g, _ := newGate()
	next, err := consumer.NewLogs(func(context.Context, plog.Logs) error {
		runtime.Goexit()
		return nil
	})
	require.NoError(t, err)
	require.True(t, deliver.IsPermanent(g.Logs(next).ConsumeLogs(t.Context(), records(1))))
}
