// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

func TestShutdown_NextComponentNeverReturns_KeepsItsDeadline(t *testing.T) {
	stuck := delivertest.NewStuck(t)
	dir := t.TempDir()
	b := start(t, config(dir), stuck)
	startJob(t, dir, 1, 3, "close").wait()
	<-stuck.Entered
	require.ErrorIs(t, delivertest.Shutdown(t, b.traces.Shutdown), context.DeadlineExceeded)
	assert.Equal(t, 6+3+3, int(b.counter(t, "operations_dropped")))
	assert.Equal(t, 1, b.said("Stopped before everything was delivered"))
	assert.Zero(t, b.said("Operations refused"), "told once")
}
