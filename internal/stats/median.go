// SPDX-License-Identifier: Apache-2.0

package stats

import "slices"

// Float is a floating point type.
type Float interface{ ~float32 | ~float64 }

// Signed is a type that has negative values and fits MedianMidpoint.
type Signed interface {
	~int | ~int32 | ~int64 | ~float64
}

// MedianLow returns the median of sorted values, the smaller one of two in the middle.
func MedianLow[T any](sorted []T) (m T) {
	if n := len(sorted); n > 0 {
		return sorted[(n-1)/2]
	}
	return m
}

// MedianHigh returns the median of sorted values, the larger one of two in the middle.
func MedianHigh[T any](sorted []T) (m T) {
	if n := len(sorted); n > 0 {
		return sorted[n/2]
	}
	return m
}

// Median returns the median of sorted values, the mean of two in the middle.
func Median[T Float](sorted []T) T {
	n := len(sorted)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// MedianOf returns the Median of values in any order, which it leaves as they are.
func MedianOf[T Float](v []T) T { return Median(slices.Sorted(slices.Values(v))) }

// MedianMidpoint returns the median of sorted values; of two in the middle the smaller one and
// half of their distance, which is rounded down. Sums of any values do not overflow.
func MedianMidpoint[T Signed](sorted []T) T {
	n := len(sorted)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	}
	return midpoint(sorted[n/2-1], sorted[n/2])
}

// MedianWithout returns the MedianMidpoint of sorted values without one that equals x. One of
// them must equal x; without it nothing may be left, which gives 0.
func MedianWithout[T Signed](sorted []T, x T) T {
	at := func(i int) T { // the first x is at i or before it where the value at i is no less
		if sorted[i] >= x {
			i++
		}
		return sorted[i]
	}
	n := len(sorted) - 1
	switch {
	case n <= 0:
		return 0
	case n%2 == 1:
		return at(n / 2)
	}
	return midpoint(at(n/2-1), at(n/2))
}

// midpoint returns what is halfway from a to b, which is no less, rounded down.
func midpoint[T Signed](a, b T) T {
	if d := b - a; d >= 0 {
		return a + d/2
	}
	// The distance overflowed, so that the signs differ and the sum does not.
	half := (a + b) / 2
	if half+half > a+b {
		half--
	}
	return half
}
