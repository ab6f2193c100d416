// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// A logs pipeline that ignores its context holds up neither what the metrics get last nor the end of
// the collector.
func TestShutdown_LogsNeverReturn_MetricsGetTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := delivertest.NewStuck(t)
		r := newRig(t, stuck)
		r.tell(t, 10, 10, 0)
		began := time.Now()
		r.pass(t, 11*time.Minute)
		<-stuck.Entered
		assert.Equal(t, 11*time.Minute, time.Since(began), "the sender of observations waits for no consumer")
		before := len(r.metrics.AllMetrics())

		began = time.Now()
		require.ErrorIs(t, r.faces[0].Shutdown(t.Context()), context.DeadlineExceeded)
		assert.Positive(t, r.counter(t, "findings_lost"))
		r.stop(t)
		assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit)
		assert.Greater(t, len(r.metrics.AllMetrics()), before)
	})
}

// What a consumer is given when the collector stops, it gets if it takes little time.
func TestShutdown_LogsAreSlow_NothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := delivertest.NewSlow(50 * time.Millisecond)
		r := newRig(t, slow)
		r.tell(t, 10, 10, 0)
		r.pass(t, 9*time.Minute)
		<-slow.Entered
		require.NoError(t, r.faces[0].Shutdown(t.Context()))
		assert.Zero(t, r.counter(t, "findings_lost"))
		r.stop(t)
	})
}
