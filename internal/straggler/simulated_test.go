// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// Roles, spots and peers of simulated jobs of every layout, whole and with losses.
func TestRolesAndPeersOfLayouts(t *testing.T) {
	type layout = training.Layout
	for name, of := range map[string]struct {
		layout
		peers float64 // the least share of segments that have some
	}{
		"data parallel":     {layout{DP: 8, PerNode: 2}, 0.9},
		"sharded":           {layout{DP: 8, FSDP: true, PerNode: 2}, 0.9},
		"pipeline":          {layout{DP: 4, PP: 4, Microbatches: 8, Layers: 2, Scale: 0.25, PerNode: 2}, 0.9},
		"interleaved":       {layout{DP: 4, PP: 4, Chunks: 2, Microbatches: 8, Layers: 1, Scale: 0.25, PerNode: 2}, 0.9},
		"tensor":            {layout{DP: 1, PP: 2, TP: 4, Microbatches: 4, Layers: 2, Scale: 0.5}, 0.9},
		"three dimensional": {layout{DP: 4, PP: 4, TP: 2, Microbatches: 4, Layers: 1, Scale: 0.5, Coarse: true}, 0.9},
		"experts":           {layout{DP: 8, EP: 4, Layers: 2, PerNode: 2}, 0.9},
	} {
		for _, lost := range []float64{0, 0.02} {
			t.Run(name, func(t *testing.T) {
				e := engineOf(t, training.Spec{Name: name, Layout: of.layout, Noise: training.DefaultNoise(), Steps: 4, Lost: lost}, 1)
				window := e.sorted()[0].window
				require.Len(t, window, 4)
				var weighed, all, odd, ranks float64
				for _, rec := range window[1:] {
					usual := map[int64]map[role]int{}
					for _, r := range rec.ranks {
						stage := r.rank.Parallel.PP.Or(0)
						if usual[stage] == nil {
							usual[stage] = map[role]int{}
						}
						usual[stage][r.role]++
					}
					for _, roles := range usual {
						most, n := 0, 0
						for _, k := range roles {
							most, n = max(most, k), n+k
						}
						odd += float64(n - most)
						ranks += float64(n)
					}
					for _, mr := range rec.meets {
						for i := range mr.members {
							m := &mr.members[i]
							if m.known {
								all++
							}
							if m.weighed {
								weighed++
							}
						}
					}
				}
				t.Logf("lost %v: weighed %.3f of %v segments, odd roles %v of %v", lost, weighed/all, all, odd, ranks)
				assert.Zero(t, odd, "ranks whose role is not their stage's")
				if lost == 0 {
					assert.GreaterOrEqual(t, weighed/all, of.peers)
				}
			})
		}
	}
}

// engineOf gives a job to an engine.
func engineOf(t *testing.T, spec training.Spec, seed uint64) *Engine {
	t.Helper()
	job, err := training.New(spec, seed)
	require.NoError(t, err)
	e := New(NewDefaultConfig(), time.Now)
	ranks := job.Ranks()
	for {
		step, ok := job.Next()
		if !ok {
			break
		}
		for i := range ranks {
			if ops := step.Ops(i); ops != nil {
				e.Add(ranks[i], ops)
			}
		}
	}
	e.Flush()
	return e
}

// The last walked step says nothing of what was over before it.
func TestTheLastWalkCostsOnlyWhatItIsOf(t *testing.T) {
	spec := training.Spec{
		Name: "ddp", Layout: training.Layout{DP: 8}, Noise: training.DefaultNoise(), Steps: 12,
		Faults: []training.Fault{{Family: training.HostDataLoader, Severity: 0.03}},
	}
	job, err := training.New(spec, 7)
	require.NoError(t, err)
	j := engineOf(t, spec, 7).sorted()[0]
	c := &candidate{in: stretch(j.window)}
	c.Ranks = job.Truth().Culprits[0].Ranks
	saved, ok := j.without(c.in, question{"rank", asPeers(c.Ranks)})
	assert.True(t, ok)
	assert.Positive(t, saved)
	last := j.walks.steps[len(j.walks.steps)-1].step
	for c.in[len(c.in)-1].step >= last {
		c.in = c.in[:len(c.in)-1]
	}
	_, ok = j.without(c.in, question{"rank", asPeers(c.Ranks)})
	assert.False(t, ok)
}

// What another kernel costs shows where nobody else ran it: in a pipeline its segments
// hide it.
func TestWhatAnotherKernelCosts(t *testing.T) {
	spec := training.Spec{
		Name: "three", Noise: training.DefaultNoise(), Steps: 16,
		Layout: training.Layout{DP: 2, PP: 2, TP: 2, Microbatches: 4, Layers: 2, Scale: 0.5, PerNode: 2},
		Faults: []training.Fault{{Family: training.KernelChoice, Severity: 3}},
	}
	job, err := training.New(spec, 7)
	require.NoError(t, err)
	for range spec.Steps {
		job.Next()
	}
	vs := engineOf(t, spec, 7).Jobs()[0].Verdicts
	require.Len(t, vs, 1)
	assert.Equal(t, model.ClassKernelChoice, vs[0].Finding.Class)
	assert.InEpsilon(t, job.Truth().Culprits[0].Cost, vs[0].Finding.CostSeconds.V, 0.15)
}

// A span that was lost somewhere else must not hold what mending a rank gains.
func TestLostSpansLeaveTheCost(t *testing.T) {
	saved := func(lost float64) float64 {
		spec := training.Spec{
			Name: "ddp", Layout: training.Layout{DP: 16}, Noise: training.DefaultNoise(), Steps: 12, Lost: lost,
			Faults: []training.Fault{{Family: training.HostDataLoader, Severity: 0.03}},
		}
		job, err := training.New(spec, 7)
		require.NoError(t, err)
		culprit := job.Truth().Culprits[0].Ranks[0]
		return seconds(replay(engineOf(t, spec, 7).sorted()[0].window, mending{ranks: map[int64]bool{culprit: true}}))
	}
	assert.InEpsilon(t, saved(0), saved(0.05), 0.1)
}
