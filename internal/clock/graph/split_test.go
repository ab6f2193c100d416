// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A few pairs in a hundred are split in any window, by stamps that are wrong, and speak of
// its last part only. Bounds of all others must not be stated for a time they do not hold in.
func TestEdgesThatAreSplitWidenNoOthers(t *testing.T) {
	const half, driftBound, at = 400.0, 10e-6, 20e9
	bounds := map[bool][]float64{}
	for _, split := range []bool{false, true} {
		w := newWorld(7, 64)
		s := New(Options{Prefer: w.names})
		for i, p := range w.choices(64, 10) {
			e := w.edge(p[0], p[1], at, w.noise(half), half)
			if split && i%20 == 0 {
				e = w.edge(p[0], p[1], at+0.9e9, w.noise(half), half)
				e.Span = 0.2e9
			}
			e.DriftBound = driftBound
			mustAdd(t, s, e)
		}
		solution := s.Solve()
		covered := 0.0
		for _, m := range solution.Models() {
			require.True(t, m.Bounded)
			for _, r := range []int64{m.From, m.At, m.Until} {
				assert.LessOrEqual(t, math.Abs(w.errorOf(t, m, r)), float64(m.Bound))
			}
			bounds[split] = append(bounds[split], float64(m.Bound))
			covered += float64(m.Until-m.From) / 64
		}
		assert.Greater(t, covered, 1.8e9, "split %v", split)
		a, b := w.names[3], w.names[40]
		lo, hi, ok := solution.Between(a, w.read(3, at-0.8e9), b, w.read(40, at-0.8e9))
		require.True(t, ok)
		assert.LessOrEqual(t, lo, int64(1))
		assert.GreaterOrEqual(t, hi, int64(-1))
	}
	slices.Sort(bounds[true])
	slices.Sort(bounds[false])
	assert.Less(t, bounds[true][32], 1.5*bounds[false][32])
}

// Drifts of a few windows are off by much more than those of all others, within wide bounds
// that all have alike: they pull no harder than the rest.
func TestDriftsThatAreFarOff(t *testing.T) {
	w := newWorld(9, 16)
	s := New(Options{Prefer: w.names})
	for i, p := range w.choices(16, 5) {
		e := w.edge(p[0], p[1], 20e9, 0, 400)
		e.DriftBound = 60e-6
		e.Drift += 0.02e-6 * w.rng.NormFloat64()
		if i%12 == 0 {
			e.Drift += 25e-6
		}
		mustAdd(t, s, e)
	}
	ref := w.names[0]
	for _, m := range s.Solve().Models() {
		if m.Clock == ref {
			continue
		}
		c, r := w.find(t, m.Clock), w.find(t, m.Reference)
		truth := (1+w.drift[r])/(1+w.drift[c]) - 1
		assert.Less(t, math.Abs(m.Drift-truth), 0.1e-6, m.Clock)
		assert.LessOrEqual(t, math.Abs(m.Drift-truth), m.DriftBound)
	}
}
