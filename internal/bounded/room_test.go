// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRoom_Bytes_LargestOwnerIsNamed(t *testing.T) {
	var r Room[string]
	assert.Empty(t, r.Largest())
	a, b := r.Enter("a"), r.Enter("b")
	a.Add(10)
	b.Add(7)
	assert.Equal(t, 17, r.Bytes())
	assert.Equal(t, "a", r.Largest())
	b.Add(5)
	assert.Equal(t, "b", r.Largest())
	a.Add(2)
	assert.Equal(t, "a", r.Largest(), "of equals the one heard longest ago")
	a.Hear()
	assert.Equal(t, "b", r.Largest())
	a.Leave()
	assert.Equal(t, 12, r.Bytes())
	assert.Equal(t, 12, b.Bytes())
	assert.Equal(t, 1, r.Len())
}

func TestRoom_FewHearings_LeastRecentlyHeardLeaves(t *testing.T) {
	var r Room[string]
	assert.Empty(t, r.Oldest())
	a, b := r.Enter("a"), r.Enter("b")
	assert.Equal(t, "a", r.Oldest())
	a.Hear()
	assert.Equal(t, "b", r.Oldest())
	b.Leave()
	assert.Equal(t, "a", r.Oldest())
}

// A flood of new owners replaces new owners: those that were heard before it stay.
func TestRoom_FloodOfNewOwners_SettledOwnersStay(t *testing.T) {
	const places = 16
	var r Room[string]
	shares := map[string]*Share[string]{}
	hear := func(name string) {
		if shares[name] == nil {
			for r.Len() >= places {
				oldest := r.Oldest()
				shares[oldest].Leave()
				delete(shares, oldest)
			}
			shares[name] = r.Enter(name)
		}
		shares[name].Hear()
	}
	for range settledAfter {
		for i := range places / 2 {
			hear(fmt.Sprint("settled ", i))
		}
	}
	for i := range 10 * places {
		hear(fmt.Sprint("flood ", i))
	}
	assert.Equal(t, places, r.Len())
	for i := range places / 2 {
		assert.Contains(t, shares, fmt.Sprint("settled ", i))
	}
}

// Owners that are heard no more make room, however often they were heard before: else two new ones
// would replace one another for ever.
func TestRoom_SilentSettledOwners_MakeRoomForNewOnes(t *testing.T) {
	const places = 16
	var r Room[int]
	shares := map[int]*Share[int]{}
	enter := func(i int) {
		if r.Len() >= places {
			oldest := r.Oldest()
			shares[oldest].Leave()
			delete(shares, oldest)
		}
		shares[i] = r.Enter(i)
		shares[i].Hear()
	}
	for i := range places {
		enter(i)
		for range settledAfter {
			shares[i].Hear()
		}
	}
	for i := range 4 {
		enter(100 + i)
	}
	for i := range 4 {
		assert.Contains(t, shares, 100+i)
		assert.NotContains(t, shares, i)
	}
}
