// SPDX-License-Identifier: Apache-2.0

package straggler

import "math/rand/v2"

// hashNumbers numbers distinct hashes in the order in which they come, in a third of a map's
// time. It is emptied after each step.
type hashNumbers struct {
	slots []int32 // 1 + the number of a hash, 0 for none; as many as a power of two
	of    []uint64
	seed  [2]uint64 // so that nobody can choose hashes that fall on one another
}

// reset empties it. It keeps room for as many as there were, or some less.
func (d *hashNumbers) reset() {
	if d.seed[0] == 0 {
		for i := range d.seed {
			d.seed[i] = rand.Uint64() | 1 //nolint:gosec // who guesses it makes a step slow, no more
		}
	}
	if size := slotsFor(len(d.of)); size > len(d.slots) || size < len(d.slots)/roomy {
		d.slots = make([]int32, size)
	} else {
		clear(d.slots)
	}
	d.of = d.of[:0]
}

// number returns the number of a hash.
func (d *hashNumbers) number(h uint64) int32 {
	at := d.slot(h)
	if *at == 0 {
		if 2*len(d.of) >= len(d.slots) {
			d.slots = make([]int32, 2*len(d.slots))
			for i, old := range d.of {
				*d.slot(old) = int32(i) + 1
			}
			at = d.slot(h)
		}
		d.of = append(d.of, h)
		*at = int32(len(d.of))
	}
	return *at - 1
}

// slot returns that of a hash, or the one that it is to have.
func (d *hashNumbers) slot(h uint64) *int32 {
	mask := uint64(len(d.slots) - 1)
	i := folded(h^d.seed[0], d.seed[1]) & mask
	for d.slots[i] != 0 && d.of[d.slots[i]-1] != h {
		i = (i + 1) & mask
	}
	return &d.slots[i]
}

// slotsFor returns how many slots keep so many keys apart.
func slotsFor(keys int) int {
	size := 16
	for size < 2*keys {
		size *= 2
	}
	return size
}
