// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Where many communicators have one id, those that have a rank are found, in their order.
func TestManyGroupsOfOneID(t *testing.T) {
	for _, n := range []int64{1, fewGroups, fewGroups + 1, 100} {
		b, all := newGroupsByID(), []*group{}
		for i := range n {
			all = append(all, &group{sorted: []int64{i, i + 1, i + 3}})
			b.add("world", int32(i))
			b.of(all, "world", 0) // an index of fewer is made anew
		}
		for rank := range n + 4 {
			var got, want []int32
			for _, i := range b.of(all, "world", rank) {
				if all[i].has(rank) {
					got = append(got, i)
				}
			}
			for _, i := range []int64{rank - 3, rank - 1, rank} {
				if i >= 0 && i < n {
					want = append(want, int32(i))
				}
			}
			assert.Equal(t, want, got, "rank %d of %d", rank, n)
			assert.True(t, n <= fewGroups || slices.Equal(got, b.of(all, "world", rank)), "those alone that have it")
		}
		assert.Empty(t, b.of(all, "other", 0))
	}
}
