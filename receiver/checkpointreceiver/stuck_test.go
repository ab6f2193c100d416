// SPDX-License-Identifier: Apache-2.0

package checkpointreceiver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
)

func TestShutdown_NextComponentNeverReturns_KeepsItsDeadline(t *testing.T) {
	stuck := delivertest.NewStuck(t)
	dir, _ := saved(t, "torchtitan", 10)
	b := start(t, RootConfig{Path: dir, JobID: "job"}, stuck)
	f := b.folders[0]
	f.interval = hub.NewInterval(time.Millisecond, f.look)
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	<-stuck.Entered
	require.ErrorIs(t, delivertest.Shutdown(t, b.Shutdown), context.DeadlineExceeded)
	assert.Positive(t, b.counter("observations_dropped", "", ""))
}
