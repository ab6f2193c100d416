// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math/bits"
	"math/rand/v2"
)

// meetTable finds the gatherings of a step by their keys. It is filled once for each
// communication of a step, and emptied after it, which it does in a third of a map's time.
type meetTable struct {
	slots []int32 // 1 + the place of a key, 0 for none; as many as a power of two
	keys  []meetKey
	first []*gathering // of each key
	seed  [3]uint64    // so that nobody can choose keys that fall on one another
}

// reset empties the table and makes room for so many keys.
func (t *meetTable) reset(keys int) {
	if t.seed[0] == 0 {
		for i := range t.seed {
			t.seed[i] = rand.Uint64() | 1 //nolint:gosec // who guesses it makes a step slow, no more
		}
	}
	size := slotsFor(keys)
	if size > len(t.slots) || size < len(t.slots)/roomy {
		t.slots = make([]int32, size)
	} else {
		clear(t.slots)
	}
	clear(t.first)
	t.keys, t.first = t.keys[:0], t.first[:0]
}

// at returns the place of a key's first gathering, which is nil where it is new. It is
// good until the next call.
func (t *meetTable) at(k meetKey) **gathering {
	mask := uint64(len(t.slots) - 1)
	i := t.hash(k) & mask
	for ; t.slots[i] != 0; i = (i + 1) & mask {
		if n := t.slots[i] - 1; t.keys[n] == k {
			return &t.first[n]
		}
	}
	t.keys, t.first = append(t.keys, k), append(t.first, nil)
	t.slots[i] = int32(len(t.keys))
	return &t.first[len(t.first)-1]
}

// hash multiplies the parts of a key with each other, each with a seed of its own: which keys
// fall on one another depends on the seeds, which it does not where these are only added.
func (t *meetTable) hash(k meetKey) uint64 {
	h := folded(uint64(uint32(k.src))<<32|uint64(uint32(k.dst))^t.seed[0], uint64(k.number)^t.seed[1])
	return folded(h^uint64(k.meet), t.seed[2])
}

// folded returns both halves of a product in one.
func folded(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
