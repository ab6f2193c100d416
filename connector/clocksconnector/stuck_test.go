// SPDX-License-Identifier: Apache-2.0

package clocksconnector

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// A logs pipeline that ignores its context holds up neither what the metrics get last nor the end of
// the collector.
func TestShutdown_LogsNeverReturn_MetricsGetTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := delivertest.NewStuck(t)
		r := newRig(t, stuck, componenttest.NewNopHost(), func(c *Config) { c.SolveInterval = time.Second })
		r.consume(t, edgeEvents(0))
		<-stuck.Entered
		r.consume(t, edgeEvents(0))
		before := len(r.metrics.AllMetrics())

		began := time.Now()
		require.ErrorIs(t, r.faces[0].Shutdown(t.Context()), context.DeadlineExceeded)
		assert.Positive(t, r.counted(t, "lost"))
		require.NoError(t, r.stop(t))
		assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit)
		assert.Greater(t, len(r.metrics.AllMetrics()), before)
	})
}

// What a consumer is given when the collector stops, it gets if it takes little time.
func TestShutdown_LogsAreSlow_NothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := delivertest.NewSlow(50 * time.Millisecond)
		r := newRig(t, slow, componenttest.NewNopHost(), func(c *Config) { c.SolveInterval = time.Second })
		r.consume(t, edgeEvents(0))
		<-slow.Entered
		require.NoError(t, r.faces[0].Shutdown(t.Context()))
		assert.Zero(t, r.counted(t, "lost"))
		require.NoError(t, r.stop(t))
	})
}
