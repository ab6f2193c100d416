// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A value of weight n counts like n equal ones.
func TestWeightedMedians_OfWholeWeights_AreThoseOfRepeatedValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	for range 500 {
		var of []Weighted
		var repeated []float64
		for range 1 + rng.IntN(8) {
			x, n := float64(rng.IntN(10)), 1+rng.IntN(4)
			of = append(of, Weighted{x, float64(n)})
			repeated = append(repeated, slices.Repeat([]float64{x}, n)...)
		}
		slices.Sort(repeated)
		require.InDelta(t, Median(repeated), WeightedMedian(slices.Clone(of)), 0, "%v", of)
		require.InDelta(t, MedianLow(repeated), WeightedMedianLow(slices.Clone(of)), 0, "%v", of)
	}
}

func TestWeightedMedians_OfEqualAndOfNoWeights(t *testing.T) {
	assert.Zero(t, WeightedMedian(nil))
	assert.Zero(t, WeightedMedianLow(nil))
	assert.InDelta(t, 1, WeightedMedianLow([]Weighted{{2, 0}, {1, 0}}), 0)
	assert.InDelta(t, 1.5, WeightedMedian([]Weighted{{2, 0}, {1, 0}}), 0)
	assert.InDelta(t, 2, WeightedMedian([]Weighted{{2, 1}, {1, 0}}), 0)
	assert.InDelta(t, 5, WeightedMedian([]Weighted{{1, 1}, {5, 3}, {9, 1}}), 0)
}
