// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// correctLoops is the network effect of Huygens (Geng et al., NSDI 2018), made
// independently of the solver: the loops of a spanning tree give A, one row each
// with +1 and -1 where an edge is passed; D - W⁻¹Aᵀ(A W⁻¹ Aᵀ)⁻¹ A D spreads what a
// loop does not add up to, so that every loop adds up to 0. With equal weights that
// is the paper's formula.
func correctLoops(n int, pairs [][2]int, d, w []float64) []float64 {
	loops := fundamentalLoops(n, pairs)
	k := len(loops)
	normal, surplus := make([][]float64, k), make([]float64, k)
	for i, a := range loops {
		normal[i] = make([]float64, k)
		for e, v := range a {
			surplus[i] += v * d[e]
			for j, b := range loops {
				normal[i][j] += v * b[e] / w[e]
			}
		}
	}
	y := gauss(normal, surplus)
	out := append([]float64(nil), d...)
	for i, a := range loops {
		for e, v := range a {
			out[e] -= v * y[i] / w[e]
		}
	}
	return out
}

// fundamentalLoops returns one loop for each edge outside of a spanning tree, as
// +1, -1 or 0 for every edge.
func fundamentalLoops(n int, pairs [][2]int) (loops [][]float64) {
	path := make([][]float64, n) // from clock 0, along the tree
	path[0] = make([]float64, len(pairs))
	inTree := make([]bool, len(pairs))
	for grown := true; grown; {
		grown = false
		for e, p := range pairs {
			for turn, sign := range []float64{1, -1} {
				from, to := p[turn], p[1-turn]
				if path[from] != nil && path[to] == nil {
					path[to] = append([]float64(nil), path[from]...)
					path[to][e] = sign
					inTree[e], grown = true, true
				}
			}
		}
	}
	for e, p := range pairs {
		if inTree[e] {
			continue
		}
		loop := make([]float64, len(pairs))
		for i := range loop {
			loop[i] = path[p[0]][i] - path[p[1]][i]
		}
		loop[e]++
		loops = append(loops, loop)
	}
	return loops
}

// gauss solves a small dense system.
func gauss(a [][]float64, b []float64) []float64 {
	n := len(b)
	for i := range n {
		best := i
		for r := i; r < n; r++ {
			if math.Abs(a[r][i]) > math.Abs(a[best][i]) {
				best = r
			}
		}
		a[i], a[best], b[i], b[best] = a[best], a[i], b[best], b[i]
		for r := i + 1; r < n; r++ {
			f := a[r][i] / a[i][i]
			for c := i; c < n; c++ {
				a[r][c] -= f * a[i][c]
			}
			b[r] -= f * b[i]
		}
	}
	x := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		x[i] = b[i]
		for c := i + 1; c < n; c++ {
			x[i] -= a[i][c] * x[c]
		}
		x[i] /= a[i][i]
	}
	return x
}

func TestGaussOnAKnownSystem(t *testing.T) {
	x := gauss([][]float64{{0, 2}, {3, 1}}, []float64{4, 5})
	assert.InDeltaSlice(t, []float64{1, 2}, x, 1e-12)
}

// A loop of three edges that add up to 20-15+5 = 10 gives up a third of it on each:
// the example of the paper.
func TestLoopOfThree(t *testing.T) {
	pairs := [][2]int{{0, 1}, {1, 2}, {2, 0}}
	got := correctLoops(3, pairs, []float64{20, -15, 5}, []float64{1, 1, 1})
	assert.InDeltaSlice(t, []float64{20 - 10.0/3, -15 - 10.0/3, 5 - 10.0/3}, got, 1e-12)
	assertFitEquals(t, 3, pairs, []float64{20, -15, 5}, []float64{1, 1, 1})
}

// Least squares on the graph is Huygens' correction of loops, weighted or not.
func TestFitEqualsHuygens(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		n := 3 + rng.IntN(12)
		var pairs [][2]int
		for a := 1; a < n; a++ {
			pairs = append(pairs, [2]int{rng.IntN(a), a})
		}
		for range n {
			if a, b := rng.IntN(n), rng.IntN(n); a != b {
				pairs = append(pairs, [2]int{a, b})
			}
		}
		d, same, weights := make([]float64, len(pairs)), make([]float64, len(pairs)), make([]float64, len(pairs))
		for i := range d {
			d[i], same[i], weights[i] = rng.NormFloat64()*1000, 1, math.Exp(2*rng.NormFloat64())
		}
		assertFitEquals(t, n, pairs, d, same)
		assertFitEquals(t, n, pairs, d, weights)
	}
}

func assertFitEquals(t *testing.T, n int, pairs [][2]int, d, w []float64) {
	t.Helper()
	f := &fit{ground: make([]bool, n)}
	f.ground[0] = true
	for i, p := range pairs {
		f.add(row{src: int32(p[0]), dst: int32(p[1]), r: d[i], w: w[i]})
	}
	f.build()
	x := make([]float64, n)
	f.solve(x)
	for i, want := range correctLoops(n, pairs, d, w) {
		require.InDelta(t, want, x[pairs[i][1]]-x[pairs[i][0]], 1e-6, "edge %d of %v", i, pairs)
	}
}

// What the random right-hand sides estimate is the effective resistance: of a chain
// the sum, of two edges side by side the half.
func TestVarianceIsEffectiveResistance(t *testing.T) {
	f := &fit{ground: []bool{true, false, false, false}}
	f.add(row{src: 0, dst: 1, w: 1.0 / 9}) // sigma 3
	f.add(row{src: 1, dst: 2, w: 1.0 / 16})
	f.add(row{src: 0, dst: 3, w: 1})
	f.add(row{src: 3, dst: 0, w: 1})
	f.build()
	v := f.variances()
	assert.InDelta(t, 9, v[1], 1e-9)
	assert.InEpsilon(t, 9+16, v[2], 0.8)
	assert.InEpsilon(t, 0.5, v[3], 0.8)
	assert.Zero(t, v[0])
}
