// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"slices"
)

const (
	// MADToSigma makes the median absolute deviation of normal values their standard
	// deviation (Iglewicz and Hoaglin 1993).
	MADToSigma = 1.4826
	// MedianError is the standard error of the median of normal values in those of their mean.
	MedianError = 1.2533
)

// MAD returns the median of the values, which it leaves as they are, and the median of their
// absolute deviations from it.
func MAD(v []float64) (mid, mad float64) {
	sorted := slices.Sorted(slices.Values(v))
	mid = Median(sorted)
	for i, x := range sorted {
		sorted[i] = math.Abs(x - mid)
	}
	slices.Sort(sorted)
	return mid, Median(sorted)
}

// Spread returns the median and the standard deviation by the median absolute deviation, which
// is corrected for few values. The values are lost.
func Spread(v []float64) (mid, sigma float64) {
	mid = SelectMedian(v)
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
	return mid, few * MADToSigma * SelectMedian(v)
}

// fewMAD corrects the median absolute deviation of few values, which is too small
// (Croux and Rousseeuw 1992).
var fewMAD = [...]float64{2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}

// student are the 97.5 % quantiles of Student's t, by degrees of freedom from 1.
var student = [...]float64{
	12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
	2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
}

// MeanInterval returns the mean of values and the half width of its 95 % interval, by Student's
// t. It needs two values or more; with fewer, the half width is 0.
func MeanInterval(values []float64) (mean, half float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	if len(values) < 2 {
		return mean, 0
	}
	square := 0.0
	for _, v := range values {
		square += (v - mean) * (v - mean)
	}
	t := student[min(len(values)-1, len(student))-1]
	return mean, t * math.Sqrt(square/(n-1)/n)
}
