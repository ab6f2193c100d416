// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestRefusedEdges(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(e *model.ClockEdge)
		says  string
		count func(c Counters) int64
	}{
		"crossed":         {func(e *model.ClockEdge) { e.Lower = e.Upper + 1 }, "lower bound above the upper", func(c Counters) int64 { return c.LowerAboveUpper }},
		"estimate":        {func(e *model.ClockEdge) { e.Offset = e.Upper + 1 }, "offset", func(c Counters) int64 { return c.OutsideBounds }},
		"sigma":           {func(e *model.ClockEdge) { e.Sigma = math.NaN() }, "sigma", func(c Counters) int64 { return c.NotANumber }},
		"negative sigma":  {func(e *model.ClockEdge) { e.Sigma = -1 }, "sigma", func(c Counters) int64 { return c.NotANumber }},
		"drift":           {func(e *model.ClockEdge) { e.Drift = math.Inf(-1) }, "drift", func(c Counters) int64 { return c.NotANumber }},
		"drift bound":     {func(e *model.ClockEdge) { e.DriftBound = math.NaN() }, "drift bound", func(c Counters) int64 { return c.NotANumber }},
		"itself":          {func(e *model.ClockEdge) { e.Dst = e.Src }, "src and dst", func(c Counters) int64 { return c.SelfEdge }},
		"nobody":          {func(e *model.ClockEdge) { e.Dst = "" }, "empty clock id", func(c Counters) int64 { return c.Unnamed }},
		"source":          {func(e *model.ClockEdge) { e.Source = "rumour" }, "source", func(c Counters) int64 { return c.UnknownSource }},
		"stamps":          {func(e *model.ClockEdge) { e.Stamps = "" }, "stamps", func(c Counters) int64 { return c.UnknownStamps }},
		"reading":         {func(e *model.ClockEdge) { e.At = math.MaxInt64 }, "at", func(c Counters) int64 { return c.OutOfRange }},
		"span":            {func(e *model.ClockEdge) { e.Span = -1 }, "span", func(c Counters) int64 { return c.OutOfRange }},
		"far bound":       {func(e *model.ClockEdge) { e.Lower = math.MinInt64 + 1 }, "lower", func(c Counters) int64 { return c.OutOfRange }},
		"nothing":         {func(e *model.ClockEdge) { e.Lower, e.Upper, e.Sigma = model.NoLower, model.NoUpper, 0 }, "neither", func(c Counters) int64 { return c.Empty }},
		"too many clocks": {func(e *model.ClockEdge) { e.Dst = "third" }, "clock 3", func(c Counters) int64 { return c.TooManyClocks }},
		"too many edges":  {func(e *model.ClockEdge) { e.Source = model.EdgeCall }, "edge 2", func(c Counters) int64 { return c.TooManyEdges }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1, 2)
			opt := Options{MaxClocks: 2}
			if name == "too many edges" {
				opt = Options{MaxEdges: 1}
			}
			s := New(opt)
			mustAdd(t, s, w.edge(0, 1, 1e9, 0, 500))
			before := s.Solve()
			e := w.edge(0, 1, 1.1e9, 0, 500)
			tt.spoil(&e)
			require.ErrorContains(t, s.Add(e), tt.says)
			assert.EqualValues(t, 1, tt.count(s.Counters()))
			assert.Equal(t, before.Components(), s.Solve().Components(), "what was there stays")
		})
	}
}

func TestReferenceStays(t *testing.T) {
	w := newWorld(1, 4)
	s := New(Options{Prefer: []string{w.names[2]}})
	mustAdd(t, s, w.edge(0, 1, 1e9, 0, 500))
	first := s.Solve().Components()[0].Reference
	// The preferred clock comes later, and changes nothing any more.
	mustAdd(t, s, w.edge(1, 2, 1e9, 0, 500))
	mustAdd(t, s, w.edge(2, 3, 1e9, 0, 500))
	assert.Equal(t, first, s.Solve().Components()[0].Reference)
	// Where the reference goes, it is the preferred one's turn.
	s.Forget(first)
	for _, c := range s.Solve().Components() {
		if c.Clocks > 1 {
			assert.Equal(t, w.names[2], c.Reference)
		}
	}
}

func TestComponentsThatDoNotTouch(t *testing.T) {
	w := newWorld(1, 5)
	s := New(Options{})
	mustAdd(t, s, w.edge(0, 1, 1e9, 0, 500))
	mustAdd(t, s, w.edge(2, 3, 1e9, 0, 500))
	mustAdd(t, s, w.edge(3, 4, 1e9, 0, 500))
	sol := s.Solve()
	require.Len(t, sol.Components(), 2)
	assert.Equal(t, 3, sol.Components()[0].Clocks)
	_, _, ok := sol.Between(w.names[0], w.read(0, 1e9), w.names[2], w.read(2, 1e9))
	assert.False(t, ok)
	a, _ := sol.Model(w.names[0])
	b, _ := sol.Model(w.names[2])
	assert.NotEqual(t, a.Reference, b.Reference)
	// The larger one's reference stays when they meet.
	mustAdd(t, s, w.edge(0, 2, 1.1e9, 0, 500))
	joined := s.Solve().Components()
	require.Len(t, joined, 1)
	assert.Equal(t, sol.Components()[0].Reference, joined[0].Reference)
}

func TestOldEdgesAreForgotten(t *testing.T) {
	w := newWorld(1, 3)
	s := New(Options{})
	mustAdd(t, s, w.edge(0, 1, 1e9, 0, 500))
	mustAdd(t, s, w.edge(1, 2, 1e9, 0, 500))
	require.Len(t, s.Solve().Models(), 3)
	for second := 3.0; second < 60; second += 2 {
		mustAdd(t, s, w.edge(0, 1, second*1e9, 0, 500))
		s.Solve()
	}
	assert.Len(t, s.Solve().Models(), 2, "clock 2 was not heard of for longer than the horizon")
	assert.EqualValues(t, 1, s.Counters().Forgotten)
	assert.Zero(t, s.Counters().FormerLives)
	// Without news nothing ages.
	for range 100 {
		s.Solve()
	}
	assert.Len(t, s.Solve().Models(), 2)
	assert.Len(t, s.clocks, 3)
	mustAdd(t, s, w.edge(0, 2, 60e9, 0, 500))
	assert.Len(t, s.clocks, 3, "the place of a clock that is gone serves the next one")
}

func TestOneEdgeFromElsewhenMovesNothing(t *testing.T) {
	w := newWorld(1, 4)
	s := New(Options{})
	for _, p := range [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 2}} {
		mustAdd(t, s, w.edge(p[0], p[1], 1e9, 0, 500))
	}
	mustAdd(t, s, w.edge(1, 3, 3600e9, 0, 500))
	sol := s.Solve()
	require.Len(t, sol.Models(), 4)
	for _, m := range sol.Models() {
		assert.InDelta(t, 1e9, w.when(w.find(t, m.Clock), m.At), 1e3)
	}
	assert.EqualValues(t, 1, s.Counters().Forgotten)
}

func TestLateEdgeIsLeftOut(t *testing.T) {
	w := newWorld(1, 2)
	s := New(Options{})
	mustAdd(t, s, w.edge(0, 1, 5e9, 0, 500))
	mustAdd(t, s, w.edge(0, 1, 3e9, 0, 500))
	m, _ := s.Solve().Model(w.names[0])
	assert.Equal(t, w.read(0, 5e9), m.At)
	assert.EqualValues(t, 1, s.Counters().Late)
}

// A realtime clock is stepped by 100 ms. The edges of traces from before, which
// nothing replaces, do not speak of the clock that it is now.
func TestStep(t *testing.T) {
	for _, by := range []int64{100e6, -100e6} {
		w := newWorld(2, 5)
		s := New(Options{Prefer: []string{w.names[0]}})
		real := w.clock("host:x/realtime", 1_780_000_000_000_000_000, 10e-6)
		peer := w.clock("host:y/realtime", 1_780_000_000_000_000_000, 10e-6)
		probes := func(t0 float64) {
			for a := range 5 {
				for b := range a {
					mustAdd(t, s, w.edge(b, a, t0, w.noise(500), 500))
				}
			}
			pair := w.edge(0, real, t0, w.noise(50), 50)
			pair.Source = model.EdgePair
			pair.Stepped = t0 > 3e9 && t0 < 6e9
			mustAdd(t, s, pair)
			pair = w.edge(1, peer, t0, w.noise(50), 50)
			pair.Source = model.EdgePair
			mustAdd(t, s, pair)
		}
		probes(1e9)
		for a := range 3 {
			call := w.edge(real, peer, 1e9, 0, 1e6)
			call.Source = []string{model.EdgeCall, model.EdgeMessage, model.EdgeCollective}[a]
			mustAdd(t, s, call)
		}
		require.Empty(t, untrustedOf(s.Solve()))
		w.start[real] += by
		probes(5e9)
		sol := s.Solve()
		require.Empty(t, untrustedOf(sol))
		require.Empty(t, sol.Undecided())
		for _, m := range sol.Models() {
			assert.Equal(t, m.Clock == w.names[real], m.Stepped, m.Clock)
			assert.LessOrEqual(t, math.Abs(w.errorOf(t, m, m.At)), float64(m.Bound)+1, m.Clock)
		}
		assert.EqualValues(t, 3, s.Counters().Forgotten)
		assert.EqualValues(t, 3, s.Counters().FormerLives)
		probes(7e9)
		m, _ := s.Solve().Model(w.names[real])
		assert.False(t, m.Stepped)
	}
}

// Messages of both directions that came as one edge each give an estimate between
// them; of one direction alone they connect nothing.
func TestOneSidedEdges(t *testing.T) {
	w := newWorld(1, 2)
	s := New(Options{})
	up := w.edge(0, 1, 1e9, 0, 1000)
	up.Lower, up.Sigma, up.Source, up.Stamps = model.NoLower, 0, model.EdgeMessage, model.StampApplication
	mustAdd(t, s, up)
	require.Len(t, s.Solve().Components(), 2)
	down := w.edge(1, 0, 1e9, 0, 3000)
	down.Lower, down.Sigma, down.Source, down.Stamps = model.NoLower, 0, model.EdgeMessage, model.StampApplication
	mustAdd(t, s, down)
	sol := s.Solve()
	require.Len(t, sol.Components(), 1)
	for _, m := range sol.Models() {
		require.True(t, m.Bounded)
		if m.Clock == m.Reference {
			continue
		}
		// The middle of -3000 and 1000, give or take.
		assert.InDelta(t, 1000, math.Abs(w.errorOf(t, m, m.At)), 10)
		assert.InDelta(t, 2000, m.Bound, 10)
		assert.InEpsilon(t, 4000/math.Sqrt(12), m.Sigma, 0.8)
	}
}

// Between must contain the truth for any two clocks and readings, and be no wider
// than what goes through the reference.
func TestBetween(t *testing.T) {
	const n, half = 40, 1000.0
	w := newWorld(9, n)
	s := New(Options{MaxFollowed: 500})
	for _, p := range w.choices(n, 3) {
		mustAdd(t, s, w.edge(p[0], p[1], 1e9, w.noise(half), half))
	}
	sol := s.Solve()
	rng := rand.New(rand.NewPCG(1, 1))
	ref := w.find(t, sol.Components()[0].Reference)
	for range 2000 {
		a, b := rng.IntN(n), rng.IntN(n)
		ta, tb := 2e9*rng.Float64(), 2e9*rng.Float64()
		ra, rb := w.read(a, ta), w.read(b, tb)
		lo, hi, ok := sol.Between(w.names[a], ra, w.names[b], rb)
		require.True(t, ok)
		truth := float64(w.read(ref, w.when(b, rb)) - w.read(ref, w.when(a, ra)))
		require.LessOrEqual(t, float64(lo), truth+1)
		require.GreaterOrEqual(t, float64(hi), truth-1)
		ma, _ := sol.Model(w.names[a])
		mb, _ := sol.Model(w.names[b])
		apart := int64(math.Ceil(2.1 * max(ma.DriftBound, mb.DriftBound) * math.Abs(ta-tb)))
		if a == b {
			require.LessOrEqual(t, hi-lo, apart+8)
		}
		require.LessOrEqual(t, hi-lo, 2*(ma.Bound+mb.Bound)+apart+16)
	}
	assert.Positive(t, s.Counters().PathsOverflowed)
	lo, hi, ok := sol.Between(w.names[0], 5, w.names[1], math.MinInt64)
	assert.False(t, ok, "%d %d", lo, hi)
	_, _, ok = sol.Between("nobody", 0, w.names[1], 0)
	assert.False(t, ok)
}

// Hard bounds are those of the best path: three edges of 10 us in a row bound worse
// than one of 100, and better than one of 20.
func TestShortestPath(t *testing.T) {
	for _, tt := range []struct{ direct, want float64 }{{100e3, 30e3}, {20e3, 20e3}} {
		w := newWorld(3, 4)
		s := New(Options{Prefer: []string{w.names[0]}})
		for i := range 3 {
			mustAdd(t, s, w.edge(i, i+1, 1e9, 0, 10e3))
		}
		mustAdd(t, s, w.edge(0, 3, 1e9, 0, tt.direct))
		m, _ := s.Solve().Model(w.names[3])
		assert.InDelta(t, tt.want, m.Bound, 60)
	}
}

// Drifts add up along paths, and their bounds too.
func TestDrifts(t *testing.T) {
	const n = 30
	w := newWorld(4, n)
	s := New(Options{})
	for _, p := range w.choices(n, 3) {
		e := w.edge(p[0], p[1], 1e9, 0, 1000)
		e.Drift += w.rng.NormFloat64() * 0.005e-6
		mustAdd(t, s, e)
	}
	for _, m := range s.Solve().Models() {
		c, ref := w.find(t, m.Clock), w.find(t, m.Reference)
		truth := (1+w.drift[ref])/(1+w.drift[c]) - 1
		assert.InDelta(t, truth, m.Drift, 0.02e-6, m.Clock)
		if c != ref {
			assert.LessOrEqual(t, math.Abs(truth-m.Drift), m.DriftBound)
			assert.LessOrEqual(t, m.DriftBound, 1e-6)
		}
	}
}

// Edges of any moment and length, with drifts that are wrong by as much as they
// say: bounds contain the truth in the window, and beyond it where they have grown.
func TestBoundsHoldWhateverTheMoment(t *testing.T) {
	const n, half = 30, 2000.0
	for seed := range uint64(30) {
		w := newWorld(seed, n)
		s := New(Options{})
		for i, p := range w.choices(n, 3) {
			const driftBound = 0.3e-6
			span := []float64{2e9, 0.5e9, 8e9, 0}[i%4]
			wrong := (w.rng.Float64()*2 - 1) * driftBound
			e := w.edge(p[0], p[1], 20e9+w.rng.NormFloat64()*2e9, w.noise(half-math.Abs(wrong)*span/2), half)
			e.Span, e.Drift, e.DriftBound = int64(span), e.Drift+wrong, driftBound
			switch i % 5 {
			case 1:
				e.Source = model.EdgePair
			case 2:
				e.Source = model.EdgeMessage
			}
			if i%7 == 3 {
				e.Drift, e.DriftBound, e.Span = 0, 0, 0
			}
			mustAdd(t, s, e)
		}
		sol := s.Solve()
		require.Empty(t, untrustedOf(sol))
		require.Empty(t, sol.Undecided())
		for _, m := range sol.Models() {
			require.True(t, m.Bounded)
			for _, beyond := range []int64{0, 1e9, 8e9} {
				for _, r := range []int64{m.From - beyond, m.At, m.Until + beyond} {
					allowed := float64(m.Bound) + m.Growth*float64(max(m.From-r, r-m.Until, 0)) + 1
					require.LessOrEqual(t, math.Abs(w.errorOf(t, m, r)), allowed, "seed %d: %+v", seed, m)
				}
			}
		}
		ref := w.find(t, sol.Components()[0].Reference)
		for range 200 {
			a, b := w.rng.IntN(n), w.rng.IntN(n)
			ta, tb := 20e9+w.rng.NormFloat64()*2e9, 20e9+w.rng.NormFloat64()*2e9
			ra, rb := w.read(a, ta), w.read(b, tb)
			lo, hi, ok := sol.Between(w.names[a], ra, w.names[b], rb)
			require.True(t, ok)
			truth := float64(w.read(ref, w.when(b, rb)) - w.read(ref, w.when(a, ra)))
			require.LessOrEqual(t, float64(lo), truth+1)
			require.GreaterOrEqual(t, float64(hi), truth-1)
		}
	}
}
