// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/causality"
)

// pipeline is an inference service over a broker: host 0 prepares a request, host
// 1 infers, host 0 takes the answer. A message takes 3.5 to 4.5 ms. What host 1
// stamps is late or early by skew(at), which its clock is not.
func pipeline(seed uint64, seconds int, skew func(second int) int64) *world {
	w := newWorld(seed, 2, 0, 0)
	for n := range seconds * 10 {
		at := base + int64(n)*100e6
		off := skew(n / 10)
		pass := func() int64 { return int64(3.5e6 + w.rand.Float64()*1e6) }
		trace := uint64(n + 1)
		send := w.add(trueSpan{host: 0, trace: trace, kind: ptrace.SpanKindProducer, attrs: sendAttrs, begin: at, end: at + 50e3})
		got := at + pass()
		infer := w.add(trueSpan{
			host: 1, trace: trace, parent: send.id, kind: ptrace.SpanKindConsumer, attrs: processAttrs, begin: got + off, end: got + 20e6 + off,
		})
		reply := w.add(trueSpan{
			host: 1, trace: trace, parent: infer.id, kind: ptrace.SpanKindProducer, attrs: sendAttrs, begin: got + 20e6 + off, end: got + 20e6 + 50e3 + off,
		})
		back := got + 20e6 + pass()
		w.add(trueSpan{host: 0, trace: trace, parent: reply.id, kind: ptrace.SpanKindConsumer, attrs: processAttrs, begin: back, end: back + 1e6})
	}
	return w
}

// negatives counts the messages that are taken before they are sent.
func (c *corrected) negatives(of map[uint64]ptrace.Span) (n int) {
	for _, s := range c.w.spans {
		if parent, ok := of[s.parent]; ok && of[s.id].StartTimestamp() < parent.StartTimestamp() {
			n++
		}
	}
	return n
}

// TestSweep: negative spans appear where the skew is beyond the latency of the
// messages, and the correction leaves none of what it corrected.
func TestSweep(t *testing.T) {
	for _, ms := range []int64{0, 1, 3, 5, 10, 20} {
		for _, sign := range []int64{-1, 1} {
			t.Run(fmt.Sprintf("%d ms", sign*ms), func(t *testing.T) {
				w := pipeline(uint64(ms), 20, func(int) int64 { return 0 })
				w.hosts[1].offset = sign * ms * 1e6
				c := correct(t, w, ModeRealign, 1e9)
				// The first batch of all comes before anything is known, and is not held.
				raw, now := c.negatives(c.raw), c.reversed()
				counts := c.counts()
				t.Logf("%d messages: %d negative on the stamps, %d on the timeline; verdicts %v", 2*len(w.spans)/4, raw, now, counts)
				if ms <= 3 {
					assert.Zero(t, raw)
				} else {
					assert.Equal(t, len(w.spans)/4, raw, "each message in one direction")
				}
				assert.Zero(t, now)
				assert.Zero(t, counts[causality.Violation])
				assert.Zero(t, c.introduced())
				assert.Zero(t, counts[causality.Introduced])
			})
		}
	}
}

// TestHealthFallsAndRecovers: the clocks are right, as packets show, and the program
// stamps its starts 20 ms early for ten seconds. It is the program's fault, for as long.
func TestHealthFallsAndRecovers(t *testing.T) {
	w := pipeline(1, 60, func(int) int64 { return 0 })
	for _, s := range w.spans {
		if second := (s.begin - base) / 1e9; s.host == 1 && s.kind == ptrace.SpanKindConsumer && second >= 10 && second < 20 {
			s.late = -20e6
		}
	}
	health, counts := watch(t, w)
	assert.True(t, health[9])
	assert.False(t, health[11])
	assert.False(t, health[19])
	assert.False(t, health[45], "the window of 30 s still has them")
	assert.True(t, health[55], "it has not")
	assert.Zero(t, counts[causality.Introduced])
	assert.InDelta(t, 100, counts[causality.Violation], 10, "one of two messages, ten a second")
}

// TestAllOfAHostIsEarly: as it would be if its clock had been set back. If nothing says
// so for some seconds, it was not.
func TestAllOfAHostIsEarly(t *testing.T) {
	health, counts := watch(t, pipeline(1, 60, func(second int) int64 {
		if second >= 10 && second < 30 {
			return -20e6
		}
		return 0
	}))
	assert.True(t, health[15])
	assert.False(t, health[21])
	assert.False(t, health[29])
	assert.Zero(t, counts[causality.Introduced])
	assert.InDelta(t, 115, counts[causality.Violation], 15, "in all of 20 s but the first eight or nine, ten a second")
}

// watch runs a world through a processor that learns of packets alone, and returns
// whether it was healthy in each second.
func watch(t *testing.T, w *world) (map[int]bool, [causality.Introduced + 1]int64) {
	t.Helper()
	w.probed = true
	cfg := newDefaultConfig()
	cfg.Traces.Enabled = false
	p, err := newSkew(cfg, componenttest.NewNopTelemetrySettings(), consumertest.NewNop())
	require.NoError(t, err)
	now := base
	p.now = func() time.Time { return time.Unix(0, now) }
	clocks, err := p.find(componenttest.NewNopHost())
	require.NoError(t, err)
	p.use(clocks)
	health := map[int]bool{}
	for _, td := range w.batches(1e9) {
		at := int64(spanAt(td, 0).StartTimestamp())
		if at > now {
			now = at
		}
		w.probe(t, p.clocks, now)
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
		p.engine.Jobs(p.now(), func(_ *causality.Job, healthy bool) { health[int(math.Floor(float64(now-base)/1e9))] = healthy })
	}
	return health, p.engine.Job("shop").Counts
}
