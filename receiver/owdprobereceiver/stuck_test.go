// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/receiver/owdprobereceiver/internal/metadata"
)

func TestShutdown_NextComponentNeverReturns_KeepsItsDeadline(t *testing.T) {
	stuck := delivertest.NewStuck(t)
	a, _ := twoHosts()
	l, err := NewFactory().CreateLogs(t.Context(), nop(), a, stuck)
	require.NoError(t, err)
	require.NoError(t, l.Start(t.Context(), componenttest.NewNopHost()))
	<-stuck.Entered
	require.ErrorIs(t, delivertest.Shutdown(t, l.Shutdown), context.DeadlineExceeded)
}

// A next component of edges that does not return keeps the node neither from probing nor from sending its metrics.
func TestLogsNeverReturn_NodeProbesOn(t *testing.T) {
	stuck, metrics := delivertest.NewStuck(t), delivertest.NewNext(delivertest.Takes)
	a, _ := twoHosts()
	l, err := NewFactory().CreateLogs(t.Context(), nop(), a, stuck)
	require.NoError(t, err)
	m, err := NewFactory().CreateMetrics(t.Context(), nop(), a, metrics)
	require.NoError(t, err)
	require.NoError(t, l.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, m.Start(t.Context(), componenttest.NewNopHost()))
	<-stuck.Entered
	before := metrics.Calls()
	require.Eventually(t, func() bool { return metrics.Calls() >= before+2 }, 20*time.Second, 20*time.Millisecond)
	require.ErrorIs(t, delivertest.Shutdown(t, l.Shutdown), context.DeadlineExceeded)
	require.NoError(t, m.Shutdown(t.Context()))
}

// What waits for a next component that does not return is bounded; what is beyond is lost and counted.
func TestOutlets_LogsNeverReturn_FurtherEdgesLost(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.WithoutCancel(t.Context()))) })
	builder, err := metadata.NewTelemetryBuilder(tel.NewTelemetrySettings())
	require.NoError(t, err)
	o, err := newOutlets(nop(), builder)
	require.NoError(t, err)
	stuck := delivertest.NewStuck(t)
	o.logsTo(stuck)
	batch := func() plog.Logs { // a quarter of what may wait
		ld := plog.NewLogs()
		ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr(strings.Repeat("x", maxWaiting/4-100))
		return ld
	}
	for range 4 {
		o.putEdges(batch())
	}
	<-stuck.Entered
	lost := func() int64 {
		m, err := tel.GetMetric("otelcol_receiver_owd_probe_edges_lost")
		if err != nil {
			return 0
		}
		return m.Data.(metricdata.Sum[int64]).DataPoints[0].Value
	}
	assert.Zero(t, lost())
	for range 3 {
		o.putEdges(batch())
	}
	assert.EqualValues(t, 3, lost())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, o.stop(ctx)(), context.DeadlineExceeded)
	assert.EqualValues(t, 7, lost(), "and those that waited")
}
