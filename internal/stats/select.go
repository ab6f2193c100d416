// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"cmp"
	"slices"
)

// Select moves the value to place k that stands there in order, the smaller before it and the
// larger after it, and returns it. Place k must be one of v.
func Select[T cmp.Ordered](v []T, k int) T {
	lo, hi := 0, len(v)-1
	for lo < hi {
		mid := lo + (hi-lo)/2
		if v[mid] < v[lo] {
			v[mid], v[lo] = v[lo], v[mid]
		}
		if v[hi] < v[lo] {
			v[hi], v[lo] = v[lo], v[hi]
		}
		if v[hi] < v[mid] {
			v[hi], v[mid] = v[mid], v[hi]
		}
		pivot := v[mid]
		i, j := lo, hi
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for v[j] > pivot {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return v[k]
		}
	}
	return v[k]
}

// SelectMedian returns the median, of an even number the mean of the two in the middle. The
// order of the values changes.
func SelectMedian[T Float](v []T) T {
	n := len(v)
	if n == 0 {
		return 0
	}
	at := Select(v, n/2)
	if n%2 == 1 {
		return at
	}
	return (slices.Max(v[:n/2]) + at) / 2
}

// SelectMedianLow returns the median, of an even number the smaller one of the two in the
// middle. The order of the values changes.
func SelectMedianLow[T cmp.Ordered](v []T) (m T) {
	if len(v) == 0 {
		return m
	}
	return Select(v, (len(v)-1)/2)
}

// SelectMedianHigh returns the median, of an even number the larger one of the two in the
// middle. The order of the values changes.
func SelectMedianHigh[T cmp.Ordered](v []T) (m T) {
	if len(v) == 0 {
		return m
	}
	return Select(v, len(v)/2)
}

// SelectMedianMidpoint returns the MedianMidpoint of values in any order. Their order changes.
func SelectMedianMidpoint[T Signed](v []T) T {
	n := len(v)
	if n == 0 {
		return 0
	}
	at := Select(v, n/2)
	if n%2 == 1 {
		return at
	}
	return midpoint(slices.Max(v[:n/2]), at)
}

// Middle is what is needed of many values to find the median of all but any one of them: the
// three order statistics around their middle.
type Middle struct {
	below, at, above float64
	n                int
}

// SelectMiddle finds the middle of the values. Their order changes.
func SelectMiddle(v []float64) Middle {
	n := len(v)
	m := Middle{n: n}
	switch n {
	case 0:
		return m
	case 1:
		m.below, m.at, m.above = v[0], v[0], v[0]
		return m
	}
	h := n / 2
	m.at = Select(v, h)
	m.below = slices.Max(v[:h])
	m.above = m.at
	if h+1 < n {
		m.above = slices.Min(v[h+1:])
	}
	return m
}

// Len returns how many values there were.
func (m Middle) Len() int { return m.n }

// Median returns the median of all, as SelectMedian does.
func (m Middle) Median() float64 {
	if m.n > 0 && m.n%2 == 0 {
		return (m.below + m.at) / 2
	}
	return m.at
}

// Without returns the median of all but one value that equals x, as Median does; of one value
// it returns that one.
func (m Middle) Without(x float64) float64 {
	switch {
	case m.n <= 1:
		return m.at
	case m.n%2 == 0: // of an odd number of others, the one in the middle
		if x < m.at {
			return m.at
		}
		return m.below
	case x < m.at:
		return (m.at + m.above) / 2
	case x > m.at:
		return (m.below + m.at) / 2
	}
	return (m.below + m.above) / 2
}
