// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/clock/pair"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// solveCluster lets every pair of a simulated cluster probe for some windows, and
// solves after the last. Of a pair of which more than a tenth of all exchanges took
// less than no time, which no offset and no drift explains, the solver is told so.
func solveCluster(t *testing.T, c *sim.Cluster, windows int) *Solution {
	t.Helper()
	s := New(Options{Prefer: []string{sim.ID(1)}})
	for i, p := range c.Pairs {
		prober, e := c.Prober(i), pair.New(pair.Config{})
		var found []pair.Estimate
		for w := range windows {
			end := float64(w+1) * 2e9
			prober.Until(end, e)
			found = e.Close(c.Clocks[p[0]].Read(end))
		}
		if len(found) > 0 {
			mustAdd(t, s, found[len(found)-1].Edge(sim.ID(p[0]), sim.ID(p[1]), model.EdgeProbe, model.StampHardware))
		}
		if x := prober.Crossed; prober.CrossedN > int(c.Rate)*windows*2/10 {
			require.ErrorContains(t, s.Add(model.ClockEdge{
				Src: sim.ID(p[0]), Dst: sim.ID(p[1]), At: x.At, Lower: x.Lower, Upper: x.Upper,
				Source: model.EdgeProbe, Stamps: model.StampHardware,
			}), "lower bound above the upper")
		}
	}
	return s.Solve()
}

// clusterErrors returns the root mean square error of all clocks but one about
// their mean, which is the reference's own error, and how many placements of any
// clock are further off than their bound.
func clusterErrors(t *testing.T, c *sim.Cluster, s *Solution, but int) (rmsError float64, outside int) {
	t.Helper()
	var errs []float64
	sum := 0.0
	for _, m := range s.Models() {
		if m.Untrusted {
			continue
		}
		node, ref := nodeOf(t, m.Clock), nodeOf(t, m.Reference)
		for _, r := range []int64{m.From, m.At, m.Until} {
			off := float64(m.Offset + int64(math.Round(m.Drift*float64(r-m.At))) - c.Offset(ref, node, r))
			// Truth is rounded, and so are stamps.
			if math.Abs(off) > float64(m.Bound)+1 {
				outside++
			}
			if r == m.At && node != but {
				errs, sum = append(errs, off), sum+off
			}
		}
	}
	for i := range errs {
		errs[i] -= sum / float64(len(errs))
	}
	return rms(errs), outside
}

func nodeOf(t *testing.T, id string) int {
	t.Helper()
	var n int
	_, err := fmt.Sscanf(id, "host:n%d/", &n)
	require.NoError(t, err)
	return n
}

// Every fault of a node, packet by packet through the estimators of its pairs: it
// alone is marked, and the others' error grows by less than a tenth.
func TestFaultsOfANode(t *testing.T) {
	const bad = 32
	seeds := tier.N(t, 1, 2)
	var honest []float64
	for seed := range uint64(seeds) {
		c := sim.New(sim.Config{Nodes: 64, Seed: seed})
		s := solveCluster(t, c, 6)
		require.Empty(t, untrustedOf(s))
		require.Empty(t, s.Undecided())
		e, outside := clusterErrors(t, c, s, bad)
		require.Zero(t, outside)
		honest = append(honest, e)
	}
	for name, tt := range map[string]struct {
		fault sim.Fault
		seen  bool
	}{
		// Peers are told times within 300 us of one another; the bounds are some 5 us
		// on each edge.
		"tells peers different times": {sim.Fault{Faces: 300e3}, true},
		// Earlier than a message takes both ways, some 10 us.
		"stamps arrivals too early": {sim.Fault{Early: 100e3}, true},
		"replays stamps":            {sim.Fault{Replay: 8}, true},
		// Nobody can tell that from a longer way; the bound has to contain it.
		"sends late": {sim.Fault{Slow: 100e3}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var faulty []float64
			for seed := range uint64(seeds) {
				c := sim.New(sim.Config{Nodes: 64, Seed: seed})
				c.Faults[bad] = tt.fault
				s := solveCluster(t, c, 6)
				if tt.seen {
					require.Equal(t, []string{sim.ID(bad)}, untrustedOf(s))
				} else {
					require.Empty(t, untrustedOf(s))
				}
				require.Empty(t, s.Undecided())
				e, outside := clusterErrors(t, c, s, bad)
				require.Zero(t, outside)
				faulty = append(faulty, e)
			}
			t.Logf("error of the others: %.1f ns, %.1f ns without the fault", rms(faulty), rms(honest))
			assert.Less(t, rms(faulty), 1.1*rms(honest))
		})
	}
}
