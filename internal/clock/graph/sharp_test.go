// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// An edge whose offset and drift are as wrong as its bounds allow, in the same
// direction, and that stands before or after the instant: nothing of what widens
// its bounds can be missing.
func TestBoundsAreNotTooNarrow(t *testing.T) {
	const half, driftBound, span = 400.0, 0.3e-6, 2e9
	for _, lag := range []float64{-5e9, -0.5e9, 0, 0.5e9, 5e9} {
		for _, offset := range []float64{1, -1} {
			for _, drift := range []float64{1, -1} {
				for _, source := range []string{model.EdgeProbe, model.EdgePair} {
					w := newWorld(1, 3)
					// Nothing else may cover for what is missing.
					s := New(Options{Prefer: w.names, Wander: 1e-15})
					for _, other := range []string{model.EdgeProbe, model.EdgeMessage, model.EdgeCall} {
						e := w.edge(0, 1, 20e9, 0, 1)
						e.Source = other
						mustAdd(t, s, e)
					}
					wrong := drift * driftBound
					// At one end of its span the truth lies on the bound; of a pair that is
					// read together that is so at one reading.
					off := offset * (half - driftBound*span/2)
					if source == model.EdgePair {
						off = offset * half
					}
					e := w.edge(1, 2, 20e9+lag, off, half)
					e.Source, e.DriftBound = source, driftBound
					e.Drift += wrong
					mustAdd(t, s, e)
					m, _ := s.Solve().Model(w.names[2])
					for _, r := range []int64{m.From, m.At, m.Until} {
						assert.LessOrEqual(t, math.Abs(w.errorOf(t, m, r)), float64(m.Bound), "lag %v offset %v drift %v %s", lag, offset, drift, source)
					}
					for _, far := range []float64{0, -8e9, 8e9} {
						at := 20e9 + lag + far
						lo, hi, ok := s.last.Between(w.names[1], w.read(1, at), w.names[2], w.read(2, at))
						require.True(t, ok)
						assert.LessOrEqual(t, lo, int64(1), "lag %v offset %v drift %v %s, %v ns off", lag, offset, drift, source, far)
						assert.GreaterOrEqual(t, hi, int64(-1), "lag %v offset %v drift %v %s, %v ns off", lag, offset, drift, source, far)
					}
				}
			}
		}
	}
}

// One edge knows the offset, with the truth on its bound at every reading, and
// another one the drift, as wrong as it says: where the solution's drift leads away
// from that of the edge, its bounds have to follow.
func TestBoundsFollowTheDriftOfTheSolution(t *testing.T) {
	const half = 400.0
	for _, offset := range []float64{1, -1} {
		for _, drift := range []float64{1, -1} {
			w := newWorld(1, 2)
			s := New(Options{Prefer: w.names, Wander: 1e-15})
			tight := w.edge(0, 1, 20e9, offset*half, half)
			tight.DriftBound = 0.3e-6
			mustAdd(t, s, tight)
			steady := w.edge(0, 1, 20e9, 0, 1e6)
			steady.Source, steady.DriftBound = model.EdgeMessage, 0.1e-6
			steady.Drift += drift * steady.DriftBound
			mustAdd(t, s, steady)
			m, _ := s.Solve().Model(w.names[1])
			require.Less(t, m.Bound, int64(2000))
			for _, r := range []int64{m.From, m.At, m.Until} {
				assert.LessOrEqual(t, math.Abs(w.errorOf(t, m, r)), float64(m.Bound)+1, "offset %v drift %v", offset, drift)
			}
			for _, lag := range []float64{-1e9, 0, 1e9} {
				lo, hi, ok := s.last.Between(w.names[0], w.read(0, 20e9+lag), w.names[1], w.read(1, 20e9+lag))
				require.True(t, ok)
				assert.LessOrEqual(t, lo, int64(1), "offset %v drift %v", offset, drift)
				assert.GreaterOrEqual(t, hi, int64(-1), "offset %v drift %v", offset, drift)
			}
		}
	}
}

// Edges count ns of Dst, solutions those of the reference: at 900 ppm and 10 ms
// these are 9 us.
func TestBoundsCountNsOfTheReference(t *testing.T) {
	const half = 10e6
	for _, offset := range []float64{1, -1} {
		for _, drift := range []float64{900e-6, -900e-6} {
			w := newWorld(1, 2)
			w.drift = []float64{0, drift}
			s := New(Options{Prefer: w.names, Wander: 1e-15})
			e := w.edge(0, 1, 20e9, offset*half, half)
			e.Lower, e.Upper, e.DriftBound = e.Offset-half, e.Offset+half, 1e-12
			mustAdd(t, s, e)
			m, _ := s.Solve().Model(w.names[1])
			assert.LessOrEqual(t, math.Abs(w.errorOf(t, m, m.At)), float64(m.Bound)+1, "offset %v drift %v", offset, drift)
			lo, hi, ok := s.last.Between(w.names[0], w.read(0, 20e9), w.names[1], w.read(1, 20e9))
			require.True(t, ok)
			assert.LessOrEqual(t, lo, int64(1), "offset %v drift %v", offset, drift)
			assert.GreaterOrEqual(t, hi, int64(-1), "offset %v drift %v", offset, drift)
		}
	}
}

// A clock of which nothing was heard for a while, and whose frequency wandered
// since by as much as it may, all the time in one direction: its bounds hold, where
// the others are now and for four windows after.
func TestBoundsOfAClockThatWanders(t *testing.T) {
	const half, wander, window = 400.0, 0.1e-6, 2e9
	for _, lag := range []float64{-8e9, 0} {
		for _, sign := range []float64{1, -1} {
			w := newWorld(1, 3)
			s := New(Options{Prefer: w.names, Wander: wander})
			for _, other := range []string{model.EdgeProbe, model.EdgeMessage, model.EdgeCall} {
				e := w.edge(0, 1, 20e9, 0, 1)
				e.Source, e.DriftBound = other, 1e-12
				mustAdd(t, s, e)
			}
			last := w.edge(1, 2, 20e9+lag, -sign*half, half)
			last.DriftBound = 1e-12
			mustAdd(t, s, last)
			sol := s.Solve()
			m, _ := sol.Model(w.names[2])
			// From the end of the edge on the frequency moves at the beginning of every
			// window.
			gone := func(at float64) (ns, rate float64) {
				for begin := 20e9 + lag + float64(last.Span)/2; begin < at; begin += window {
					ns, rate = ns+wander*(at-begin), rate+wander
				}
				return sign * ns, sign * rate
			}
			until := w.when(2, m.Until)
			for _, at := range []float64{w.when(2, m.From), 20e9, until, until + window, until + 4*window} {
				if at < 20e9+lag {
					continue
				}
				ns, rate := gone(at)
				r := w.read(2, at) + int64(math.Round(ns))
				allowed := float64(m.Bound) + m.Growth*max(0, float64(r-m.Until))
				// errorOf takes the clock for one that did not wander.
				assert.LessOrEqual(t, math.Abs(w.errorOf(t, m, r)+ns), allowed+1, "lag %v sign %v at %v", lag, sign, at)
				lo, hi, ok := sol.Between(w.names[1], w.read(1, at), w.names[2], r)
				require.True(t, ok)
				assert.LessOrEqual(t, lo, int64(1), "lag %v sign %v at %v", lag, sign, at)
				assert.GreaterOrEqual(t, hi, int64(-1), "lag %v sign %v at %v", lag, sign, at)
				if at == 20e9 {
					truth := (1+w.drift[0])/(1+w.drift[2]+rate) - 1
					assert.LessOrEqual(t, math.Abs(truth-m.Drift), m.DriftBound, "lag %v sign %v", lag, sign)
				}
			}
		}
	}
}

// Clock 1 is known to a second against the reference, and clock 2 well against
// clock 1, at a rate that differs by 800 ppm.
func TestNarrowBoundsBehindWideOnes(t *testing.T) {
	for _, side := range []float64{1, -1} {
		w := newWorld(1, 3)
		w.drift = []float64{0, 400e-6, -400e-6}
		s := New(Options{Prefer: w.names})
		const second = 1e9
		mustAdd(t, s, w.edge(0, 1, 20e9, side*0.95*second, second))
		mustAdd(t, s, w.edge(1, 2, 20e9, 0, 50))
		sol := s.Solve()
		ra, rb := w.read(1, 20e9), w.read(2, 20e9)
		lo, hi, ok := sol.Between(w.names[1], ra, w.names[2], rb)
		require.True(t, ok)
		assert.LessOrEqual(t, lo, int64(0))
		assert.GreaterOrEqual(t, hi, int64(0))
		// Both stand where the edge between them does, whatever the reference: only
		// the uncertainty of their drifts, over a second, adds to its bounds.
		assert.Less(t, hi-lo, int64(2000))
	}
}

// Who is accused by which contradictions.
func TestGuilty(t *testing.T) {
	w := newWorld(1, 6)
	s := New(Options{})
	for i := 1; i < 6; i++ {
		mustAdd(t, s, w.edge(0, i, 1e9, 0, 100))
	}
	p := newProblem(s)
	for _, tt := range []struct {
		name      string
		conflicts []conflict
		want      bool
	}{
		{"none", nil, false},
		{"two neighbours, either of which may lie", []conflict{{1, 2, 5}}, false},
		{"one against all others: it may lie to this clock alone", []conflict{{1, 2, 5}, {3, 1, 5}, {4, 1, 5}}, false},
		{"three that all differ", []conflict{{1, 2, 5}, {2, 3, 5}, {1, 3, 5}}, true},
		{"two and two", []conflict{{1, 2, 5}, {3, 4, 5}}, true},
		{"two, each with itself", []conflict{{1, 1, 5}, {2, 2, 5}}, false},
		{"three, each with itself", []conflict{{1, 1, 5}, {2, 2, 5}, {3, 3, 5}}, true},
	} {
		assert.Equal(t, tt.want, p.guilty(0, witnesses(tt.conflicts), tt.conflicts), tt.name)
	}
}

// What leaves a contradiction out leaves out the neighbour that is part of all.
func TestLeaveOut(t *testing.T) {
	w := newWorld(1, 5)
	s := New(Options{})
	for i := 1; i < 5; i++ {
		mustAdd(t, s, w.edge(0, i, 1e9, 0, 100))
	}
	p := newProblem(s)
	p.label()
	p.place()
	p.findSteps()
	p.solveDrifts()
	p.carry()
	p.refit()
	require.True(t, p.bound())
	p.leaveOut(0, p.odd(0, []conflict{{1, 2, 5}, {3, 2, 9}}))
	require.Len(t, p.pairs, 1)
	assert.Equal(t, Contradiction{A: w.names[0], B: w.names[2], Source: model.EdgeProbe, Excess: 9}, p.pairs[0])
}
