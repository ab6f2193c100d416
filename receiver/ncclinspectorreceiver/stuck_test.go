// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

func TestShutdown_NextComponentNeverReturns_KeepsItsDeadline(t *testing.T) {
	stuck := delivertest.NewStuck(t)
	path := logPath(t)
	require.NoError(t, os.WriteFile(path, []byte(lines(0, 0, 4)), 0o600))
	b := build(t, config(path), stuck)
	b.begin(host{})
	<-stuck.Entered
	require.ErrorIs(t, delivertest.Shutdown(t, b.faces[0].Shutdown), context.DeadlineExceeded)
	select {
	case <-b.rd.finished:
	default:
		assert.Fail(t, "the reader goes on")
	}
	assert.EqualValues(t, 4, b.counter("operations_dropped"))
}

// What a run could not deliver at its end is the next run's, where a storage says how far it came.
func TestShutdown_NextComponentNeverReturns_NextRunReadsAgain(t *testing.T) {
	stuck, d := delivertest.NewStuck(t), &disk{}
	path := logPath(t)
	require.NoError(t, os.WriteFile(path, []byte(lines(0, 0, 4)), 0o600))
	b := build(t, withStorage(config(path)), stuck)
	b.begin(host{d})
	<-stuck.Entered
	require.Error(t, delivertest.Shutdown(t, b.faces[0].Shutdown))
	assert.Zero(t, b.counter("operations_dropped"))
	b = start(t, withStorage(config(path)), host{d})
	b.await(4)
	b.stop()
	b.once(0, 4)
}
