// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/connector/desyncconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func nopSettings() connector.Settings { return connectortest.NewNopSettings(metadata.Type) }

// A logs pipeline that ignores its context holds up neither what the metrics get last nor the end of
// the collector.
func TestShutdown_LogsNeverReturn_MetricsGetTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := delivertest.NewStuck(t)
		r := newRig(t, stuck, nil)
		r.hang(t)
		<-stuck.Entered
		began := time.Now()
		require.ErrorIs(t, errors.Join(r.faces[0].Shutdown(t.Context()), r.faces[2].Shutdown(t.Context())), context.DeadlineExceeded)
		assert.Positive(t, counter(t, r, "otelcol_connector_desync_findings_forgotten"))
		before := len(r.metrics.AllMetrics())
		r.stop(t)
		assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit)
		assert.Greater(t, len(r.metrics.AllMetrics()), before)
	})
}

// moody takes, refuses or holds what it is given.
type moody struct {
	atomic.Pointer[string]
	next func() consumer.Logs
}

func (m *moody) be(mood string) { m.Store(&mood) }

func (m *moody) consumer(t *testing.T) consumer.Logs {
	t.Helper()
	next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
		switch *m.Load() {
		case "refuses":
			return errors.New("memory is short")
		case "holds":
			<-ctx.Done()
			return ctx.Err()
		}
		return m.next().ConsumeLogs(ctx, ld)
	})
	require.NoError(t, err)
	return next
}

// A hang that was refused is sent at the end, where the end comes before the next try.
func TestShutdown_HangWasRefused_IsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		m := &moody{next: func() consumer.Logs { return &r.logs }}
		m.be("refuses")
		r = newRig(t, m.consumer(t), nil)
		r.hang(t)
		require.Empty(t, r.findings())
		m.be("takes")
		r.stop(t)
		require.Len(t, r.findings(), 1)
		assert.Equal(t, model.StatusOpen, r.findings()[0].Status)
	})
}

// What was taken since is not sent at the end.
func TestShutdown_HangWasTakenSince_IsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		m := &moody{next: func() consumer.Logs { return &r.logs }}
		m.be("refuses")
		r = newRig(t, m.consumer(t), nil)
		r.hang(t)
		m.be("takes")
		time.Sleep(time.Minute)
		synctest.Wait()
		n := len(r.findings())
		require.Positive(t, n)
		assert.Zero(t, counter(t, r, "otelcol_connector_desync_findings_forgotten"))
		r.stop(t)
		assert.Len(t, r.findings(), n)
	})
}

// One that refuses, and takes nothing at the end, holds that up for seconds.
func TestShutdown_LogsHoldTheLast_EndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &moody{}
		m.be("refuses")
		r := newRig(t, m.consumer(t), nil)
		r.hang(t)
		m.be("holds")
		began := time.Now()
		for _, f := range r.faces {
			_ = f.Shutdown(context.Background()) // the error is that of what was not delivered
		}
		assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit)
	})
}
