// SPDX-License-Identifier: Apache-2.0

package gpuclock

import "math"

const (
	// Stamps between these are Unix nanoseconds, from 2015 to 2100; a tick
	// counter of 1 GHz gets there after 45 years.
	epochFrom = 1_420_070_400_000_000_000
	epochTo   = 4_102_444_800_000_000_000
	// nanosecondRate is how near to 1 ns per unit a rate must be known to lie for
	// the unit to be ns.
	nanosecondRate = 1e-3
	// tickRate is how well the rate of ticks must be known before one is
	// converted: a second then errs by at most 100 µs, which the fit mends.
	tickRate = 1e-4
)

// rateScan finds what a clock counts. It holds the rate between bounds that
// narrow with the time since its first bracket.
type rateScan struct {
	unit  Unit
	rate  float64 // ns per unit
	width float64 // relative, of what the rate is known to

	first  sample // tightest of the first bucket
	lo, hi float64
}

type sample struct{ before, start, stop, after uint64 }

func (s *sample) width() uint64 { return s.after - s.before }

// add takes a bracket and reports whether the unit is known.
func (r *rateScan) add(before, start, stop, after uint64) bool {
	if start >= epochFrom && start < epochTo {
		r.unit, r.rate = UnitNanoseconds, 1
		return true
	}
	s := sample{before, start, stop, after}
	if r.first.after == 0 || (after/bucketNS == r.first.after/bucketNS && s.width() < r.first.width()) {
		r.first = s
		r.lo, r.hi = 0, math.Inf(1)
		return false
	}
	i := &r.first
	if s.start <= i.stop || s.before <= i.after {
		return false // not clearly later
	}
	r.lo = max(r.lo, float64(s.before-i.after)/float64(s.start-i.stop))
	r.hi = min(r.hi, float64(s.after-i.before)/float64(s.stop-i.start))
	if r.lo > r.hi {
		*r = rateScan{first: s, hi: math.Inf(1)}
		return false
	}
	return r.settle()
}

func (r *rateScan) settle() bool {
	switch {
	case r.lo >= 1-nanosecondRate && r.hi <= 1+nanosecondRate:
		r.unit, r.rate = UnitNanoseconds, 1
	case r.hi-r.lo <= tickRate*r.lo && (r.hi < 1-nanosecondRate || r.lo > 1+nanosecondRate):
		r.unit, r.rate = UnitTicks, (r.lo+r.hi)/2
		r.width = (r.hi-r.lo)/2/r.lo + maxWanderTicks
	default:
		return false
	}
	return true
}

// maxWanderTicks is how much further than the scan's bounds the rate may move
// while it is used: 10 ppm, a crystal's change over its whole range of temperature.
const maxWanderTicks = 10e-6
