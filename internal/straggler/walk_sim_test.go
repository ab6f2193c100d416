// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/sim/training"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// simulated runs a job through an engine.
func simulated(t *testing.T, spec training.Spec, seed uint64) (*job, *training.Job) {
	t.Helper()
	sim, err := training.New(spec, seed)
	require.NoError(t, err)
	e := New(NewDefaultConfig(), time.Now)
	for step, ok := sim.Next(); ok; step, ok = sim.Next() {
		for r := range sim.Ranks() {
			e.Add(sim.Ranks()[r], step.Ops(r))
		}
	}
	e.Flush()
	return onlyJob(t, e), sim
}

// What a job would be without a fault, by replay of its recorded operations, is what the
// same seed without it takes.
func TestReplayAgreesWithTheSimulator(t *testing.T) {
	layouts := map[string]training.Layout{
		"ddp":   {DP: 8},
		"tp+pp": {DP: 2, PP: 4, TP: 2, Microbatches: 8, Layers: 2, Scale: 0.25},
		"dp 1":  {PP: 4, TP: 4, Microbatches: 8, Layers: 2, Scale: 0.25, Coarse: true},
	}
	faults := map[string]training.Fault{
		"compute": {Family: training.GPUClock, Severity: 1.3},
		"host":    {Family: training.HostDataLoader, Severity: 0.05},
	}
	for layout, l := range layouts {
		for fault, f := range faults {
			for seed := range uint64(tier.N(t, 1, 3)) {
				spec := training.Spec{Name: layout + fault, Layout: l, Noise: training.DefaultNoise(), Steps: 12, Faults: []training.Fault{f}}
				j, sim := simulated(t, spec, seed)
				c := sim.Truth().Culprits
				require.Len(t, c, 1)
				got, ok := j.walkSaved(c[0].Ranks[0])
				require.True(t, ok)
				share, op := j.blamed(c[0].Ranks[0])
				t.Logf("%s %s seed %d: rank %d costs %.2f ms, replay saves %.2f ms (%+.1f %%); blamed %.3f of the time, %s",
					layout, fault, seed, c[0].Ranks[0], c[0].Cost*1e3, got*1e3, 100*(got/c[0].Cost-1), share, op)
				assert.LessOrEqual(t, math.Abs(got/c[0].Cost-1), 0.1, "%s %s seed %d", layout, fault, seed)
			}
		}
	}
}

// Hundreds of collectives within nodes must not make forgotten the few between them,
// without which waits between nodes are owed to nobody.
func TestClocksOfThreeDimensionsAreRelated(t *testing.T) {
	spec := training.Spec{
		Name: "three", Layout: training.Layout{DP: 4, PP: 4, TP: 4, Microbatches: 8, Layers: 1, Scale: 0.25},
		Noise: training.DefaultNoise(), Steps: 2,
	}
	j, _ := simulated(t, spec, 1)
	assert.Positive(t, j.meetings)
	assert.Equal(t, j.meetings, j.attributed)
}

// walkSaved returns by how much shorter, s, the walked steps would have been without what
// the rank did longer than its peers: the mean over those of which all is in the graph.
func (j *job) walkSaved(rank int64) (seconds float64, ok bool) {
	steps := 0
	for i := range j.walks.steps {
		s := &j.walks.steps[i]
		if s.replayed {
			steps++
		}
		for k := range s.causes {
			if c := &s.causes[k]; c.rank == rank {
				seconds += c.saved
			}
		}
	}
	return seconds / float64(max(1, steps)), steps > 0
}

// A healthy job whose hosts' clocks are milliseconds apart, or of which ranks are missing,
// has nobody with a notable share of the path.
func TestClocksAndLossesBlameNobody(t *testing.T) {
	layouts := map[string]training.Layout{
		"ddp":   {DP: 16, PerNode: 4},
		"three": {DP: 4, PP: 4, TP: 2, Microbatches: 8, Layers: 1, Scale: 0.25},
	}
	for name, l := range layouts {
		for trouble, change := range map[string]func(*training.Spec){
			"none":    func(*training.Spec) {},
			"clocks":  func(s *training.Spec) { s.Clock = training.Clock{Error: 0.005, Drift: 20} },
			"missing": func(s *training.Spec) { s.Missing = 0.2 },
			"lost":    func(s *training.Spec) { s.Lost = 0.02 },
		} {
			spec := training.Spec{Name: name, Layout: l, Noise: training.DefaultNoise(), Steps: 10}
			change(&spec)
			j, sim := simulated(t, spec, 3)
			require.NotEmpty(t, j.walks.steps)
			most := 0.0
			for _, r := range sim.Ranks() {
				share, _ := j.blamed(r.Rank)
				most = max(most, share)
			}
			t.Logf("%s, %s: largest share %.4f", name, trouble, most)
			assert.Less(t, most, 0.02, "%s, %s", name, trouble)
		}
	}
}

// Clock errors and lost spans do not hide who is to blame either.
func TestClocksAndLossesHideNobody(t *testing.T) {
	layouts := map[string]training.Layout{
		"ddp":   {DP: 16, PerNode: 4},
		"three": {DP: 4, PP: 4, TP: 2, Microbatches: 8, Layers: 1, Scale: 0.25},
		"dp 1":  {PP: 8, TP: 4, Microbatches: 16, Layers: 1, Scale: 0.25, Coarse: true},
	}
	for name, l := range layouts {
		for _, f := range []training.Fault{{Family: training.GPUClock, Severity: 1.2}, {Family: training.HostDataLoader, Severity: 0.03}} {
			spec := training.Spec{
				Name: name, Layout: l, Noise: training.DefaultNoise(), Steps: 6, Faults: []training.Fault{f},
				Clock: training.Clock{Error: 0.005, Drift: 20}, Lost: 0.02,
			}
			j, sim := simulated(t, spec, 5)
			culprit := sim.Truth().Culprits[0].Ranks[0]
			first, _ := j.blamed(culprit)
			for _, r := range sim.Ranks() {
				if share, _ := j.blamed(r.Rank); r.Rank != culprit {
					assert.Less(t, 2*share, first, "%s, %s: rank %d beside %d", name, f.Family, r.Rank, culprit)
				}
			}
		}
	}
}
