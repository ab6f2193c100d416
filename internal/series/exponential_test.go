// SPDX-License-Identifier: Apache-2.0

package series

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExponentialBucket_HoldsItsUpperBound(t *testing.T) {
	// Of scale 3, base 2^(1/8): a bucket holds its upper bound and not its lower.
	for _, tc := range []struct {
		v    float64
		want int32
	}{{1, -1}, {1.0001, 0}, {2, 7}, {1.0905, 0}, {1.0906, 1}, {0.5, -9}, {1e-300, -240}, {1e300, 239}} {
		assert.Equal(t, tc.want, exponentialBucket(tc.v), "%v", tc.v)
	}
}

func TestMetric_Exponential_CountsFromTheLowestBucket(t *testing.T) {
	m := Metric{Kind: Exponential, Limit: 1}
	m.AddAll(t0, []float64{0, 1, 2, 2}, Text("k", "a"))
	m.Add(t0, 0, Text("k", "b"))
	points := pointsOf(&m)
	require.Len(t, points, 2)
	zero, offset, counts := points[0].Exponential()
	assert.Equal(t, []uint64{4, 1}, []uint64{points[0].Count(), zero})
	assert.InDelta(t, 5, points[0].Value(), 0)
	assert.Equal(t, int32(-1), offset)
	assert.Equal(t, []uint64{1, 0, 0, 0, 0, 0, 0, 0, 2}, counts)
	zero, _, counts = points[1].Exponential()
	assert.Equal(t, uint64(1), zero)
	assert.Nil(t, counts, "all values are 0")
}
