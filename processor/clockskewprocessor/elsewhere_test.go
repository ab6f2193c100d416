// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// probeRaw tells what agents report in the two seconds around a true time: the raw clocks
// of all hosts, which count true time, and each beside its own realtime. That of host 0 is
// apart from the clock that stamps its spans.
func (w *world) probeRaw(tb testing.TB, c clocks, at, apart int64) {
	tb.Helper()
	id := func(host int, kind string) string { return fmt.Sprintf("host:h%d/b/%s", host, kind) }
	raw := func(host int) int64 { return at - base + int64(host+1)*1e12 }
	for h := range w.hosts {
		for o := range h {
			gap := raw(h) - raw(o)
			require.NoError(tb, c.AddEdge(model.ClockEdge{
				Src: id(o, "raw"), Dst: id(h, "raw"), At: raw(o), Span: 2e9, Lower: gap - 1000, Upper: gap + 1000, Offset: gap, Sigma: 100,
				DriftBound: 1e-7, Samples: 200, Source: model.EdgeProbe, Stamps: model.StampKernel,
			}))
		}
		gap := w.hosts[h].shows(at) - raw(h)
		if h == 0 {
			gap -= apart
		}
		require.NoError(tb, c.AddEdge(model.ClockEdge{
			Src: id(h, "raw"), Dst: id(h, "realtime"), At: raw(h), Span: 2e9, Lower: gap - 100, Upper: gap + 100, Offset: gap, Sigma: 20,
			Drift: w.hosts[h].drift, DriftBound: 1e-7, Samples: 200, Source: model.EdgePair, Stamps: model.StampUser,
		}))
	}
	c.Advance(time.Now())
}

// elsewhere runs a minute of services of which packets measure the clocks, and returns who is
// untrusted in the end, and how many violations were introduced in the second half of it.
func elsewhere(t *testing.T, apart int64) (untrusted []string, introduced int64) {
	t.Helper()
	w := services(1)
	cfg := newDefaultConfig()
	cfg.Mode, cfg.SlewLimit = ModeRealign, 1
	p, err := newSkew(cfg, componenttest.NewNopTelemetrySettings(), new(consumertest.TracesSink))
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	batches := w.batches(1e9)
	for i, td := range batches {
		if i == len(batches)/2 {
			introduced = -p.engine.Job("shop").Counts[causality.Introduced]
		}
		if i%len(w.hosts) == 0 {
			w.probeRaw(t, p.clocks, base+int64(i/len(w.hosts))*1e9, apart)
		}
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
	}
	own, ok := p.clocks.(*timeline.Timeline)
	require.True(t, ok)
	own.Advance(time.Now())
	for _, c := range own.State().Clocks {
		if c.Model.Untrusted {
			untrusted = append(untrusted, c.Model.Clock)
		}
	}
	return untrusted, introduced + p.engine.Job("shop").Counts[causality.Introduced]
}

// A host whose agent reads another clock than stamps its spans is caught by its traces with
// two others, and nobody else is. Until then its spans are placed as wrong as that.
func TestTheProbesClockIsNotTheSpansClock(t *testing.T) {
	untrusted, introduced := elsewhere(t, 50e6)
	assert.Equal(t, []string{"host:h0/b/realtime"}, untrusted)
	assert.Zero(t, introduced)
	untrusted, introduced = elsewhere(t, 0)
	assert.Empty(t, untrusted)
	assert.Zero(t, introduced)
}
