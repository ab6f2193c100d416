// SPDX-License-Identifier: Apache-2.0

package clockmap

import "math"

// exactFloat: integers up to here are exact as float64.
const exactFloat = 1 << 53

// secondsDown returns the largest s that is surely no more than ns.
func secondsDown(ns int64) float64 { return outwards(ns, math.Inf(-1)) }

// secondsUp returns the smallest s that is surely no less than ns.
func secondsUp(ns int64) float64 { return outwards(ns, math.Inf(1)) }

// outwards converts, and moves towards a side only where the rounding may have
// gone to the other one.
func outwards(ns int64, side float64) float64 {
	s := float64(ns) / 1e9
	if -exactFloat <= ns && ns <= exactFloat {
		// The sign of s*1e9 - ns is exact in a fused operation.
		if wrong := math.FMA(s, 1e9, -float64(ns)); wrong != 0 && math.Signbit(wrong) == (side > 0) {
			s = math.Nextafter(s, side)
		}
		return s
	}
	// Two roundings of half a unit each are at most two units together.
	return math.Nextafter(math.Nextafter(s, side), side)
}

// nanosDown returns ns that are surely no more than s; false where they do not fit.
func nanosDown(s float64) (int64, bool) {
	return fit(math.Floor(math.Nextafter(s*1e9, math.Inf(-1))))
}

// nanosUp returns ns that are surely no less than s; false where they do not fit.
func nanosUp(s float64) (int64, bool) {
	return fit(math.Ceil(math.Nextafter(s*1e9, math.Inf(1))))
}

// nanos returns the nearest ns; false where they do not fit.
func nanos(s float64) (int64, bool) { return fit(math.Round(s * 1e9)) }

// fit leaves out the values that mean "unbounded", and NaN.
func fit(ns float64) (int64, bool) {
	const limit = 1 << 63
	if !(ns > -limit && ns < limit) {
		return 0, false
	}
	return int64(ns), true
}
