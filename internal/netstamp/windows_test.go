// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// scenarios are what realtime does.
var scenarios = map[string][]Change{
	"steady":   {{Rate: -13e-6}},
	"0.1 ppm":  {{Rate: 20e-6}, {At: 6_307 * ms, Rate: 20.1e-6}},
	"1 ppm":    {{Rate: 20e-6}, {At: 6_307 * ms, Rate: 21e-6}},
	"10 ppm":   {{Rate: 20e-6}, {At: 6_307 * ms, Rate: 30e-6}},
	"500 ppm":  {{Rate: 20e-6}, {At: 6_307 * ms, Rate: 520e-6}, {At: 8_317 * ms, Rate: 20e-6}},
	"step":     {{Rate: -13e-6}, {At: 6_307 * ms, Rate: -13e-6, Step: 100 * ms}},
	"back":     {{Rate: -13e-6}, {At: 6_307 * ms, Rate: -13e-6, Step: -100 * ms}},
	"pendulum": {{Rate: -13e-6}, {At: 4_307 * ms, Rate: 40e-6}, {At: 4_513 * ms, Rate: -40e-6}, {At: 5_500 * ms, Rate: 40e-6}},
}

// An edge bounds both clocks from its first reading to its last, also where the rate
// changes in it, and however often edges are made.
func TestEdgesHoldOverTheirSpan(t *testing.T) {
	for name, changes := range scenarios {
		for _, every := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second} {
			for seed := range uint64(3) {
				edges, clock := followEvery(seed, 12*s, changes, every)
				require.GreaterOrEqual(t, int64(len(edges)), 11*s/every.Nanoseconds())
				covered, reached := int64(0), int64(0)
				for _, e := range edges {
					from, until := e.At-e.Span/2, e.At+e.Span/2
					for at := from; at <= until; at += 1 + e.Span/150 {
						off := float64(read(clock.realtime, at)-at-e.Offset) - e.Drift*float64(at-e.At)
						require.LessOrEqual(t, math.Abs(off), float64(e.Upper-e.Offset), "%s, every %v: %+v at %d", name, every, e, at-e.At)
					}
					if e.Span > s && !e.Stepped {
						require.Less(t, e.Upper-e.Lower, 60*us, "%s: %+v", name, e)
					}
					if until > reached {
						covered += until - max(from, reached)
						reached = until
					}
				}
				require.Greater(t, covered, 12*s-2*every.Nanoseconds()-200*ms, "%s, every %v: hardly any time is left out", name, every)
			}
		}
	}
}

// Traffic adds readings that are left out for narrower ones: no edge comes twice.
func TestEdgesComeAsOftenAsAsked(t *testing.T) {
	clock := newMade(5, scenarios["steady"])
	pairs := newPairs(clock)
	pairs.PromptEvery(500 * time.Millisecond)
	edges := 0
	for end := clock.now + 60*s; clock.now < end; clock.now += 1 + clock.rng.Int64N(5*ms) {
		pairs.Read()
		edges += len(pairs.Prompt("raw", "realtime"))
	}
	assert.InDelta(t, 120, edges, 3)
}

// A step is told once, whatever edges reach back to.
func TestAStepIsToldOnce(t *testing.T) {
	edges, _ := followEvery(3, 12*s, scenarios["step"], 500*time.Millisecond)
	stepped := 0
	for _, e := range edges {
		if e.Stepped {
			stepped++
			assert.InDelta(t, 6_307*ms, e.At-e.Span/2, float64(50*ms))
		}
	}
	assert.Equal(t, 1, stepped)
}

func followEvery(seed uint64, duration int64, realtime []Change, every time.Duration) ([]model.ClockEdge, *made) {
	clock := newMade(seed, realtime)
	pairs := newPairs(clock)
	pairs.PromptEvery(every)
	var edges []model.ClockEdge
	for end := clock.now + duration; clock.now < end; clock.now += int64(ReadEvery) {
		pairs.Read()
		edges = append(edges, pairs.Prompt("raw", "realtime")...)
	}
	return edges, clock
}

// follow reads a made clock every ReadEvery for a while and returns the edges.
func follow(seed uint64, duration int64, realtime []Change) (edges []model.ClockEdge, clock *made, pairs *Pairs) {
	clock = newMade(seed, realtime)
	edges, pairs = clock.follow(duration)
	return edges, clock, pairs
}

func (m *made) follow(duration int64) (edges []model.ClockEdge, pairs *Pairs) {
	pairs = newPairs(m)
	for end := m.now + duration; m.now < end; m.now += int64(ReadEvery) {
		pairs.Read()
		edges = append(edges, pairs.Edges("raw", "realtime")...)
	}
	return edges, pairs
}

// Between two readings a change of rate may hide: in the corner of two lines, the steeper
// of which leads from one reading to the next by what both are off and wide. So an edge is
// wide to either side by what a reading is off and wide, 2 widths, and what two are, 4.
func TestWidthOfAnEdge(t *testing.T) {
	const width = 76 // of the widest readings, which take 149 ns
	for seed := range uint64(10) {
		clock := newMade(seed, []Change{{Rate: -13e-6}})
		clock.calm = true
		edges, _ := clock.follow(12 * s)
		whole := 0
		for _, e := range edges {
			if e.Span >= s {
				whole++
				assert.LessOrEqual(t, e.Upper-e.Lower, int64(2*6*width+2))
			}
		}
		assert.GreaterOrEqual(t, whole, 5)
	}
}

func TestEdgesContainTheTruth(t *testing.T) {
	for name, changes := range scenarios {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				edges, clock, _ := follow(seed, 12*s, changes)
				require.GreaterOrEqual(t, len(edges), 5)
				for _, e := range edges {
					require.Equal(t, "raw", e.Src)
					require.Equal(t, "realtime", e.Dst)
					require.Equal(t, model.EdgePair, e.Source)
					truth := read(clock.realtime, e.At) - e.At
					require.LessOrEqual(t, e.Lower, truth, "%+v", e)
					require.GreaterOrEqual(t, e.Upper, truth, "%+v", e)
					require.LessOrEqual(t, e.Lower, e.Offset)
					require.GreaterOrEqual(t, e.Upper, e.Offset)
					require.LessOrEqual(t, e.Span, 2*s+int64(2*ReadEvery))
				}
			}
		})
	}
}

func TestDriftOfAnEdge(t *testing.T) {
	edges, clock, _ := follow(1, 12*s, []Change{{Rate: -13e-6}})
	whole := 0
	for _, e := range edges {
		if e.Span < s {
			continue
		}
		whole++
		assert.InDelta(t, -13e-6, e.Drift, e.DriftBound)
		assert.Less(t, e.DriftBound, 1e-6)
		assert.Less(t, e.Upper-e.Lower, int64(1500), "of TestWidthOfAnEdge, and one reading in a hundred that is wide, of which up to 4 times the usual stays")
		for _, at := range []int64{e.At - e.Span/2, e.At + e.Span/2} {
			off := float64(read(clock.realtime, at)-at-e.Offset) - e.Drift*float64(at-e.At)
			assert.LessOrEqual(t, max(off, -off), float64(e.Upper-e.Lower)+e.DriftBound*float64(e.Span/2))
		}
		assert.False(t, e.Stepped)
	}
	assert.GreaterOrEqual(t, whole, 5)
}

func TestAStepSplitsTheWindow(t *testing.T) {
	edges, _, pairs := follow(1, 12*s, []Change{{Rate: -13e-6}, {At: 6_300 * ms, Rate: -13e-6, Step: 100 * ms}})
	var stepped []model.ClockEdge
	for _, e := range edges {
		if e.Stepped {
			stepped = append(stepped, e)
		}
	}
	require.Len(t, stepped, 1)
	assert.InDelta(t, 6_300*ms, stepped[0].At-stepped[0].Span/2, float64(s))
	assert.Equal(t, int64(1), pairs.Counters().Events)
}

func TestAChangeOfRateSplitsTheWindow(t *testing.T) {
	edges, _, _ := follow(1, 12*s, []Change{{Rate: 20e-6}, {At: 7 * s, Rate: 30e-6}})
	for _, e := range edges {
		if e.Span < s/2 {
			continue
		}
		if e.At+e.Span/2 < 7*s {
			assert.InDelta(t, 20e-6, e.Drift, e.DriftBound)
		} else if e.At-e.Span/2 > 7*s+s/2 {
			assert.InDelta(t, 30e-6, e.Drift, e.DriftBound)
		}
		assert.Less(t, e.DriftBound, 3e-6)
	}
}

// Whoever uses an edge takes it for a straight line over its whole span.
func TestAnEdgeIsStraightOverItsSpan(t *testing.T) {
	for name, changes := range map[string][]Change{
		"steady": {{Rate: 20e-6}},
		"slew":   {{Rate: 20e-6}, {At: 7_300 * ms, Rate: 520e-6}, {At: 9_450 * ms, Rate: 20e-6}},
		"step":   {{Rate: 20e-6}, {At: 7_300 * ms, Rate: 20e-6, Step: 100 * ms}},
	} {
		edges, clock, _ := follow(1, 14*s, changes)
		covered := int64(0)
		for _, e := range edges {
			covered += e.Span
			for _, at := range []int64{e.At - e.Span/2, e.At + e.Span/2} {
				off := float64(read(clock.realtime, at)-at-e.Offset) - e.Drift*float64(at-e.At)
				// A bend is seen where it leaves the widths of two readings.
				assert.LessOrEqual(t, math.Abs(off), 2*float64(e.Upper-e.Lower)+e.DriftBound*float64(e.Span/2), "%s: %+v", name, e)
			}
		}
		assert.Greater(t, covered, 9*s, name)
	}
}

func TestEdgesThatNobodyFetchesAreBounded(t *testing.T) {
	clock := newMade(1, nil)
	pairs := newPairs(clock)
	const windows = 500
	for end := clock.now + windows*2*s; clock.now < end; clock.now += 100 * ms {
		pairs.Read()
	}
	edges := pairs.Edges("raw", "realtime")
	assert.LessOrEqual(t, len(edges), maxEdges+1)
	assert.GreaterOrEqual(t, int64(len(edges))+pairs.Counters().EdgesDropped, int64(windows-2))
	assert.Greater(t, edges[len(edges)-1].At, clock.now-5*s, "the newest are kept")
}
