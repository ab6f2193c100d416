// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
)

func TestShutdown_NextComponentNeverReturns_KeepsItsDeadline(t *testing.T) {
	stuck := delivertest.NewStuck(t)
	dir := jobDir(t)
	writeDump(t, dumpPath(dir, 0), frwrite.Pickle(dumpOf(0)))
	b := start(t, config(dir), stuck)
	<-stuck.Entered
	require.ErrorIs(t, delivertest.Shutdown(t, b.end), context.DeadlineExceeded)
	select {
	case <-b.finished:
	default:
		assert.Fail(t, "the reader goes on")
	}
	assert.Positive(t, b.counter(t, "events_dropped"))
}
