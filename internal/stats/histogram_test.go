// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The definition, computed with a logarithm; beside an edge its own rounding decides, so
// there the index is checked against the edges.
func TestBucket_OfAnyDuration_HoldsIt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200_000 {
		v := math.Exp2(rng.Float64()*44 - 30)
		i := Bucket(v)
		lower, upper := math.Exp2(float64(i)/perOctave), math.Exp2(float64(i+1)/perOctave)
		if v <= lower*(1-1e-15) || v > upper*(1+1e-15) {
			t.Fatalf("%v in bucket %d, (%v, %v]", v, i, lower, upper)
		}
	}
	for octave := -30; octave < 14; octave++ {
		assert.Equal(t, int32(octave*perOctave-1), Bucket(math.Exp2(float64(octave))), "an upper edge belongs to its bucket")
		assert.Equal(t, int32(octave*perOctave), Bucket(math.Nextafter(math.Exp2(float64(octave)), 1e9)))
	}
}

// For whole ns beside every edge up to an hour the logarithm gives the same bucket, also at a
// coarser scale.
func TestBucket_OfWholeNanoseconds_IsThatOfALogarithm(t *testing.T) {
	for i := -30 * perOctave; i < 12*perOctave; i++ {
		edge := int64(math.Exp2(float64(i)/perOctave) * 1e9)
		for ns := max(1, edge-2); ns <= edge+2; ns++ {
			v := float64(ns) / 1e9
			byLog := func(scale int32) int32 { return int32(math.Ceil(math.Log2(v)*float64(int32(1)<<scale))) - 1 }
			require.Equal(t, byLog(Scale), Bucket(v), "%v", v)
			require.Equal(t, byLog(3), Bucket(v)>>(Scale-3), "%v", v)
		}
	}
}

func TestHistogram_Merged_IsThatOfAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	all, parts := NewHistogram(), [2]*Histogram{NewHistogram(), NewHistogram()}
	for i := range 1000 {
		v := float64(rng.IntN(1<<20)) / (1 << 30) // so that sums are exact
		all.Add(v)
		parts[i%2].Add(v)
	}
	parts[0].Merge(parts[1])
	assert.Equal(t, all, parts[0])
}

func TestHistogram_OfTooManyBuckets_CountsTheRest(t *testing.T) {
	h := NewHistogram()
	for i := range 2 * maxBuckets {
		h.Add(math.Exp2(float64(i-maxBuckets)/perOctave) * 1.0001)
	}
	assert.Len(t, h.Buckets, maxBuckets)
	assert.Equal(t, int64(maxBuckets), h.Overflow)
	assert.Equal(t, int64(2*maxBuckets), h.Count)
	other := NewHistogram()
	other.Add(0)
	other.Add(1e9)
	h.Merge(other)
	assert.Equal(t, int64(maxBuckets+1), h.Overflow)
	assert.Equal(t, int64(1), h.Zero)
}

func TestRecorder_Reset_ReusesItsPages(t *testing.T) {
	var pool Pool
	var r Recorder
	for _, ns := range []uint64{0, 1, 1_000_000_000, 2_000_000_000, 2_000_000_000, math.MaxInt64} {
		r.Add(ns, &pool)
	}
	var n int64
	got := map[int32]int64{}
	r.Each(func(i int32, c int64) { n += c; got[i] = c })
	assert.Equal(t, int64(6), r.Count)
	assert.Equal(t, int64(1), r.Zero)
	assert.Equal(t, r.Count, r.Zero+n)
	assert.Equal(t, int64(1), got[-1], "1 s ends bucket -1")
	assert.Equal(t, int64(2), got[127], "2 s ends bucket 127")
	h := r.Histogram()
	assert.Equal(t, got, h.Buckets)
	assert.Equal(t, []int64{6, 1, 0}, []int64{h.Count, h.Zero, h.Overflow})
	pages := 0
	for _, p := range r.pages {
		if p != nil {
			pages++
		}
	}
	assert.Equal(t, pages*perOctave*4, pool.Bytes())
	pool.Reset(&r)
	assert.Len(t, pool.free, pages)
	assert.Zero(t, pool.Bytes())
	r.Each(func(int32, int64) { t.Error("not empty") })
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		r.Add(1000, &pool)
		pool.Reset(&r)
	}))
}

func TestLogLinear_Buckets_HoldWhatTheySay(t *testing.T) {
	for _, ns := range []uint64{0, 1, 15, 16, 17, 31, 32, 33, 1000, 999_999_937, math.MaxInt64} {
		b := fineBucket(ns)
		assert.GreaterOrEqual(t, fineUpper(b), ns)
		assert.LessOrEqual(t, float64(fineUpper(b)), float64(ns)*17/16+1, "within a sixteenth")
		if b > 0 {
			assert.Less(t, fineUpper(b-1), ns)
		}
	}
}

func TestLogLinear_Quantile_SkipsWhatIsBeyond(t *testing.T) {
	var h LogLinear
	assert.Zero(t, h.Quantile(0.5))
	for range 1998 {
		h.Add(100)
	}
	h.Add(3000)
	assert.InEpsilon(t, 100, h.Quantile(0.999), 0.07, "1 of 1999 is beyond the percentile")
	h.Add(3000)
	h.Add(3000)
	assert.InEpsilon(t, 3000, h.Quantile(0.999), 0.07, "3 of 2001 are not")
	assert.Equal(t, 2001, h.Len())
}

func TestLogLinear_Full_HalvesItsCounts(t *testing.T) {
	var h LogLinear
	for range maxHeld {
		h.Add(1000)
	}
	assert.Equal(t, maxHeld/2, h.Len())
}

func BenchmarkBucket(b *testing.B) {
	v := 1e-6
	for b.Loop() {
		Bucket(v)
		if v *= 1.01; v > 1 {
			v = 1e-6
		}
	}
}

func BenchmarkRecorder(b *testing.B) {
	var pool Pool
	var r Recorder
	for i := uint64(0); b.Loop(); i++ {
		r.Add(1000+i&0xffff, &pool)
	}
}
