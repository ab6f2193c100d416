// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"math/bits"
	"time"
)

// Buckets are sixteenths of a power of two: a gap is known to 6 %. 64 powers hold any time.
const (
	subBits = 4
	buckets = 64 << subBits
)

// maxGaps is how many gaps a histogram holds until all counts are halved, so that a job's
// latest rhythm counts most: some hours of a job with 8 ranks and 10 operations a second.
const maxGaps = 1 << 20

// histogram counts gaps by their length.
type histogram struct {
	count [buckets]uint32
	n     int
}

func bucketOf(ns uint64) int {
	if ns < 1<<subBits {
		return int(ns)
	}
	exp := bits.Len64(ns) - 1 - subBits // how far the leading bits are shifted out
	return (exp+1)<<subBits + int(ns>>exp)&(1<<subBits-1)
}

// upperOf is the longest gap of a bucket.
func upperOf(b int) uint64 {
	if b < 1<<subBits {
		return uint64(b)
	}
	exp := b>>subBits - 1
	return (uint64(1<<subBits+b&(1<<subBits-1))+1)<<exp - 1
}

func (h *histogram) add(gap time.Duration) {
	h.count[bucketOf(uint64(max(gap, 0)))]++
	h.n++
	if h.n < maxGaps {
		return
	}
	h.n = 0
	for i := range h.count {
		h.count[i] /= 2
		h.n += int(h.count[i])
	}
}

// quantile is the length that the given share of gaps does not exceed. Of fewer gaps than it
// takes to tell, it is the longest.
func (h *histogram) quantile(q float64) time.Duration {
	beyond := int(float64(h.n) * (1 - q))
	for b := buckets - 1; b >= 0; b-- {
		if beyond -= int(h.count[b]); beyond < 0 {
			return time.Duration(upperOf(b))
		}
	}
	return 0
}

// gapQuantile is the percentile of the limit.
const gapQuantile = 0.999

// limit is how long a job may stand in a phase of these gaps.
func (c *Config) limit(h *histogram) time.Duration {
	if h == nil || h.n < c.MinGaps {
		return c.StartLimit
	}
	return max(c.Floor, time.Duration(c.Factor*float64(h.quantile(gapQuantile))))
}
