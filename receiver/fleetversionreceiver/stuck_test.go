// SPDX-License-Identifier: Apache-2.0

package fleetversionreceiver

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
	b := newBench(t, stuck, func(c *Config) { c.NvidiaSMI, c.FabricManager = "", "" })
	b.interval = hub.NewInterval(time.Millisecond, b.looker.look)
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	<-stuck.Entered
	require.ErrorIs(t, delivertest.Shutdown(t, b.Shutdown), context.DeadlineExceeded)
	assert.Positive(t, b.counter("facts_dropped", "", ""))
}
