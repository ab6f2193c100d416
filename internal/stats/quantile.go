// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// QuantileLow returns the smallest of the sorted values that a share q of all, from 0 to 1, does
// not exceed: type 1 of Hyndman and Fan, the inverse of the empirical distribution.
func QuantileLow[T any](sorted []T, q float64) T {
	return place(sorted, int(math.Ceil(q*float64(len(sorted))))-1)
}

// QuantileHigh returns the largest of the sorted values below which no more than a share q of all
// is, from 0 to 1. It differs from QuantileLow where q times their number is a whole number.
func QuantileHigh[T any](sorted []T, q float64) T {
	return place(sorted, int(q*float64(len(sorted))))
}

// QuantileNearest returns that of the sorted values which is nearest to the place q*(n-1),
// counted from 0, the higher one of two: type 7 of Hyndman and Fan, rounded instead of
// interpolated. Share q is from 0 to 1.
func QuantileNearest[T any](sorted []T, q float64) T {
	return place(sorted, int(q*float64(len(sorted)-1)+0.5))
}

// place returns the i-th value, or the nearest one that there is.
func place[T any](sorted []T, i int) (v T) {
	if len(sorted) == 0 {
		return v
	}
	return sorted[min(max(i, 0), len(sorted)-1)]
}
