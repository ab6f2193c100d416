// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// eighths are shares that a float64 holds exactly.
const eighths = 8

// The quantiles are found by counting, as they are defined.
func TestQuantiles_OfAnyShare_AreThoseByCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for n := 1; n <= 33; n++ {
		v := sortedBy(rng, n)
		upTo := func(x float64) (within, below int) {
			for _, y := range v {
				if y <= x {
					within++
				}
				if y < x {
					below++
				}
			}
			return within, below
		}
		for k := range eighths + 1 {
			q := float64(k) / eighths
			low := v[0]
			for _, x := range v {
				if within, _ := upTo(x); within*eighths >= k*n {
					low = x
					break
				}
			}
			high := v[0]
			for _, x := range v {
				if _, below := upTo(x); below*eighths <= k*n {
					high = x
				}
			}
			require.InDelta(t, low, QuantileLow(v, q), 0, "%v of %v", q, v)
			require.InDelta(t, high, QuantileHigh(v, q), 0, "%v of %v", q, v)
		}
		require.InDelta(t, MedianLow(v), QuantileLow(v, 0.5), 0, "%v", v)
		require.InDelta(t, MedianHigh(v), QuantileHigh(v, 0.5), 0, "%v", v)
	}
}

func TestQuantileNearest_OfAPlace_RoundsIt(t *testing.T) {
	v := []int{10, 20, 30, 40}
	for q, want := range map[float64]int{0: 10, 0.1: 10, 0.2: 20, 0.5: 30, 0.8: 30, 0.9: 40, 1: 40} {
		assert.Equal(t, want, QuantileNearest(v, q), "%v", q)
	}
}

func TestQuantiles_OfNone_AreZero(t *testing.T) {
	assert.Zero(t, QuantileLow([]float64{}, 0.5))
	assert.Empty(t, QuantileHigh([]string(nil), 0.5))
	assert.Zero(t, QuantileNearest([]int(nil), 0.5))
}

// The place of a share that no float64 holds is that of whole numbers.
func TestQuantileHigh_OfPercents_IsExact(t *testing.T) {
	v := make([]int, 2000)
	for i := range v {
		v[i] = i
	}
	for n := 1; n <= len(v); n++ {
		require.Equal(t, min(n-1, n*95/100), QuantileHigh(v[:n], 0.95), "%d", n)
		require.Equal(t, n*99/100, QuantileHigh(v[:n], 0.99), "%d", n)
		require.Equal(t, n*9/10, QuantileHigh(v[:n], 0.9), "%d", n)
	}
}
