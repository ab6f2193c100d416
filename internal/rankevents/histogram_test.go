// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The definition, computed with a logarithm; beside an edge its own rounding
// decides, so there the index is checked against the edges.
func TestBucketOfIsTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200_000 {
		v := math.Exp2(rng.Float64()*44 - 30)
		i := bucketOf(v)
		lower, upper := math.Exp2(float64(i)/subBuckets), math.Exp2(float64(i+1)/subBuckets)
		if v <= lower*(1-1e-15) || v > upper*(1+1e-15) {
			t.Fatalf("%v in bucket %d, (%v, %v]", v, i, lower, upper)
		}
	}
	for octave := -30; octave < 14; octave++ {
		assert.Equal(t, int32(octave*subBuckets-1), bucketOf(math.Exp2(float64(octave))), "an upper edge belongs to its bucket")
		assert.Equal(t, int32(octave*subBuckets), bucketOf(math.Nextafter(math.Exp2(float64(octave)), 1e9)))
	}
}

func TestHistogramCountsAndReuses(t *testing.T) {
	var pool pagePool
	var h Histogram
	for _, ns := range []uint64{0, 1, 1_000_000_000, 2_000_000_000, 2_000_000_000, math.MaxInt64} {
		h.add(ns, &pool)
	}
	var n int64
	got := map[int32]int64{}
	h.Each(func(i int32, c int64) { n += c; got[i] = c })
	assert.Equal(t, int64(6), h.Count)
	assert.Equal(t, int64(1), h.Zero)
	assert.Equal(t, h.Count, h.Zero+n)
	assert.Equal(t, int64(1), got[-1], "1 s ends bucket -1")
	assert.Equal(t, int64(2), got[127], "2 s ends bucket 127")
	pages := 0
	for _, p := range h.pages {
		if p != nil {
			pages++
		}
	}
	pool.reset(&h)
	assert.Len(t, pool.free, pages)
	h.Each(func(int32, int64) { t.Error("not empty") })
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		h.add(1000, &pool)
		pool.reset(&h)
	}))
}
