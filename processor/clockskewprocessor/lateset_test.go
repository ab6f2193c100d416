// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/tier"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// lateExports runs a world whose hosts export every so often, one of them late by so much,
// on a clock that goes as the world's does.
func lateExports(t *testing.T, w *world, every, late int64, host int) *corrected {
	t.Helper()
	now := time.Unix(0, base)
	sink := new(consumertest.TracesSink)
	p, err := newSkew(newDefaultConfig(), componenttest.NewNopTelemetrySettings(), sink)
	require.NoError(t, err)
	p.now = func() time.Time { return now }
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	c := &corrected{w: w, p: p, raw: map[uint64]ptrace.Span{}, spans: map[uint64]ptrace.Span{}}
	type part struct{ at, host int64 }
	parts := map[part][]*trueSpan{}
	slices.SortStableFunc(w.spans, func(a, b *trueSpan) int { return cmp.Compare(a.end, b.end) })
	for _, s := range w.spans {
		at := base + ((s.end-base)/every+1)*every
		if s.host == host {
			at += late
		}
		k := part{at, int64(s.host)}
		parts[k] = append(parts[k], s)
	}
	order := make([]part, 0, len(parts))
	for k := range parts {
		order = append(order, k)
	}
	slices.SortFunc(order, func(a, b part) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.host, b.host)) })
	for _, k := range order {
		now = time.Unix(0, k.at+k.host*1e6)
		td := w.export(int(k.host), parts[k])
		before := ptrace.NewTraces()
		td.CopyTo(before)
		index(before, c.raw)
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
	}
	c.out = sink.AllTraces()
	for _, td := range c.out {
		index(td, c.spans)
	}
	return c
}

// lateWorld is one of four hosts that call one another, some of which are apart.
func lateWorld(seed uint64, seconds int) *world {
	w := newWorld(seed, 4, 0, 0)
	w.rand = rand.New(rand.NewPCG(seed, 11))
	for h, ms := range []int64{0, 3, -4, 1} {
		w.hosts[h].offset = ms * 1e6
	}
	w.floor, w.jitter = 150e3, 100e3
	for n := range uint64(seconds * 40) {
		at := base + int64(n)*25e6 + int64(w.rand.Float64()*10e6)
		root := w.add(trueSpan{host: w.rand.IntN(4), trace: n + 1, kind: ptrace.SpanKindServer, attrs: rpcAttrs, begin: at})
		root.end = w.call(root, at+w.work(), 1) + w.work()
	}
	return w
}

// TestASetClockAndALateExporter: one host's exporter is late, and another's clock is set.
// Nobody else is moved or said to have been stepped, and nothing is certain and wrong.
func TestASetClockAndALateExporter(t *testing.T) { // host 0 is the timeline's reference
	for _, c := range []struct{ set, late int }{{2, 1}, {0, 3}} {
		t.Run(fmt.Sprintf("%d set, %d late", c.set, c.late), func(t *testing.T) { setAndLate(t, c.set, c.late) })
	}
}

// setAndLate sets one clock, and has another host's exporter be late.
func setAndLate(t *testing.T, set, host int) {
	t.Helper()
	for _, late := range []int64{0, 5, 15, 25} {
		for _, by := range []time.Duration{-2 * time.Second, -50 * time.Millisecond, 50 * time.Millisecond, 2 * time.Second} {
			for seed := range uint64(tier.N(t, 1, 5)) {
				t.Run(fmt.Sprintf("%d s/%v/%d", late, by, seed+1), func(t *testing.T) {
					w := lateWorld(seed+1, 70)
					w.hosts[set].set, w.hosts[set].by = base+18e9, by.Nanoseconds()
					c := lateExports(t, w, 200e6, late*1e9, host)
					c.honest(t, set)
				})
			}
		}
	}
}

// honest asserts that of no host but the one that was set a step is told, that pairs of
// the others stand within their bounds, and that nothing of anybody is certain and wrong.
func (c *corrected) honest(t *testing.T, set int) {
	t.Helper()
	byID := map[uint64]*trueSpan{}
	for _, s := range c.w.spans {
		byID[s.id] = s
	}
	all, wrong, worst := 0, 0, 0.0
	others, moved := 0, 0.0
	for _, s := range c.w.spans {
		parent := byID[s.parent]
		if parent == nil || parent.host == s.host {
			continue
		}
		at, bound, ok := place(c.spans[s.id])
		parentAt, parentBound, parentOK := place(c.spans[parent.id])
		if !ok || !parentOK || timelineOf(c.spans[s.id]) != timelineOf(c.spans[parent.id]) {
			continue
		}
		off := math.Abs(float64(at - parentAt - (s.begin - parent.begin)))
		all++
		if off > bound+parentBound {
			wrong++
			worst = max(worst, off)
			if s.host != set && parent.host != set {
				others++
				moved = max(moved, off)
			}
		}
	}
	counts := c.counts()
	said := ""
	for _, s := range c.p.clocks.(*timeline.Timeline).State().Clocks {
		said += fmt.Sprintf("; %s at %.1f ms, %d steps", s.Model.Clock, float64(s.Model.Offset)/1e6, s.Steps)
		if s.Model.Clock != fmt.Sprintf("host:h%d/?/realtime", set) {
			assert.Zero(t, s.Steps, s.Model.Clock)
			assert.Less(t, math.Abs(float64(s.Model.Offset)), 20e6, s.Model.Clock)
		}
	}
	t.Logf("%d placed, %d wrong, at most %.1f ms; %d of others, at most %.1f ms; verdicts %v, introduced %d%s",
		all, wrong, worst/1e6, others, moved/1e6, counts, c.introduced(), said)
	assert.Zero(t, others)
	assert.Zero(t, counts[causality.Violation])
	assert.Zero(t, c.introduced())
}
