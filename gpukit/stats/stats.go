// SPDX-License-Identifier: Apache-2.0

// Package stats holds the statistics that parts of the GPU kit share.
package stats

import (
	"math"
	"slices"
)

// Median returns the median of values, which it leaves as they are; 0 of none.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// student are the 97.5 % quantiles of Student's t, by degrees of freedom from 1.
var student = [...]float64{
	12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
	2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
}

// Interval returns the mean of values and the half width of its 95 % interval, by
// Student's t. It needs two values or more; with fewer, the half width is 0.
func Interval(values []float64) (mean, half float64) {
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
