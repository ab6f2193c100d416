// SPDX-License-Identifier: Apache-2.0

package ks

import "slices"

// A step is cut into spans of windows. What a row reaches in a span, the least and the
// most by which it differs from a pivot there, says how far two rows can be apart in it:
// the most of the one less the least of the other. For any allowance c
//
//	D(A,B) <= c + sum over spans of what A and B can be apart there beyond c
//
// and each of these terms depends on one number of A and one of B. Summed over all B it
// is a function of A's number alone, which one pass over the table gives for all A.

// span adds what the rows can be apart beyond the allowance in a span of words.
func (b *bracket) span(pivot int, open []int, first, end int) {
	from := b.pivots[pivot][first:end]
	for i, row := range b.near[pivot].rows {
		low, high := reach(b.at(row)[first:end], from)
		b.above.add(low, b.near[pivot].weights[i])
		b.below.add(-high, b.near[pivot].weights[i])
	}
	b.above.sum()
	b.below.sum()
	for j, k := range open {
		low, high := reach(b.at(b.rows[k])[first:end], from)
		b.sums[j] += b.above.at(high-b.allowed[j]) + b.below.at(-low-b.allowed[j])
	}
	b.above.clear()
	b.below.clear()
}

// windows adds what the rows can be apart beyond the allowance in each window.
func (b *bracket) windows(pivot int, open []int) {
	near := &b.near[pivot]
	one := slices.Min(b.allowed) == slices.Max(b.allowed)
	for word := range b.words {
		b.column, b.mine = b.column[:0], b.mine[:0]
		for _, row := range near.rows {
			b.column = append(b.column, b.at(row)[word])
		}
		for _, k := range open {
			b.mine = append(b.mine, b.at(b.rows[k])[word])
		}
		for shift := 0; shift < 64; shift += cellBits {
			for i, cells := range b.column {
				b.above.add(int(cells>>shift&Full), near.weights[i])
			}
			b.above.sum()
			if one {
				b.looked(shift)
			} else {
				for j, cells := range b.mine {
					b.sums[j] += b.above.beyond(int(cells>>shift&Full), b.allowed[j])
				}
			}
			b.above.clear()
		}
	}
}

// looked adds a window where one allowance holds for all: what each number comes to is
// computed once, and looked up.
func (b *bracket) looked(shift int) {
	low, high := b.above.within()
	allowed := b.allowed[0]
	b.table = b.table[:0]
	for v := low; v <= high; v++ {
		b.table = append(b.table, b.above.beyond(v, allowed))
	}
	for j, cells := range b.mine {
		v := int(cells >> shift & Full)
		if at := v - low; at >= 0 && at < len(b.table) {
			b.sums[j] += b.table[at]
		} else {
			b.sums[j] += b.above.beyond(v, allowed)
		}
	}
}

// reach returns the least and the most by which the words of a row differ from those of
// a pivot.
func reach(row, pivot []uint64) (low, high int) {
	low, high = Full, -Full
	pivot = pivot[:len(row)]
	for i, p := range row {
		q := pivot[i]
		d0, d1 := int(p&Full)-int(q&Full), int(p>>cellBits&Full)-int(q>>cellBits&Full)
		d2, d3 := int(p>>(2*cellBits)&Full)-int(q>>(2*cellBits)&Full), int(p>>(3*cellBits))-int(q>>(3*cellBits))
		low, high = min(low, d0, d1, d2, d3), max(high, d0, d1, d2, d3)
	}
	return low, high
}
