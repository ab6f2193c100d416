// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Of m independent edges between n clocks, n-1 dimensions of the error are left:
// sqrt((n-1)/m) of one edge's error, about 1/sqrt(K). The numbers are those of a
// simulation of 64 nodes that each probe K others.
func TestErrorFallsWithTheNumberOfNeighbours(t *testing.T) {
	for _, tt := range []struct {
		k    int
		want float64
	}{{2, 0.72}, {3, 0.61}, {5, 0.44}, {10, 0.33}, {20, 0.26}} {
		const n, half = 64, 1000.0
		var before, after, theory []float64
		for seed := range uint64(20) {
			w := newWorld(seed, n)
			s := New(Options{})
			pairs := w.choices(n, tt.k)
			theory = append(theory, math.Sqrt(float64(n-1)/float64(len(pairs))))
			for _, p := range pairs {
				e := w.noise(half)
				before = append(before, e)
				mustAdd(t, s, w.edge(p[0], p[1], 1e9+w.rng.Float64()*1e7, e, half))
			}
			sol := s.Solve()
			require.Len(t, sol.Components(), 1)
			for _, p := range pairs {
				a, _ := sol.Model(w.names[p[0]])
				b, _ := sol.Model(w.names[p[1]])
				after = append(after, w.errorOf(t, a, a.At)-w.errorOf(t, b, b.At))
			}
			for _, m := range sol.Models() {
				require.True(t, m.Bounded)
				require.False(t, m.Untrusted)
				for _, r := range []int64{m.From, m.At, m.Until} {
					require.LessOrEqual(t, abs(w.errorOf(t, m, r)), float64(m.Bound), "%+v", m)
				}
			}
		}
		// The numbers are of one run, so that they are met less well than the formula.
		assert.InEpsilon(t, tt.want, rms(after)/rms(before), 0.1, "K=%d", tt.k)
		// Weights that are found from the edges themselves cost some percent of it.
		assert.InEpsilon(t, rms(theory), rms(after)/rms(before), 0.07, "K=%d", tt.k)
	}
}

func abs(v float64) float64 {
	if v < 0 {
		return -v
	}
	return v
}

func TestTwoClocks(t *testing.T) {
	w := newWorld(1, 2)
	s := New(Options{Prefer: []string{w.names[1]}})
	mustAdd(t, s, w.edge(0, 1, 1e9, 30, 500))
	sol := s.Solve()
	require.Equal(t, []Component{{Reference: w.names[1], At: sol.Components()[0].At, Clocks: 2, Edges: 1}}, sol.Components())
	m, ok := sol.Model(w.names[0])
	require.True(t, ok)
	assert.InDelta(t, 30, w.errorOf(t, m, m.At), 2)
	assert.LessOrEqual(t, m.Bound, int64(505))
	assert.GreaterOrEqual(t, m.Bound, int64(500))
	lo, hi, ok := sol.Between(w.names[0], w.read(0, 1e9), w.names[1], w.read(1, 1e9))
	require.True(t, ok)
	assert.LessOrEqual(t, lo, int64(0))
	assert.GreaterOrEqual(t, hi, int64(0))
	// Each of some rounding steps adds a ns to either side.
	assert.InDelta(t, 1000, float64(hi-lo), 16)
}
