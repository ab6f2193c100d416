// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// Where spans are lost what a rank costs is an interval, and the job's problem.
func TestCostWhereSpansAreLost(t *testing.T) {
	for _, fault := range []training.Fault{{Family: training.GPUClock, Severity: 1.3}, {Family: training.HostDataLoader, Severity: 0.03}} {
		for _, lost := range []float64{0, 0.1, 0.3} {
			for seed := uint64(7); seed < 7+uint64(tier.N(t, 1, 3)); seed++ {
				spec := training.Spec{
					Name: "ddp", Layout: dataParallel, Noise: training.DefaultNoise(), Steps: 24, Lost: lost, Faults: []training.Fault{fault},
				}
				job, err := training.New(spec, seed)
				require.NoError(t, err)
				for range spec.Steps {
					job.Next()
				}
				e := engineOf(t, spec, seed)
				said := strings.Contains(strings.Join(e.Jobs()[0].Problems, "\n"), "missing by its numbers")
				assert.Equal(t, lost > 0, said, "%s, %g lost: %v", fault.Family, lost, e.Jobs()[0].Problems)
				vs := accusations(e.Verdicts())
				require.Len(t, vs, 1, "%s, %g lost, seed %d", fault.Family, lost, seed)
				ev := evidenceOf(t, vs[0].Finding)
				if lost == 0 {
					assert.Zero(t, ev.CostMost)
					assert.False(t, vs[0].Finding.CostMost.OK)
					assert.Zero(t, ev.Lost)
					continue
				}
				assert.InDelta(t, lost, ev.Lost, 0.12, "seed %d", seed) // of some 24
				f := vs[0].Finding
				if ev.CostMost > f.CostSeconds.V {
					assert.Equal(t, model.Some(ev.CostMost), f.CostMost)
					require.True(t, f.CostLeast.OK, "it is told as the least")
					assert.LessOrEqual(t, f.CostLeast.V, f.CostSeconds.V)
				}
				truth := job.Truth().Culprits[0].Cost
				assert.LessOrEqual(t, vs[0].Finding.CostSeconds.V, 1.1*truth, "%s, %g lost, seed %d", fault.Family, lost, seed)
				assert.GreaterOrEqual(t, max(ev.CostMost, vs[0].Finding.CostSeconds.V), 0.95*truth, "%s, %g lost, seed %d", fault.Family, lost, seed)
			}
		}
	}
}

// A rank's excess is that of the steps in which it was seen, and of what was recorded of them.
func TestWholeExcess(t *testing.T) {
	of := func(class string, lost, blind float32, seen, steps int) *candidate {
		c := &candidate{place: place{sort: placeRank}, Conclusion: judge.Conclusion{Class: class, Mean: 0.006, Ranks: []int64{3}}}
		for i := range steps {
			rec := &record{index: map[int64]int{}, end: int64(100 * time.Millisecond)}
			if i < seen {
				rec.index[3], rec.ranks = 0, []rankRecord{{lost: lost, blind: blind}}
			}
			c.in = append(c.in, rec)
		}
		return c
	}
	assert.InDelta(t, 0.008, of(model.ClassCompute, 0.25, 0.5, 4, 4).whole(), 1e-9)
	assert.InDelta(t, 0.012, of(model.ClassHost, 0.25, 0.5, 4, 4).whole(), 1e-9)
	assert.InDelta(t, 0.012, of(model.ClassCompute, 0, 0, 2, 4).whole(), 1e-9, "absent from half of the steps")
	assert.InDelta(t, 0.1, of(model.ClassHost, 0.5, 1, 4, 4).whole(), 1e-9, "no more than the step")
	assert.Zero(t, of(model.ClassCompute, 0.01, 0.02, 4, 4).whole(), "as good as nothing was lost")
}
