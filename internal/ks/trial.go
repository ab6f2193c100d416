// SPDX-License-Identifier: Apache-2.0

package ks

import "slices"

// What a cut is worth, and with which allowance, is tried on some rows in question
// against some of all rows. Trials are off at times, which costs time: the bounds
// themselves hold with any cut and allowance.

// spares are what is tried. The more spans are summed the less is needed for the sum to
// be small.
var spares = []float64{0.2, 0.4, 0.6, 0.8, 1}

const (
	tried   = 16  // rows in question, about
	against = 256 // and rows
)

// try returns with which spare a cut leaves open the fewest of the open rows, and what
// part of them it closes, going by some.
func (b *bracket) try(open []int, words int) (spare, part float64) {
	var rows []int // each as often as there are spares
	for k := 0; k < len(open); k += (len(open) + tried - 1) / tried {
		for range spares {
			rows = append(rows, b.rows[open[k]])
		}
	}
	some := b.bracket(rows, (b.crowd.rows()+against-1)/against, 0)
	some.least = uint64(float64(b.least) * float64(weightOf(some.near)) / float64(weightOf(b.near)))
	which, left := upTo(len(rows)), make([]int, len(spares))
	for k := range which {
		some.spare[k] = spares[k%len(spares)]
	}
	some.open(which)
	for _, k := range some.cut(which, words) {
		left[k%len(spares)]++
	}
	best := slices.Index(left, slices.Min(left))
	all := float64(len(rows) / len(spares))
	return spares[best], 1 - float64(left[best])/all
}

func weightOf(near []flock) (sum uint64) {
	for i := range near {
		sum += near[i].weight
	}
	return sum
}
