// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

func TestShutdown_NextComponentNeverReturns_KeepsItsDeadline(t *testing.T) {
	stuck := delivertest.NewStuck(t)
	a, _ := twoHosts()
	l, err := NewFactory().CreateLogs(t.Context(), nop(), a, stuck)
	require.NoError(t, err)
	require.NoError(t, l.Start(t.Context(), componenttest.NewNopHost()))
	<-stuck.Entered
	require.ErrorIs(t, delivertest.Shutdown(t, l.Shutdown), context.DeadlineExceeded)
}
