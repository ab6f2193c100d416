// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/processor/clockskewprocessor/internal/metadata"
)

// A batch that the next component does not take holds up neither the end nor another processor of
// the same collector.
func TestShutdown_NextNeverReturns_Ends(t *testing.T) {
	stuck := delivertest.NewStuck(t)
	p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), newDefaultConfig(), stuck)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	go func() { _ = p.ConsumeTraces(context.Background(), ptrace.NewTraces()) }()
	<-stuck.Entered
	require.NoError(t, delivertest.Shutdown(t, p.Shutdown))
}
