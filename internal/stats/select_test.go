// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func shuffled(rng *rand.Rand, v []float64) []float64 {
	v = slices.Clone(v)
	rng.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
	return v
}

func TestSelect_OfAnyOrder_IsThatOfSortedValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 40; n++ {
		sorted := sortedBy(rng, n)
		for k := range n {
			v := shuffled(rng, sorted)
			require.InDelta(t, sorted[k], Select(v, k), 0, "place %d of %v", k, sorted)
			require.LessOrEqual(t, slices.Max(v[:k+1]), v[k])
			require.GreaterOrEqual(t, slices.Min(v[k:]), v[k])
		}
		require.InDelta(t, Median(sorted), SelectMedian(shuffled(rng, sorted)), 0, "%v", sorted)
		require.InDelta(t, MedianLow(sorted), SelectMedianLow(shuffled(rng, sorted)), 0, "%v", sorted)
		require.InDelta(t, MedianHigh(sorted), SelectMedianHigh(shuffled(rng, sorted)), 0, "%v", sorted)
		require.InDelta(t, MedianMidpoint(sorted), SelectMedianMidpoint(shuffled(rng, sorted)), 0, "%v", sorted)
	}
	assert.Zero(t, SelectMedian[float32](nil))
	assert.Zero(t, SelectMedianLow[float64](nil))
	assert.Zero(t, SelectMedianHigh[uint16](nil))
	assert.Zero(t, SelectMedianMidpoint[int64](nil))
	assert.Equal(t, int64(math.MaxInt64-2), SelectMedianMidpoint([]int64{math.MaxInt64, math.MaxInt64 - 3, math.MaxInt64 - 1, 0}), "no overflow")
}

func TestSelectMedian_OfOrders_FindsTheMiddle(t *testing.T) {
	for _, c := range []struct {
		of   []float32
		want float32
	}{
		{[]float32{3}, 3},
		{[]float32{3, 1}, 2},
		{[]float32{5, 1, 3}, 3},
		{[]float32{4, 4, 4, 4}, 4},
		{[]float32{9, 1, 8, 2, 7, 3}, 5},
		{[]float32{1, 2, 3, 4, 5, 6, 7}, 4},
		{[]float32{7, 6, 5, 4, 3, 2, 1}, 4},
	} {
		assert.InDelta(t, c.want, SelectMedian(slices.Clone(c.of)), 0, "%v", c.of)
	}
}

func FuzzSelect(f *testing.F) {
	f.Add([]byte{1, 0, 2, 0, 3, 0}, 1)
	f.Fuzz(func(t *testing.T, data []byte, k int) {
		var v []float64
		for ; len(data) >= 2; data = data[2:] {
			v = append(v, float64(int16(binary.LittleEndian.Uint16(data))))
		}
		if k < 0 || k >= len(v) {
			return
		}
		want := slices.Sorted(slices.Values(v))
		require.InDelta(t, want[k], Select(v, k), 0)
		require.Equal(t, want, slices.Sorted(slices.Values(v)), "the values are the same")
	})
}

// The median of all others is that of the values without one of them, whichever it is.
func TestMiddle_WithoutAnyValue_IsTheMedianOfTheOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 2; n <= 12; n++ {
		for range 50 {
			v := sortedBy(rng, n)
			m := SelectMiddle(shuffled(rng, v))
			require.Equal(t, n, m.Len())
			require.InDelta(t, Median(v), m.Median(), 0, "%v", v)
			for i, x := range v {
				rest := slices.Delete(slices.Clone(v), i, i+1)
				require.InDelta(t, Median(rest), m.Without(x), 0, "%v without %v", v, x)
			}
		}
	}
	one := SelectMiddle([]float64{3})
	assert.InDelta(t, 3, one.Median(), 0)
	assert.InDelta(t, 3, one.Without(3), 0, "there is no other")
	none := SelectMiddle(nil)
	assert.Zero(t, none.Median())
	assert.Zero(t, none.Without(1))
}

func BenchmarkSelectMedian(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	from := make([]float64, 1024)
	for i := range from {
		from[i] = math.Exp(rng.NormFloat64())
	}
	v := make([]float64, len(from))
	for b.Loop() {
		copy(v, from)
		SelectMedian(v)
	}
}
