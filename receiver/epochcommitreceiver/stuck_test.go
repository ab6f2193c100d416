// SPDX-License-Identifier: Apache-2.0

package epochcommitreceiver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// What the end cuts off is reported once more, and then dropped.
func TestShutdown_CallUnderWayIsCutOff_ToldOnceMore(t *testing.T) {
	entered, calls, sink := make(chan struct{}), 0, &consumertest.LogsSink{}
	next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
		if calls++; calls == 1 {
			close(entered)
			<-ctx.Done()
			return ctx.Err()
		}
		return sink.ConsumeLogs(ctx, ld)
	})
	require.NoError(t, err)
	b := start(t, func(c *Config) { c.Interval = time.Millisecond }, next)
	b.interval.Start()
	b.post(says("rank 0", 1, 5, "tentative"))
	<-entered
	require.NoError(t, b.Shutdown(t.Context()))
	assert.Equal(t, 2, sink.LogRecordCount())
}

func TestShutdown_NextComponentNeverReturns_KeepsItsDeadline(t *testing.T) {
	stuck := delivertest.NewStuck(t)
	b := start(t, func(c *Config) { c.Interval = time.Millisecond }, stuck)
	b.interval.Start()
	b.post(says("rank 0", 1, 5, "tentative"))
	<-stuck.Entered
	require.ErrorIs(t, delivertest.Shutdown(t, b.Shutdown), context.DeadlineExceeded)
	m, err := b.tel.GetMetric("otelcol_receiver_epoch_commit_observations_dropped")
	require.NoError(t, err)
	assert.EqualValues(t, 2, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
}
