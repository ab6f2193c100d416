// SPDX-License-Identifier: Apache-2.0

package series

import (
	"maps"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// ExponentialScale is the scale of exponential histograms. It has 8 buckets an octave, each 9 % wide: a microsecond to a day
// are 300 of them. A finer scale would make a series of some thousands.
const ExponentialScale = 3

// maxOctave bounds the buckets of a series: values are put between 2^-maxOctave and
// 2^maxOctave, a nanosecond to 34 years of seconds.
const maxOctave = 30

// exponential are the buckets of one series, as OpenTelemetry defines them.
type exponential struct {
	zero    uint64
	buckets map[int32]uint64
}

func (e *exponential) add(v float64) {
	if v <= 0 || math.IsNaN(v) {
		e.zero++
		return
	}
	if e.buckets == nil {
		e.buckets = map[int32]uint64{}
	}
	e.buckets[exponentialBucket(v)]++
}

func exponentialBucket(v float64) int32 {
	const perOctave = 1 << ExponentialScale
	i := stats.Bucket(v) >> (stats.Scale - ExponentialScale)
	return min(max(i, -maxOctave*perOctave), maxOctave*perOctave-1)
}

// Exponential returns the buckets of a point of an exponential histogram: how many values are 0 or less, and the
// counts of the buckets from the one with the index offset; nil where all values are 0 or less. Bucket i
// holds (base^i, base^(i+1)], base 2^(2^-ExponentialScale).
func (p *Point) Exponential() (zero uint64, offset int32, counts []uint64) {
	e := &p.exponential
	if len(e.buckets) == 0 {
		return e.zero, 0, nil
	}
	used := slices.Sorted(maps.Keys(e.buckets))
	first, last := used[0], used[len(used)-1]
	counts = make([]uint64, last-first+1)
	for i, n := range e.buckets {
		counts[i-first] = n
	}
	return e.zero, first, counts
}
