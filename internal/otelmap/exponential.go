// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"maps"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// exponentialScale has 8 buckets an octave, each 9 % wide: a microsecond to a day
// are 300 of them. A finer scale would make a series of some thousands.
const exponentialScale = 3

// maxOctave bounds the buckets of a series: values are put between 2^-maxOctave and
// 2^maxOctave, a nanosecond to 34 years of seconds.
const maxOctave = 30

// exponential are the buckets of one series, as OpenTelemetry defines them: bucket i
// holds (base^i, base^(i+1)], base 2^(2^-scale).
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
	const perOctave = 1 << exponentialScale
	i := stats.Bucket(v) >> (stats.Scale - exponentialScale)
	return min(max(i, -maxOctave*perOctave), maxOctave*perOctave-1)
}

func (m *Metric) writeExponential(p *point, to pmetric.ExponentialHistogramDataPoint, now time.Time, overflow bool) {
	p.writeAttributes(to.Attributes(), overflow)
	to.SetStartTimestamp(pcommon.NewTimestampFromTime(p.start))
	to.SetTimestamp(pcommon.NewTimestampFromTime(now))
	to.SetScale(exponentialScale)
	to.SetCount(p.count)
	to.SetSum(p.value)
	to.SetZeroCount(p.exponential.zero)
	if len(p.exponential.buckets) == 0 {
		return
	}
	used := slices.Sorted(maps.Keys(p.exponential.buckets))
	first, last := used[0], used[len(used)-1]
	counts := make([]uint64, last-first+1)
	for i, n := range p.exponential.buckets {
		counts[i-first] = n
	}
	to.Positive().SetOffset(first)
	to.Positive().BucketCounts().FromRaw(counts)
}
