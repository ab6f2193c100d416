// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCut_OfABox_KeepsWhatPassesTheGates(t *testing.T) {
	box := Box(nil, -1, 1, 1)
	assert.Equal(t, []Line{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}}, box)
	assert.Equal(t, []Line{{0, -1}, {1, -1}, {1, 1}, {0, 1}}, CutAbove(nil, box, 0, 0))
	assert.Equal(t, []Line{{-1, -1}, {0, -1}, {0, 1}, {-1, 1}}, CutBelow(nil, box, 0, 0))
	assert.Equal(t, box, CutAbove(nil, box, 0, -1), "an edge belongs to it")
	assert.Empty(t, CutAbove(nil, box, 0, 1.5))
	assert.Empty(t, CutBelow(nil, box, 2, -3.5))
	assert.Empty(t, CutAbove(nil, nil, 0, 0))
}

// What is left of a box is where the extreme lines are that pass all gates: the corners of all
// pairs of constraints say which these are.
func TestCut_ByManyGates_LeavesTheExtremeLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 9))
	for range 300 {
		truth := Line{rng.Float64() - 0.5, rng.Float64() - 0.5}
		gates := []gate{{1, 0, -2}, {-1, 0, -2}}
		left := Box(nil, -2, 2, 1)
		for range 1 + rng.IntN(8) {
			x, away := 4*rng.Float64()-2, rng.Float64()
			if rng.IntN(2) == 0 {
				gates = append(gates, gate{1, x, truth.At(x) - away})
				left = CutAbove(nil, left, x, truth.At(x)-away)
			} else {
				gates = append(gates, gate{-1, -x, -truth.At(x) - away})
				left = CutBelow(nil, left, x, truth.At(x)+away)
			}
		}
		require.NotEmpty(t, left)
		at := 6*rng.Float64() - 3
		low, high := math.Inf(1), math.Inf(-1)
		for _, l := range left {
			low, high = min(low, l.At(at)), max(high, l.At(at))
		}
		wantLow, wantHigh := extremes(gates, 1, at)
		require.InDelta(t, wantLow, low, 1e-9)
		require.InDelta(t, wantHigh, high, 1e-9)
	}
}

// gate is s*A + x*B >= c.
type gate struct{ s, x, c float64 }

// extremes tries each corner of two constraints.
func extremes(gates []gate, slope, at float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	all := append([]gate{{0, 1, -slope}, {0, -1, -slope}}, gates...)
	for i, g := range all {
		for _, h := range all[:i] {
			det := g.s*h.x - h.s*g.x
			if math.Abs(det) < 1e-12 {
				continue
			}
			l := Line{(g.c*h.x - h.c*g.x) / det, (g.s*h.c - h.s*g.c) / det}
			inside := true
			for _, o := range all {
				inside = inside && o.s*l.A+o.x*l.B >= o.c-1e-9
			}
			if inside {
				low, high = min(low, l.At(at)), max(high, l.At(at))
			}
		}
	}
	return low, high
}

func FuzzCut(f *testing.F) {
	f.Add(0.5, 0.25, -0.5, 0.75)
	f.Fuzz(func(t *testing.T, x, y, z, u float64) {
		for _, v := range []float64{x, y, z, u} {
			if !(math.Abs(v) < 1e9) {
				return
			}
		}
		left := CutBelow(nil, CutAbove(nil, Box(nil, -1, 1, 1), x, y), z, u)
		slack := 1e-6 * (1 + math.Abs(x) + math.Abs(z))
		for _, l := range left {
			require.GreaterOrEqual(t, l.At(x), y-slack)
			require.LessOrEqual(t, l.At(z), u+slack)
			require.LessOrEqual(t, math.Abs(l.B), 1+1e-9)
		}
	})
}

func BenchmarkCut(b *testing.B) {
	box, out := Box(nil, -1, 1, 1), make([]Line, 0, 8)
	for b.Loop() {
		out = CutAbove(out[:0], box, 0.5, 0.25)
	}
}
