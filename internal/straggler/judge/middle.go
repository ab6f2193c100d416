// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"
)

// middle is what is needed of many values to tell the median of all but one of them:
// the three order statistics around their middle.
type middle struct {
	below, at, above float64
	n                int
}

// middleOf finds the middle of the values in time linear in their number. Their order
// changes.
func middleOf(v []float64) middle {
	n := len(v)
	m := middle{n: n}
	switch n {
	case 0:
		return m
	case 1:
		m.below, m.at, m.above = v[0], v[0], v[0]
		return m
	}
	h := n / 2
	m.at = Nth(v, h)
	m.below = slices.Max(v[:h])
	m.above = m.at
	if h+1 < n {
		m.above = slices.Min(v[h+1:])
	}
	return m
}

// median returns the median of all.
func (m middle) median() float64 {
	if m.n%2 == 0 {
		return (m.below + m.at) / 2
	}
	return m.at
}

// others returns the median of all but one value that is x.
func (m middle) others(x float64) float64 {
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

// medianOf returns the median, 0 of nothing. The order of the values changes.
func medianOf(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return middleOf(v).median()
}

// lowMedian returns the median, of an even number the smaller of the two in the middle.
func lowMedian(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return Nth(v, (len(v)-1)/2)
}

// madToSigma makes the median absolute deviation of normal values their standard
// deviation (Iglewicz and Hoaglin 1993), and medianError is the standard error of a
// median in those of a mean.
const (
	madToSigma  = 1.4826
	medianError = 1.2533
	// madWorth is how many values a mean square needs to be as precise as the median
	// absolute deviation of one more: its efficiency for normal values.
	madWorth = 0.37
)

// fewMAD corrects the median absolute deviation of few values, which is too small
// (Croux and Rousseeuw 1992).
var fewMAD = [...]float64{2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}

// spreadOf returns the median and the standard deviation by the median absolute
// deviation. The values are lost.
func spreadOf(v []float64) (mid, sigma float64) {
	mid = medianOf(v)
	for i, x := range v {
		v[i] = math.Abs(x - mid)
	}
	few := 1.0
	switch n := len(v); {
	case n < 2:
	case n < len(fewMAD):
		few = fewMAD[n]
	default:
		few = float64(n) / (float64(n) - 0.8)
	}
	return mid, few * madToSigma * medianOf(v)
}

// Nth moves the value to place k that stands there in order, the smaller before it and
// the larger after it.
func Nth[T float32 | float64](v []T, k int) T {
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
