// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// growing asserts that eight times the operations take hardly more than that many times
// the looks at others and the memory: what is sought for each must not be sought among all.
func growing(t *testing.T, of func(n int) *Step) {
	t.Helper()
	work := func(n int) (looks, bytes float64) {
		g := Build(of(n), Options{Alike: func(Place) Place { return gemm }})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.NotEmpty(t, g.Walk().Path)
		runtime.ReadMemStats(&after)
		return float64(g.typ.looked), float64(after.TotalAlloc - before.TotalAlloc)
	}
	looks, bytes := work(256)
	manyLooks, manyBytes := work(8 * 256)
	require.Positive(t, looks)
	assert.LessOrEqual(t, manyLooks, 10*looks)
	assert.LessOrEqual(t, manyBytes, 16*bytes)
}

// Where ends are inferred, no two meetings are alike.
func TestWorkGrowsWithMeetingsOfAClassEach(t *testing.T) {
	growing(t, func(n int) *Step {
		s := &Step{Ranks: []Rank{{Rank: 0, Stage: -1}, {Rank: 1, Stage: -1}}}
		for r := range s.Ranks {
			rank := &s.Ranks[r]
			rank.End = int64(n) * 1000
			for i := range int64(n) {
				late := i % 2 * int64(r) * 100
				rank.Ops = append(rank.Ops, Op{Start: i*1000 + late, End: i*1000 + 900, Place: reduce, Seq: uint32(i), Micro: -1, Kind: Comm})
			}
		}
		for i := range n {
			s.Meetings = append(s.Meetings, Meeting{Parties: []Party{{0, int32(i)}, {1, int32(i)}}, Rule: All, Root: -1, Class: uint64(i)})
		}
		return s
	})
}

// Every rank runs a program of its own, in a stage of its own.
func TestWorkGrowsWithRanksOfAStageEach(t *testing.T) {
	growing(t, func(n int) *Step {
		s := &Step{}
		for r := range n {
			s.Ranks = append(s.Ranks, Rank{Rank: int64(r), Role: uint64(r), Stage: int32(r), End: 4000, Ops: []Op{
				{Start: 0, End: 1900 + int64(r%7), Place: gemm, Micro: -1, Kind: Compute},
				{Start: 2000, End: 3900, Place: norm, Micro: -1, Kind: Compute},
			}})
		}
		return s
	})
}

// A rank's peers elsewhere are all others that were in the place, each with its median.
func TestElsewhereIsTheMedianOfTheOtherRanks(t *testing.T) {
	h := newHand(4, 100)
	for r := range h.Ranks {
		h.Ranks[r].Role = uint64(r)
	}
	h.op(0, Compute, gemm, 0, 50)
	h.op(1, Compute, gemm, 0, 2)
	h.op(1, Compute, gemm, 2, 6)
	h.op(1, Compute, gemm, 6, 7)
	h.op(2, Compute, gemm, 0, 8)
	h.op(3, Compute, norm, 0, 9)
	g := h.build()
	typical := func(rank int) (float64, bool) {
		v, ok := g.typical(g.first[rank], duration)
		return float64(v) / float64(at(1)-at(0)), ok
	}
	v, ok := typical(0)
	require.True(t, ok)
	assert.InDelta(t, 5, v, tiny, "of 2, the median of rank 1, and 8")
	v, ok = typical(2)
	require.True(t, ok)
	assert.InDelta(t, 26, v, tiny, "of 50 and 2")
	_, ok = typical(3)
	assert.False(t, ok, "nobody else did it")
}

// Whoever has a root waits for that one alone.
func TestWorkGrowsWithMembersOfARoot(t *testing.T) {
	looks := func(n int) int {
		s := &Step{Meetings: []Meeting{{Rule: Root, Root: 0}}}
		for r := range n {
			s.Ranks = append(s.Ranks, Rank{Rank: int64(r), Stage: -1, End: 2000, Ops: []Op{{Start: int64(r % 7), End: 1900, Place: reduce, Micro: -1, Kind: Comm}}})
			s.Meetings[0].Parties = append(s.Meetings[0].Parties, Party{Rank: int32(r)})
		}
		g := Build(s, Options{})
		require.Len(t, g.planned().order, 2*n+n-1)
		return g.room.byRank.looked
	}
	few := looks(256)
	require.Positive(t, few)
	assert.LessOrEqual(t, looks(8*256), 10*few)
}
