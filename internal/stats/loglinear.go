// SPDX-License-Identifier: Apache-2.0

package stats

import "math/bits"

// Buckets of LogLinear are sixteenths of a power of two: a value is known to 6 %. 64 powers hold
// any time in ns.
const (
	subBits     = 4
	fineBuckets = 64 << subBits
)

// maxHeld is how many values a LogLinear holds until all counts are halved, so that the latest
// count most: some hours of a job with 8 ranks and 10 operations a second.
const maxHeld = 1 << 20

// LogLinear counts whole numbers of ns, below 16 each by itself and above in buckets a sixteenth
// of a power of two wide, and gives quantiles of them. Old ones count less and less. The zero
// value is empty.
type LogLinear struct {
	count [fineBuckets]uint32
	n     int
}

// Add counts one value in ns.
func (h *LogLinear) Add(ns uint64) {
	h.count[fineBucket(ns)]++
	h.n++
	if h.n < maxHeld {
		return
	}
	h.n = 0
	for i := range h.count {
		h.count[i] /= 2
		h.n += int(h.count[i])
	}
}

// Len returns how many values count.
func (h *LogLinear) Len() int { return h.n }

// Quantile returns the upper edge, in ns, of the bucket of the smallest value that the given
// share of all does not exceed. Of fewer values than it takes to tell, it is that of the largest;
// of none, 0.
func (h *LogLinear) Quantile(q float64) uint64 {
	beyond := int(float64(h.n) * (1 - q))
	for b := fineBuckets - 1; b >= 0; b-- {
		if beyond -= int(h.count[b]); beyond < 0 {
			return fineUpper(b)
		}
	}
	return 0
}

func fineBucket(ns uint64) int {
	if ns < 1<<subBits {
		return int(ns)
	}
	exp := bits.Len64(ns) - 1 - subBits // how far the leading bits are shifted out
	return (exp+1)<<subBits + int(ns>>exp)&(1<<subBits-1)
}

// fineUpper returns the largest value of a bucket.
func fineUpper(b int) uint64 {
	if b < 1<<subBits {
		return uint64(b)
	}
	exp := b>>subBits - 1
	return (uint64(1<<subBits+b&(1<<subBits-1))+1)<<exp - 1
}
