// SPDX-License-Identifier: Apache-2.0

package rankevents

import "math"

// Scale is the scale of the histograms: base 2^(2^-7), as in
// docs/format/summary.md.
const Scale = 7

const (
	subBuckets = 1 << Scale
	// firstOctave and octaves span 2^-30 s, a nanosecond, to 2^14 s, four hours.
	firstOctave = -30
	octaves     = 44
)

// page counts the buckets of one octave.
type page [subBuckets]uint32

// Histogram counts durations in exponential buckets as OpenTelemetry defines
// them: bucket i holds (base^i, base^(i+1)] seconds.
type Histogram struct {
	Count int64
	Sum   uint64 // ns
	Zero  int64
	pages [octaves]*page
}

// Each calls fn with every bucket that is not empty, by index.
func (h *Histogram) Each(fn func(index int32, n int64)) {
	for o, p := range h.pages {
		if p == nil {
			continue
		}
		for i, n := range p {
			if n > 0 {
				fn(int32((o+firstOctave)*subBuckets+i), int64(n))
			}
		}
	}
}

// keptPages is how many free pages are kept, 2 MiB of them.
const keptPages = 4096

// pagePool hands out pages; those of closed steps serve the next.
type pagePool struct {
	free []*page
	out  int // handed out
}

func (p *pagePool) get() *page {
	p.out++
	if n := len(p.free); n > 0 {
		pg := p.free[n-1]
		p.free = p.free[:n-1]
		return pg
	}
	return &page{}
}

// reset empties a histogram and takes its pages back.
func (p *pagePool) reset(h *Histogram) {
	for i, pg := range h.pages {
		if pg != nil {
			*pg = page{}
			p.out--
			if len(p.free) < keptPages {
				p.free = append(p.free, pg)
			}
			h.pages[i] = nil
		}
	}
	h.Count, h.Sum, h.Zero = 0, 0, 0
}

func (h *Histogram) add(ns uint64, pool *pagePool) {
	h.Count++
	h.Sum += ns
	if ns == 0 {
		h.Zero++
		return
	}
	i := bucketOf(float64(ns) * 1e-9)
	o := min(max(int(i>>Scale)-firstOctave, 0), octaves-1)
	pg := h.pages[o]
	if pg == nil {
		pg = pool.get()
		h.pages[o] = pg
	}
	pg[i&(subBuckets-1)]++
}

// Sub-buckets are found by the top bits of the mantissa and one comparison: a
// logarithm costs 20 ns, this costs 2.
const cellBits = 10

var (
	cellBucket [1 << cellBits]uint8
	upperEdge  [subBuckets + 1]uint64 // mantissa bits of 2^((i+1)/128), inclusive
)

const mantissa = 1<<52 - 1

func init() {
	for i := range subBuckets - 1 {
		upperEdge[i] = math.Float64bits(math.Exp2(float64(i+1)/subBuckets)) & mantissa
	}
	upperEdge[subBuckets-1], upperEdge[subBuckets] = math.MaxUint64, math.MaxUint64
	at := uint8(0)
	for c := range cellBucket {
		for uint64(c)<<(52-cellBits) > upperEdge[at] {
			at++
		}
		cellBucket[c] = at
	}
}

// bucketOf is ceil(log_base(seconds)) - 1 of a positive, normal number.
func bucketOf(seconds float64) int32 {
	bits := math.Float64bits(seconds)
	octave, m := int32(bits>>52&0x7ff)-1023, bits&mantissa
	if m == 0 {
		return octave*subBuckets - 1
	}
	i := cellBucket[m>>(52-cellBits)]
	if m > upperEdge[i] {
		i++
	}
	return octave*subBuckets + int32(i)
}
