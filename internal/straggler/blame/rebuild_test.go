// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A graph that is built in the room of another has nothing of it.
func TestRebuiltGraphs(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	g := &Graph{}
	for range 300 {
		data := make([]byte, 64+rng.IntN(4000))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		s := randomStep(data, rng.IntN(9), rng.IntN(17))
		opt := Options{}
		if rng.IntN(10) == 0 {
			opt.MaxOps = 1
		}
		want := Build(s, opt)
		g.Rebuild(s, opt)
		require.Equal(t, want.Refused, g.Refused)
		walk := want.Walk()
		require.Equal(t, walk, g.Walk())
		for i := range walk.Causes {
			m := walk.Causes[i].Mend()
			require.InDelta(t, want.Saved(m), g.Saved(m), 0)
		}
		require.InDelta(t, want.Saved(Own(1)...), g.Saved(Own(1)...), 0)
		if len(g.nodes) > 0 {
			assert.Equal(t, want.Forced(), g.Forced())
		}
	}
}

func TestRebuiltGraphsCompareAnew(t *testing.T) {
	short, long := benchStep(), benchStep()
	for r := range long.Ranks {
		for k := range long.Ranks[r].Ops {
			if op := &long.Ranks[r].Ops[k]; op.Kind == Comm && op.Seq%3 > 0 {
				op.End += us
			} else if op.Kind == Compute && op.Seq%2 > 0 {
				op.Start += us
			}
		}
	}
	g := &Graph{}
	for _, s := range []*Step{short, long, short} {
		require.Equal(t, Build(s, Options{}).Walk(), g.Rebuild(s, Options{}).Walk())
	}
}

func TestRunsAreSorted(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for n := range 60 {
		var b builder
		at := make([]int, n)
		for i := range at {
			at[i] = rng.IntN(n)
			b.order = append(b.order, int32(i))
		}
		for runs := rng.IntN(4); runs > 0; runs-- {
			from := rng.IntN(n + 1)
			slices.Sort(at[from:])
			slices.Sort(at[:from])
		}
		by := func(x, y int32) int { return cmp.Or(cmp.Compare(at[x], at[y]), cmp.Compare(x, y)) }
		want := slices.Clone(b.order)
		slices.SortFunc(want, by)
		b.sortRuns(by)
		require.Equal(t, want, b.order)
	}
}

// The order rank by rank gives what any other does, and leaves circles to the other.
func TestOrdersGiveTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 3))
	byRanks, circles := 0, 0
	for range 400 {
		data := make([]byte, 64+rng.IntN(4000))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		s := randomStep(data, rng.IntN(9), rng.IntN(17))
		g, want := Build(s, Options{}), Build(s, Options{})
		total := len(g.planned().order)
		want.plan = &plan{}
		want.planAll(int32(2*len(want.nodes)+len(want.meets)), total)
		require.Equal(t, want.plan.forced, g.plan.forced)
		require.Len(t, want.plan.order, total)
		if g.plan.forced > 0 {
			circles++
		} else if !slices.Equal(want.plan.order, g.plan.order) {
			byRanks++
		}
		require.InDelta(t, want.Saved(), g.Saved(), 0)
		for rank := range int64(3) {
			require.InDelta(t, want.Saved(Own(rank)...), g.Saved(Own(rank)...), 0)
		}
	}
	assert.Positive(t, byRanks)
	assert.Positive(t, circles)
}
