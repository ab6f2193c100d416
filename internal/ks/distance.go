// SPDX-License-Identifier: Apache-2.0

package ks

// distance returns the largest difference of two rows, which is known to be at
// least floor. A cell of x or y reaches its highest bit only where the difference
// exceeds the largest so far, which is rare: the loop runs without a comparison of
// single cells.
func distance(a, b []uint64, floor uint64) uint64 {
	b = b[:len(a)]
	top := floor
	room := roomAbove(top)
	for len(a) >= 4 && len(b) >= 4 {
		p0, p1, p2, p3 := a[0], a[1], a[2], a[3]
		q0, q1, q2, q3 := b[0], b[1], b[2], b[3]
		more := (p0 + room - q0) | (q0 + room - p0) | (p1 + room - q1) | (q1 + room - p1) |
			(p2 + room - q2) | (q2 + room - p2) | (p3 + room - q3) | (q3 + room - p3)
		if more&carry != 0 {
			top = max(top, largest(p0, q0), largest(p1, q1), largest(p2, q2), largest(p3, q3))
			room = roomAbove(top)
		}
		a, b = a[4:], b[4:]
	}
	for i, p := range a {
		top = max(top, largest(p, b[i]))
	}
	return top
}

// within reports whether no cells of two rows differ by more than most.
func within(a, b []uint64, most uint64) bool {
	b = b[:len(a)]
	room := roomAbove(most)
	for i, p := range a {
		if q := b[i]; ((p+room-q)|(q+room-p))&carry != 0 {
			return false
		}
	}
	return true
}

// roomAbove returns what, added to a difference of cells, sets the highest bit of those
// that are larger than top.
func roomAbove(top uint64) uint64 { return each * (1<<(cellBits-1) - 1 - top) }

// largest returns the largest difference of the cells of two words.
func largest(p, q uint64) uint64 {
	d0, d1 := p&Full, p>>cellBits&Full
	d2, d3 := p>>(2*cellBits)&Full, p>>(3*cellBits)
	e0, e1 := q&Full, q>>cellBits&Full
	e2, e3 := q>>(2*cellBits)&Full, q>>(3*cellBits)
	return max(max(d0, e0)-min(d0, e0), max(d1, e1)-min(d1, e1), max(d2, e2)-min(d2, e2), max(d3, e3)-min(d3, e3))
}
