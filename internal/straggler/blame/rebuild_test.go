package blame

import (
	"math/rand/v2"
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
