// SPDX-License-Identifier: Apache-2.0

package stats

import "slices"

// Weighted is a value that counts with a weight of 0 or more.
type Weighted struct{ Value, Weight float64 }

// WeightedMedian returns the value up to which the smaller ones and itself have more than half
// of the weight; where some have just half, the mean of the last of them and the next value.
// It sorts the values; of none it returns 0.
func WeightedMedian(v []Weighted) float64 {
	sortWeighted(v)
	var total float64
	for _, x := range v {
		total += x.Weight
	}
	var sum float64
	for i, x := range v {
		sum += x.Weight
		switch {
		case sum > total/2:
			return x.Value
		case sum == total/2 && i+1 < len(v):
			return (x.Value + v[i+1].Value) / 2
		}
	}
	if len(v) == 0 {
		return 0
	}
	return v[len(v)-1].Value
}

// WeightedMedianLow returns the value up to which the smaller ones and itself have half of the
// weight or more. It sorts the values; of none it returns 0.
func WeightedMedianLow(v []Weighted) float64 {
	sortWeighted(v)
	half := 0.0
	for _, x := range v {
		half += x.Weight / 2
	}
	for _, x := range v {
		if half -= x.Weight; half <= 0 {
			return x.Value
		}
	}
	return 0
}

func sortWeighted(v []Weighted) {
	slices.SortFunc(v, func(a, b Weighted) int {
		switch { // cmp.Compare would look for NaN as well
		case a.Value < b.Value:
			return -1
		case a.Value > b.Value:
			return 1
		}
		return 0
	})
}
