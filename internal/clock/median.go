// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"slices"
)

type weighted struct{ value, weight float64 }

func weightedMedian(w []weighted) float64 {
	slices.SortFunc(w, func(a, b weighted) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
	var total float64
	for _, x := range w {
		total += x.weight
	}
	var sum float64
	for i, x := range w {
		sum += x.weight
		switch {
		case sum > total/2:
			return x.value
		case sum == total/2 && i+1 < len(w):
			return (x.value + w[i+1].value) / 2
		}
	}
	return w[len(w)-1].value
}

// medianOf sorts s and returns its median.
func medianOf(s []float64) float64 {
	slices.Sort(s)
	n := len(s)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}
