// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// Scale is the scale of Histogram and Recorder as OpenTelemetry defines it: base 2^(2^-7), that
// is buckets 0.54 % wide, fine enough to show a 1 % shift of a median.
const Scale = 7

// perOctave is how many buckets hold values up to twice the smallest.
const perOctave = 1 << Scale

// maxBuckets bounds one histogram; 2,560 buckets of scale 7 span 20 octaves, from 1 µs to 1 s.
// A duration that would need more is counted in Overflow.
const maxBuckets = 2560

// Histogram counts durations in exponential buckets of scale 7 as OpenTelemetry defines them:
// bucket i holds (base^i, base^(i+1)] seconds. Two of them merge by adding counts.
type Histogram struct {
	Count    int64
	Sum      float64 // s
	Zero     int64   // durations of 0
	Buckets  map[int32]int64
	Overflow int64 // durations that would have opened a bucket beyond the limit
}

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram { return &Histogram{Buckets: map[int32]int64{}} }

// Add counts one duration in seconds.
func (h *Histogram) Add(seconds float64) {
	h.Count++
	h.Sum += seconds
	if seconds <= 0 {
		h.Zero++
		return
	}
	h.add(Bucket(seconds), 1)
}

// Merge adds o to h.
func (h *Histogram) Merge(o *Histogram) {
	h.Count += o.Count
	h.Sum += o.Sum
	h.Zero += o.Zero
	h.Overflow += o.Overflow
	for i, n := range o.Buckets {
		h.add(i, n)
	}
}

func (h *Histogram) add(i int32, n int64) {
	if _, ok := h.Buckets[i]; !ok && len(h.Buckets) >= maxBuckets {
		h.Overflow += n
		return
	}
	h.Buckets[i] += n
}

// Buckets are found by the top bits of the mantissa and one comparison: a logarithm costs
// 20 ns, this costs 2.
const cellBits = 10

var (
	cellBucket [1 << cellBits]uint8
	upperEdge  [perOctave + 1]uint64 // mantissa bits of 2^((i+1)/128), inclusive
)

const (
	mantissaBits = 52
	mantissa     = 1<<mantissaBits - 1
	exponentBias = 1023
)

func init() {
	for i := range perOctave - 1 {
		upperEdge[i] = math.Float64bits(math.Exp2(float64(i+1)/perOctave)) & mantissa
	}
	upperEdge[perOctave-1], upperEdge[perOctave] = math.MaxUint64, math.MaxUint64
	at := uint8(0)
	for c := range cellBucket {
		for uint64(c)<<(mantissaBits-cellBits) > upperEdge[at] {
			at++
		}
		cellBucket[c] = at
	}
}

// Bucket returns the bucket of scale 7 that holds a positive number, ceil(log_base(v)) - 1, by
// which a bucket includes its upper edge. At a scale that is k less it is Bucket(v) >> k. Of a
// number below 2^-1022 it returns some bucket below all others.
func Bucket(v float64) int32 {
	bits := math.Float64bits(v)
	octave, m := int32(bits>>mantissaBits&0x7ff)-exponentBias, bits&mantissa
	if m == 0 {
		return octave*perOctave - 1
	}
	i := cellBucket[m>>(mantissaBits-cellBits)]
	if m > upperEdge[i] {
		i++
	}
	return octave*perOctave + int32(i)
}
