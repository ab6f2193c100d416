// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMAD_OfValues_LeavesThemAndIgnoresOneThatIsWild(t *testing.T) {
	v := []float64{9, 10, 1000, 11, 8}
	mid, mad := MAD(v)
	assert.InDelta(t, 10, mid, 0)
	assert.InDelta(t, 1, mad, 0, "of 1, 0, 990, 1, 2")
	assert.Equal(t, []float64{9, 10, 1000, 11, 8}, v)
	mid, mad = MAD(nil)
	assert.Zero(t, mid)
	assert.Zero(t, mad)
}

// Of normal values the spread is their standard deviation, however few they are.
func TestSpread_OfNormalValues_IsTheirStandardDeviation(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for _, n := range []int{2, 3, 4, 5, 9, 10, 25, 100} {
		const tries = 4000
		sum, middles := 0.0, 0.0
		for range tries {
			v := make([]float64, n)
			for i := range v {
				v[i] = 7 + 3*rng.NormFloat64()
			}
			mid, sigma := Spread(v)
			sum, middles = sum+sigma/tries, middles+mid/tries
		}
		assert.InEpsilon(t, 3, sum, 0.05, "of %d", n)
		assert.InEpsilon(t, 7, middles, 0.02, "of %d", n)
	}
}

func TestSpread_OfOneOrNone_IsZero(t *testing.T) {
	mid, sigma := Spread([]float64{4})
	assert.InDelta(t, 4, mid, 0)
	assert.Zero(t, sigma)
	mid, sigma = Spread(nil)
	assert.Zero(t, mid)
	assert.Zero(t, sigma)
}

// The error of a median shows in samples large enough to be normal.
func TestMedianError_OfNormalValues_IsWhatSamplesShow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	const n, tries = 101, 2000
	square := 0.0
	for range tries {
		v := make([]float64, n)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		slices.Sort(v)
		square += Median(v) * Median(v) / tries
	}
	assert.InEpsilon(t, MedianError, math.Sqrt(square*n), 0.05)
}

func TestMeanInterval_OfKnownValues_IsStudents(t *testing.T) {
	mean, half := MeanInterval([]float64{1, 3})
	assert.InDelta(t, 2, mean, 1e-12)
	assert.InDelta(t, 12.71, half, 1e-9, "12.71 standard errors of 1")
	// Mean 0, standard error 0.1/sqrt 3, times 4.303.
	mean, half = MeanInterval([]float64{-0.1, 0, 0.1})
	assert.InDelta(t, 0, mean, 1e-15)
	assert.InDelta(t, 0.24843, half, 1e-5)
	many := make([]float64, 100) // beyond the table: its last quantile, which is wider
	for i := range many {
		many[i] = float64(i % 2)
	}
	mean, half = MeanInterval(many)
	assert.InDelta(t, 0.5, mean, 1e-12)
	assert.InDelta(t, 2.086*0.0502519, half, 1e-5)
	mean, half = MeanInterval([]float64{5})
	assert.InDelta(t, 5, mean, 0)
	assert.Zero(t, half)
	mean, half = MeanInterval(nil)
	assert.Zero(t, mean)
	assert.Zero(t, half)
}
