// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

func TestRoom_Bytes_OwnerLargerThanAllNewerOnesIsNamed(t *testing.T) {
	var r Room[string]
	assert.Empty(t, r.Largest())
	a, b := r.Enter("a"), r.Enter("b")
	assert.Equal(t, "b", r.Largest(), "the newest, where none holds anything")
	a.Add(10)
	b.Add(7)
	assert.Equal(t, 17, r.Bytes())
	assert.Equal(t, "a", r.Largest())
	c := r.Enter("c")
	c.Add(3)
	assert.Equal(t, "b", r.Largest(), "a holds no more than b and c")
	b.Hear()
	assert.Equal(t, "b", r.Largest(), "whoever was heard last")
	assert.Equal(t, "c", r.LargestOf(func(owner string) bool { return owner != "b" }))
	c.Add(5)
	assert.Equal(t, "c", r.Largest())
	a.Add(6)
	assert.Equal(t, "a", r.Largest())
	a.Leave()
	assert.Equal(t, "c", r.Largest())
	assert.Equal(t, 15, r.Bytes())
	assert.Equal(t, 2, r.Len())
}

// Neither many new owners, each of them small, nor one that grows push out one that was there before.
func TestRoom_FloodOfBytes_OldOwnersStay(t *testing.T) {
	const limit = 1000
	var r Room[string]
	shares := map[string]*Share[string]{}
	add := func(owner string, bytes int) {
		if shares[owner] == nil {
			shares[owner] = r.Enter(owner)
		}
		shares[owner].Hear()
		shares[owner].Add(bytes)
		for r.Bytes() > limit {
			leaver := r.Largest()
			shares[leaver].Leave()
			delete(shares, leaver)
		}
	}
	add("old", 400)
	for i := range 100 {
		add(fmt.Sprint("flood ", i%20), 10)
		add("old", i%2)
		require.Contains(t, shares, "old")
	}
	add("late", 10)
	for range 200 {
		add("one flood", 10)
		require.Contains(t, shares, "old")
		require.Contains(t, shares, "late")
	}
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

// Bytes say nothing of who holds a count: an owner without any of it is not named.
func TestRoom_LargestBy_NamesByTheCountThatIsShort(t *testing.T) {
	var r Room[string]
	count := map[string]int{}
	by := func(owner string) int { return count[owner] }
	assert.Empty(t, r.LargestBy(by))
	large, hostile := r.Enter("large"), r.Enter("hostile")
	large.Add(1000)
	hostile.Add(1)
	assert.Equal(t, "hostile", r.LargestBy(by), "the newest, where none holds any")
	r.Enter("new")
	count["hostile"] = 5
	assert.Equal(t, "large", r.Largest())
	assert.Equal(t, "hostile", r.LargestBy(by))
	count["new"] = 5
	assert.Equal(t, "new", r.LargestBy(by), "hostile holds no more than it")
}

// An owner that holds many places gives one up; where none does, the one that was heard longest ago.
func TestRoom_Fullest_CrowdOrOldest(t *testing.T) {
	var r Room[string]
	count := map[string]int{}
	by := func(owner string) int { return count[owner] }
	assert.Empty(t, r.Fullest(32, by))
	r.Enter("none")
	old, crowd, late := r.Enter("old"), r.Enter("crowd"), r.Enter("late")
	count["old"], count["crowd"], count["late"] = 1, 3, 2
	assert.Equal(t, "crowd", r.Fullest(32, by), "3 of 32 are more than a sixteenth, and than what is newer")
	assert.Equal(t, "crowd", r.Fullest(47, by))
	assert.Equal(t, "old", r.Fullest(48, by), "of those that hold any the one that was heard longest ago")
	old.Hear()
	late.Hear()
	assert.Equal(t, "crowd", r.Fullest(48, by))
	crowd.Hear()
	assert.Equal(t, "old", r.Fullest(48, by))
}

// An owner of more than a quarter of all places gives one up, whoever entered first; of equals the newer one.
func TestRoom_Fullest_OwnerOfMoreThanAQuarter(t *testing.T) {
	var r Room[string]
	count := map[string]int{"hoarder": 9, "small": 1}
	by := func(owner string) int { return count[owner] }
	hoarder := r.Enter("hoarder")
	r.Enter("small")
	for i := range 20 {
		name := fmt.Sprint("new ", i)
		r.Enter(name)
		count[name] = 1
	}
	hoarder.Hear()
	assert.Equal(t, "hoarder", r.Fullest(32, by))
	r.Enter("late")
	count["late"] = 9
	assert.Equal(t, "late", r.Fullest(32, by))
	count["late"], count["hoarder"] = 1, 8
	assert.Equal(t, "small", r.Fullest(32, by), "8 of 32 are a quarter, and newer owners hold more together")
}

// randomRoom returns a room of 1 to 20 owners, and the count of each in the order in which they entered.
func randomRoom(rng *rand.Rand) (r *Room[int], counts []int) {
	r = &Room[int]{}
	for i := range 1 + rng.IntN(20) {
		s := r.Enter(i)
		s.Add(rng.IntN(1000))
		if rng.IntN(2) == 0 {
			s.Hear()
		}
		counts = append(counts, rng.IntN(4)*rng.IntN(1<<rng.IntN(8)))
	}
	return r, counts
}

func TestRoom_LargestBy_RandomOwners_Laws(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range tier.N(t, 5_000, 200_000) {
		r, counts := randomRoom(rng)
		total := 0
		for _, n := range counts {
			total += n
		}
		named := r.LargestBy(func(i int) int { return counts[i] })
		if total == 0 {
			require.Equal(t, len(counts)-1, named, "%v", counts)
			continue
		}
		after := total
		for i, n := range counts {
			if after -= n; n > after {
				require.Equal(t, i, named, "the first that holds more than all newer ones: %v", counts)
				break
			}
		}
		require.Positive(t, counts[named], "%v", counts)
	}
}

// Whatever newer owners ask for, those that were there before and hold half of a limit together stay.
func TestRoom_LargestBy_FloodOfNewOwners_LeavesOlderOnes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range tier.N(t, 100, 5_000) {
		r, counts := randomRoom(rng)
		old, held := len(counts), 0
		shares := map[int]*Share[int]{}
		for at := r.entered.Front(); at != nil; at = at.Next() {
			s := at.Value.(*Share[int])
			shares[s.Owner] = s
			held += counts[s.Owner]
		}
		limit := 2*held + 1
		for range 2*limit + 50 {
			asks := old + rng.IntN(len(counts)-old+1)
			if shares[asks] == nil {
				asks = len(counts)
				counts = append(counts, 0)
				shares[asks] = r.Enter(asks)
			}
			counts[asks]++
			for held++; held > limit; {
				leaver := r.LargestBy(func(i int) int { return counts[i] })
				require.GreaterOrEqual(t, leaver, old, "%v", counts)
				held -= counts[leaver]
				counts[leaver] = 0
				shares[leaver].Leave()
				delete(shares, leaver)
			}
		}
	}
}
