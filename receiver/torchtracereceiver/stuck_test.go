// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

func TestShutdown_NextComponentNeverReturns_CountsTheRest(t *testing.T) {
	stuck := delivertest.NewStuck(t)
	b := start(t, config(recorded(t, 0)), stuck)
	<-stuck.Entered
	require.ErrorIs(t, delivertest.Shutdown(t, b.Shutdown), context.DeadlineExceeded)
	select {
	case <-b.finished:
	default:
		assert.Fail(t, "the reader goes on")
	}
	assert.EqualValues(t, spansOf(t, 0), b.counter(t, "operations_dropped"), "what was read of the file")
}
