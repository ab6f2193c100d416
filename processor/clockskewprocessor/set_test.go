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
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/tier"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

const (
	// setAfter is when a clock is set, in the world's time, and knownAfter by how much
	// later it must be known.
	setAfter   = int64(12e9)
	knownAfter = int64(8e9)
	setLasts   = 28 // s
)

// chatting is a cluster in which every pair of hosts talks a few times a second.
func chatting(seed uint64, hosts, seconds int) *world {
	w := newWorld(seed, hosts, 10e6, 20)
	perSecond := 40 + 10*hosts
	for n := range uint64(seconds * perSecond) {
		w.request(n+1, base+int64(n)*1e9/int64(perSecond))
	}
	return w
}

// referenceOf is the host whose clock leads before anything happens, and another.
func referenceOf(t *testing.T, hosts int) (reference, other int) {
	t.Helper()
	c := correct(t, chatting(1, hosts, 5), ModeRealign, 1e9)
	scales := c.p.clocks.(*timeline.Timeline).State().Timelines
	require.Len(t, scales, 1)
	_, err := fmt.Sscanf(scales[0].Reference, "host:h%d/", &reference)
	require.NoError(t, err)
	return reference, (reference + 1) % hosts
}

// TestClockIsSet: traces alone, and the realtime clock of one host is set to another
// time. What is known of it is right again within knownAfter of data, and what is said
// meanwhile is not certain and wrong.
func TestClockIsSet(t *testing.T) {
	for i, hosts := range []int{2, 3, 16} {
		reference, other := referenceOf(t, hosts)
		for j, by := range []time.Duration{-2 * time.Second, -90 * time.Second, -time.Hour, 2 * time.Second, 90 * time.Second, time.Hour} {
			for k, host := range []int{reference, other} {
				if !tier.Full(t) && (i+j+k)%3 != 0 { // each host is still set by each time
					continue
				}
				t.Run(fmt.Sprintf("%d hosts/%s/%v", hosts, []string{"reference", "other"}[k], by), func(t *testing.T) {
					w := chatting(1, hosts, setLasts)
					w.hosts[host].set, w.hosts[host].by = base+setAfter, by.Nanoseconds()
					c := correct(t, w, ModeRealign, 1e9)
					c.known(t, base+setAfter+knownAfter)
				})
			}
		}
	}
}

// timelineOf is the name of the timeline on which a span stands, "" none.
func timelineOf(s ptrace.Span) string {
	v, ok := s.Attributes().Get(semconv.ClockTimeline)
	if !ok {
		return ""
	}
	return v.Str()
}

// known asserts that children on other hosts stand where they belong, within their
// bounds, from a time on.
func (c *corrected) known(t *testing.T, from int64) {
	t.Helper()
	byID := map[uint64]*trueSpan{}
	for _, s := range c.w.spans {
		byID[s.id] = s
	}
	all, placed, wrong, before, last := 0, 0, 0, 0, int64(0)
	worst, widest := 0.0, 0.0
	for _, s := range c.w.spans {
		parent := byID[s.parent]
		if parent == nil || parent.host == s.host {
			continue
		}
		later := parent.begin >= from
		if later {
			all++
		}
		at, bound, ok := place(c.spans[s.id])
		parentAt, parentBound, parentOK := place(c.spans[parent.id])
		if !ok || !parentOK || timelineOf(c.spans[s.id]) != timelineOf(c.spans[parent.id]) {
			continue
		}
		if later {
			placed++
			widest = max(widest, bound+parentBound)
		}
		if off := math.Abs(float64(at - parentAt - (s.begin - parent.begin))); off > bound+parentBound {
			if later {
				wrong++
				worst = max(worst, off)
			} else {
				before++
			}
			last = max(last, s.begin)
		}
	}
	counts := c.counts()
	t.Logf("%d of %d placed, %d wrong, at most %.0f ms; widest bound %.0f ms; wrong until known %d, the last %.1f s after; verdicts %v, introduced %d",
		placed, all, wrong, worst/1e6, widest/1e6, before, float64(last-base-setAfter)/1e9, counts, c.introduced())
	for _, s := range c.p.clocks.(*timeline.Timeline).State().Clocks {
		if s.Steps > 0 {
			t.Logf("%s stepped %d times", s.Model.Clock, s.Steps)
		}
	}
	assert.Zero(t, wrong)
	assert.Greater(t, placed, all*9/10)
	assert.Zero(t, c.introduced())
	assert.Zero(t, counts[causality.Violation])
}

// TestClockIsSetByLittle: whoever sets a clock by a few ms, nobody is accused of it,
// whether the spans tell of clocks or packets alone do.
func TestClockIsSetByLittle(t *testing.T) {
	for _, by := range []int64{5e6, -5e6, 20e6, -50e6, 90e6, -400e6} {
		for host := range 2 {
			w := chatting(1, 3, 24)
			w.hosts[host].set, w.hosts[host].by = base+setAfter, by
			assert.Zero(t, correct(t, w, ModeRealign, 1e9).counts()[causality.Violation], "of host %d by %d ns", host, by)
			w = chatting(1, 3, 24)
			w.hosts[host].set, w.hosts[host].by = base+setAfter, by
			counts := probedOnly(t, w)
			assert.Zero(t, counts[causality.Violation], "of host %d by %d ns, by packets", host, by)
		}
	}
}

// probedOnly runs a world through a processor that learns of packets alone, two seconds
// after they were sent.
func probedOnly(t *testing.T, w *world) [causality.Introduced + 1]int64 {
	t.Helper()
	cfg := newDefaultConfig()
	cfg.Traces.Enabled = false
	p, err := newSkew(cfg, componenttest.NewNopTelemetrySettings(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, p.Shutdown(t.Context())) }()
	probed := int64(0)
	for _, td := range w.batches(1e9) {
		if now := int64(spanAt(td, 0).StartTimestamp()); now > probed+2e9 || now < probed-1e9 {
			probed = now
			w.probe(t, p.clocks, now-2e9)
		}
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
	}
	return p.engine.Job("shop").Counts
}

// TestALateProgramIsStillTold: one call in 50 is stamped late where it begins. Nobody has
// set a clock, and most of these are said to be the program's.
func TestALateProgramIsStillTold(t *testing.T) {
	for _, late := range []int64{3e6, 20e6, 300e6} {
		w := chatting(2, 3, 20)
		w.probed = true // to 1 us, so that 3 ms are certain
		wrong, calls := map[uint64]bool{}, 0
		for _, s := range w.spans {
			if s.kind == ptrace.SpanKindClient && s.begin > base+5e9 {
				if calls++; calls%50 == 0 {
					s.late, wrong[s.id] = late, true
				}
			}
		}
		told := 0
		for _, s := range w.spans {
			if wrong[s.parent] {
				told++
			}
		}
		violations := correct(t, w, ModeRealign, 1e9).counts()[causality.Violation]
		t.Logf("late by %d ns: %d of %d relations are said", late, violations, told)
		assert.GreaterOrEqual(t, violations, int64(told*9/10))
		assert.LessOrEqual(t, violations, int64(told+told/10))
	}
}
