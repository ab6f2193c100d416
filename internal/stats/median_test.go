// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMedians_OfEvenAndOddNumbers_TakeTheirMiddle(t *testing.T) {
	for _, c := range []struct {
		of             []float64
		low, high, mid float64
	}{
		{nil, 0, 0, 0},
		{[]float64{7}, 7, 7, 7},
		{[]float64{1, 2}, 1, 2, 1.5},
		{[]float64{1, 2, 9}, 2, 2, 2},
		{[]float64{-3, -1, 4, 8}, -1, 4, 1.5},
	} {
		assert.InDelta(t, c.low, MedianLow(c.of), 0, "%v", c.of)
		assert.InDelta(t, c.high, MedianHigh(c.of), 0, "%v", c.of)
		assert.InDelta(t, c.mid, Median(c.of), 0, "%v", c.of)
		assert.InDelta(t, c.mid, MedianMidpoint(c.of), 0, "%v", c.of)
	}
}

func TestMedianMidpoint_OfIntegers_RoundsDown(t *testing.T) {
	for _, c := range [][3]int64{
		{1, 2, 1},
		{1, 4, 2},
		{-2, -1, -2},
		{-3, 2, -1},
		{5, 5, 5},
		{math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64 - 1},
		{math.MinInt64, math.MinInt64 + 1, math.MinInt64},
		{math.MinInt64, math.MaxInt64, -1},
		{math.MinInt64, math.MaxInt64 - 1, -1},
		{math.MinInt64 + 1, math.MaxInt64, 0},
	} {
		assert.Equal(t, c[2], MedianMidpoint(c[:2]), "of %d and %d", c[0], c[1])
	}
}

func TestMedianOf_OfAnyOrder_LeavesTheValues(t *testing.T) {
	v := []float64{5, 1, 4, 2}
	assert.InDelta(t, 3, MedianOf(v), 0)
	assert.Equal(t, []float64{5, 1, 4, 2}, v)
	assert.Zero(t, MedianOf[float32](nil))
}

// The midpoint is the floor of half the sum, which is found without bounds here.
func FuzzMedianMidpoint(f *testing.F) {
	f.Add(int64(math.MinInt64), int64(math.MaxInt64))
	f.Add(int64(-1), int64(2))
	f.Fuzz(func(t *testing.T, a, b int64) {
		a, b = min(a, b), max(a, b)
		want := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		want.Rsh(want, 1)
		require.Equal(t, want.Int64(), MedianMidpoint([]int64{a, b}), "of %d and %d", a, b)
	})
}

// The median of all but one is that of the values without it, whichever it is.
func TestMedianWithout_OfAnyValue_IsThatOfTheOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := 2; n <= 11; n++ {
		for range 50 {
			v := make([]int64, n)
			for i := range v {
				v[i] = rng.Int64N(6) // ties, too
			}
			slices.Sort(v)
			for i, x := range v {
				rest := slices.Delete(slices.Clone(v), i, i+1)
				require.Equal(t, MedianMidpoint(rest), MedianWithout(v, x), "%v without %d", v, x)
			}
		}
	}
	assert.Zero(t, MedianWithout([]int64{4}, 4), "nothing is left")
	assert.Zero(t, MedianWithout(nil, 4.0))
	assert.InDelta(t, 2, MedianWithout([]float64{1, 2, 3, 9}, 9), 0)
}

// sortedBy returns sorted values with ties, some of which are negative.
func sortedBy(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(rng.IntN(2*n+1) - n)
	}
	slices.Sort(v)
	return v
}

func BenchmarkMedianWithout(b *testing.B) {
	v := make([]int64, 1024)
	for i := range v {
		v[i] = int64(i)
	}
	for i := 0; b.Loop(); i++ {
		MedianWithout(v, int64(i&1023))
	}
}
