// SPDX-License-Identifier: Apache-2.0

package ks

import "sort"

// Interval is where a score lies for certain.
type Interval struct{ Lower, Upper float64 }

// Mid is the middle of the interval, which is off by half its width at most.
func (i Interval) Mid() float64 { return (i.Lower + i.Upper) / 2 }

// Bounds returns where each worker's score lies, from the distances to few pivots: in
// time proportional to the cells of the table.
func (t *Table) Bounds() []Interval {
	c := t.gather()
	return c.bounds()
}

func (c *crowd) bounds() []Interval {
	out := make([]Interval, c.Workers())
	lower := c.lower()
	for i := range c.rows() {
		b := Interval{Lower: c.mean(lower[i]), Upper: c.mean(c.upper(i, 0))}
		for _, w := range c.workers[i] {
			out[w] = b
		}
	}
	return out
}

// upper returns what the distances of row i from all workers of the rows first and after
// cannot exceed: its own from the pivot of each, and theirs from it.
func (c *crowd) upper(i, first int) uint64 {
	sum := c.rest[first]
	far := c.from(i)
	for p, w := range c.weights(first) {
		sum += w * far[p]
	}
	if first <= i { // the row itself is no other
		sum -= 2 * c.weighs[i] * c.own[i]
	}
	return sum
}

// lower returns for each row a sum that its distances from all workers reach: of any two
// the difference of their distances from the pivot of the second.
func (c *crowd) lower() []uint64 {
	out := make([]uint64, c.rows())
	for p := range c.pivots {
		var d []uint64         // of the rows of this pivot, falling
		sums := []uint64{0}    // of weight times d, of those before
		weights := []uint64{0} // of those before
		for b := range c.rows() {
			if int(c.of[b]) == p {
				d = append(d, c.own[b])
				sums = append(sums, sums[len(sums)-1]+c.weighs[b]*c.own[b])
				weights = append(weights, weights[len(weights)-1]+c.weighs[b])
			}
		}
		for i := range out {
			far := c.from(i)[p]
			k := sort.Search(len(d), func(k int) bool { return d[k] <= far })
			above := sums[k] - weights[k]*far
			below := (weights[len(d)]-weights[k])*far - (sums[len(d)] - sums[k])
			out[i] += above + below
		}
	}
	return out
}
