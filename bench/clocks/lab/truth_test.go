// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
)

// Two nodes of which the second's raw clock is 5 s ahead and gains 10 ppm.
func twoNodes() []*plan.Node {
	return []*plan.Node{
		{Name: "n0", Clock: plan.Clock{At: 100 * second, Raw: 0, Realtime: 100 * second}},
		{Name: "n1", Clock: plan.Clock{
			At: 100 * second, Raw: 5 * second, Realtime: 100 * second,
			RawChanges: []netstamp.Change{{At: 100 * second, Rate: 10e-6}},
		}},
	}
}

func TestTruthOfTwoClocks(t *testing.T) {
	tr := newTruth(twoNodes())
	a, b := plan.RawClock("n0"), plan.RawClock("n1")
	got, ok := tr.offset(a, b, 20*second) // 120 s: 20 s and 25.0002 s
	require.True(t, ok)
	assert.Equal(t, 5*second+200_000, got)
	got, ok = tr.offset(a, plan.RealtimeClock("n1"), 20*second)
	require.True(t, ok)
	assert.Equal(t, 100*second, got)
	assert.InDelta(t, 10e-6, tr.drift(a, b, 110*second), 1e-10)
	_, ok = tr.offset("utc:other", a, 0)
	assert.False(t, ok)
}

func TestReadingsThatAClockHadTwice(t *testing.T) {
	nodes := twoNodes()
	nodes[0].Clock.RawChanges = []netstamp.Change{{At: 110 * second, Step: -second}} // 10 s to 9 s
	tr := newTruth(nodes)
	for at, want := range map[int64]bool{8 * second: true, 9*second + 1: false, 10*second - 1: false, 11 * second: true} {
		_, ok := tr.when(plan.RawClock("n0"), at)
		assert.Equal(t, want, ok, "%d", at)
	}
}

// A bound that leaves out the truth at one end of an edge counts as missed.
func TestJudgeOfAnEdge(t *testing.T) {
	j := newJudge(twoNodes(), &scenario{})
	edge := model.ClockEdge{
		Src: plan.RawClock("n0"), Dst: plan.RawClock("n1"), At: 20 * second, Span: 2 * second,
		Offset: 5*second + 200_070, Lower: 5*second + 199_000, Upper: 5*second + 201_000, Drift: 10e-6, Source: model.EdgeProbe,
	}
	j.edge(&edge)
	assert.Equal(t, errors{70}, j.f.edges.off)
	assert.Equal(t, 3, j.f.edges.inside)
	edge.Drift = 0 // off by 10 µs at either end, where the bound is 1 µs
	j.edge(&edge)
	assert.Equal(t, 6, j.f.edges.checked)
	assert.Equal(t, 4, j.f.edges.inside)
	edge.DriftBound = 10e-6
	j.edge(&edge)
	assert.Equal(t, 7, j.f.edges.inside)
}

func TestJudgeOfAModel(t *testing.T) {
	j := newJudge(twoNodes(), &scenario{})
	m := graph.Solved{
		Clock: plan.RawClock("n1"), Reference: plan.RawClock("n0"), From: 24 * second, At: 25*second + 200_000, Until: 26 * second,
		Offset: -5*second - 200_000 + 300, Drift: -10e-6, Bound: 1000, Bounded: true,
	}
	j.model(&m)
	require.Len(t, j.f.raw.off, 1)
	assert.InDelta(t, 300, j.f.raw.off[0], 1)
	assert.InDelta(t, 1e-10*1e6, j.f.drift[0], 1e-3, "the square of the rate is all that is missing")
	assert.Equal(t, 3, j.f.raw.inside)
	m.Bound = 299
	j.model(&m)
	assert.Equal(t, 3, j.f.raw.inside)
}

// Plans of one seed are the same, and every node's events lie in order.
func TestPlans(t *testing.T) {
	w := &network{names: []string{"a", "b", "c"}}
	s := scenario{rate: 10, event: rawRate(1e-6)}
	one, two := s.nodes(w, 100*second, 20*time.Second, 7), s.nodes(w, 100*second, 20*time.Second, 7)
	assert.Equal(t, one, two)
	var all []int64
	for _, n := range one {
		assert.Greater(t, len(n.Clock.RawChanges), 5)
		for i, c := range n.Clock.RawChanges[1:] {
			assert.Greater(t, c.At, n.Clock.RawChanges[i].At)
			all = append(all, c.At)
		}
	}
	slices.Sort(all)
	for i := range all[1:] {
		assert.GreaterOrEqual(t, time.Duration(all[i+1]-all[i]), s.apart(), "exchanges of all pairs come between")
	}
	assert.Equal(t, "10.88.0.3", one[2].Addr.String())
}

func TestQuantiles(t *testing.T) {
	var e errors
	for i := range 100 {
		e.add(float64(-i - 1))
	}
	assert.InDelta(t, 50, e.quantile(0.5), 0)
	assert.InDelta(t, 99, e.quantile(0.99), 0)
	assert.InDelta(t, 100, e.quantile(1), 0)
	assert.Equal(t, "99.00 % (99/100)", share(99, 100))
}

func TestNextSolveIsHalfASecondIntoAWindow(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(1_700_000_000_000 + ms) }
	for now, want := range map[int64]int64{0: 500, 499: 500, 500: 2500, 1999: 2500, 2000: 2500} {
		assert.True(t, nextSolve(at(now)).Equal(at(want)), "%d", now)
	}
}
