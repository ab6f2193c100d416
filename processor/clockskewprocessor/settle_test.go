// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// TestAnExtensionSolves: spans tell its timeline of clocks, and wait for no solution.
func TestAnExtensionSolves(t *testing.T) {
	id := component.MustNewID("timeline")
	cfg := newDefaultConfig()
	cfg.Timeline = &id
	p, err := newSkew(cfg, componenttest.NewNopTelemetrySettings(), consumertest.NewNop())
	require.NoError(t, err)
	tl := timeline.New(timeline.Options{})
	require.NoError(t, p.Start(t.Context(), host{id: provider{t: tl}}))
	defer func() { require.NoError(t, p.Shutdown(t.Context())) }()
	for _, td := range services(1).batches(1e9) {
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
	}
	assert.Positive(t, p.engine.Stats().Evidence.Edges)
	assert.Empty(t, tl.State().Clocks)
	assert.Len(t, tl.Advance(time.Now()).Models, 6)
}
