// SPDX-License-Identifier: Apache-2.0

package causality

import "slices"

// rankSet is the ranks of a meeting: a list while they are few, beyond a bit for each. One rank of a
// high number must not take room for all below it.
type rankSet struct {
	few  []int32
	bits []uint64
}

// fewRanks is how many are listed.
const fewRanks = 64

func (r *rankSet) has(rank int64) bool {
	if rank < 0 || rank >= maxRank {
		return false
	}
	if r.bits == nil {
		return slices.Contains(r.few, int32(rank))
	}
	return rank>>6 < int64(len(r.bits)) && r.bits[rank>>6]>>(rank&63)&1 != 0
}

func (r *rankSet) add(rank int64) {
	if rank < 0 || rank >= maxRank || r.has(rank) {
		return
	}
	if r.bits == nil && len(r.few) < fewRanks {
		r.few = append(r.few, int32(rank))
		return
	}
	for _, one := range r.few {
		r.set(int64(one))
	}
	r.few = nil
	r.set(rank)
}

func (r *rankSet) set(rank int64) {
	if more := rank>>6 + 1 - int64(len(r.bits)); more > 0 {
		r.bits = append(r.bits, make([]uint64, more)...)
	}
	r.bits[rank>>6] |= 1 << (rank & 63)
}

func (r *rankSet) bytes() int64 { return 4*int64(cap(r.few)) + 8*int64(cap(r.bits)) }
