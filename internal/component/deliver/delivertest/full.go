// SPDX-License-Identifier: Apache-2.0

package delivertest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Full is an exporter with a sending queue of one request, as a collector has it. The queue is full until it
// has refused as many calls as it should.
type Full struct {
	// To is what the exporter sends.
	To *Next

	traces  exporter.Traces
	logs    exporter.Logs
	metrics exporter.Metrics

	refusals atomic.Int64
	until    int64
	release  func()
	stop     func()
}

// NewFull returns an exporter whose queue refuses as many calls.
func NewFull(tb testing.TB, refusals int64) *Full {
	tb.Helper()
	released := make(chan struct{})
	f := &Full{To: NewNext(Takes), until: refusals, release: sync.OnceFunc(func() { close(released) })}
	set := exportertest.NewNopSettings(component.MustNewType("full"))
	cfg := exporterhelper.NewDefaultQueueConfig()
	cfg.QueueSize, cfg.NumConsumers, cfg.BlockOnOverflow = 1, 1, false
	queue := exporterhelper.WithQueue(configoptional.Some(cfg))
	timeout := exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{})
	wait := func() { <-released }
	ctx := context.Background()
	var errs [3]error
	f.traces, errs[0] = exporterhelper.NewTraces(ctx, set, &struct{}{}, func(ctx context.Context, td ptrace.Traces) error {
		wait()
		return f.To.ConsumeTraces(ctx, td)
	}, queue, timeout)
	f.logs, errs[1] = exporterhelper.NewLogs(ctx, set, &struct{}{}, func(ctx context.Context, ld plog.Logs) error {
		wait()
		return f.To.ConsumeLogs(ctx, ld)
	}, queue, timeout)
	f.metrics, errs[2] = exporterhelper.NewMetrics(ctx, set, &struct{}{}, func(ctx context.Context, md pmetric.Metrics) error {
		wait()
		return f.To.ConsumeMetrics(ctx, md)
	}, queue, timeout)
	for i, e := range []component.Component{f.traces, f.logs, f.metrics} {
		require.NoError(tb, errs[i])
		require.NoError(tb, e.Start(ctx, componenttest.NewNopHost()))
	}
	require.NoError(tb, f.traces.ConsumeTraces(ctx, ptrace.NewTraces()))
	require.NoError(tb, f.logs.ConsumeLogs(ctx, plog.NewLogs()))
	require.NoError(tb, f.metrics.ConsumeMetrics(ctx, pmetric.NewMetrics()))
	f.stop = sync.OnceFunc(func() {
		f.release()
		for _, e := range []component.Component{f.traces, f.logs, f.metrics} {
			require.NoError(tb, e.Shutdown(ctx))
		}
	})
	tb.Cleanup(f.stop)
	return f
}

// Refusals returns how many calls were refused.
func (f *Full) Refusals() int64 { return f.refusals.Load() }

// Stop sends what the queue holds, and stops the exporter.
func (f *Full) Stop() { f.stop() }

// Capabilities implements Consumer.
func (f *Full) Capabilities() consumer.Capabilities { return f.logs.Capabilities() }

// ConsumeTraces implements Consumer.
func (f *Full) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return f.answered(f.traces.ConsumeTraces(ctx, td))
}

// ConsumeLogs implements Consumer.
func (f *Full) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return f.answered(f.logs.ConsumeLogs(ctx, ld))
}

// ConsumeMetrics implements Consumer.
func (f *Full) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return f.answered(f.metrics.ConsumeMetrics(ctx, md))
}

func (f *Full) answered(err error) error {
	if err != nil && f.refusals.Add(1) >= f.until {
		f.release()
	}
	return err
}
