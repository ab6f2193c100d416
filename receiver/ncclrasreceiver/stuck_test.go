// SPDX-License-Identifier: Apache-2.0

package ncclrasreceiver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
	"github.com/lockstep-otel/lockstep/receiver/ncclrasreceiver/internal/metadatatest"
)

func TestShutdown_NextComponentNeverReturns_KeepsItsDeadline(t *testing.T) {
	stuck := delivertest.NewStuck(t)
	tel := componenttest.NewTelemetry()
	cfg := config(rastest.Start(t, rastest.JSON(twoRanks(0xab, 3))))
	l, err := NewFactory().CreateLogs(t.Context(), metadatatest.NewSettings(tel), cfg, stuck)
	require.NoError(t, err)
	m, err := NewFactory().CreateMetrics(t.Context(), metadatatest.NewSettings(tel), cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, l.Start(t.Context(), componenttest.NewNopHost()))
	<-stuck.Entered
	require.ErrorIs(t, delivertest.Shutdown(t, l.Shutdown), context.DeadlineExceeded)
	b := &bench{tel: tel}
	assert.EqualValues(t, 2, b.counter("events_dropped", ""))
	require.NoError(t, m.Shutdown(t.Context()))
	require.NoError(t, tel.Shutdown(context.WithoutCancel(t.Context())))
}
