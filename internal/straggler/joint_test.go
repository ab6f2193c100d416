// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// What the simulated job takes less without one stage's layers, and without both stages',
// is what the findings say.
func TestStagesThatAreSlowTogether(t *testing.T) {
	const steps = 12
	run := func(first, second float64) (*Engine, float64) {
		e := engineOf(t, training.Spec{
			Name: "pipeline", Noise: training.DefaultNoise(), Steps: steps,
			Layout: training.Layout{PP: 4, DP: 4, Microbatches: 8, Layers: 3, Scale: 0.25},
			Faults: []training.Fault{{Family: training.Stage, Severity: first}, {Family: training.Stage, Severity: second}},
		}, 3)
		return e, e.Jobs()[0].StepTime.Seconds() / steps
	}
	e, both := run(0.75, 0.5)
	_, withoutFirst := run(0, 0.5)
	_, withoutSecond := run(0.75, 0)
	_, healthy := run(0, 0)
	vs := e.Jobs()[0].Verdicts
	require.Len(t, vs, 2)
	for i, want := range []float64{both - withoutFirst, both - withoutSecond} {
		f := vs[i].Finding
		assert.Equal(t, model.ClassStageImbalance, f.Class)
		assert.InEpsilon(t, want, f.CostSeconds.V, 0.2, f.Op)
		assert.InEpsilon(t, both-healthy, f.CostJoint.V, 0.1, f.Op)
	}
}

func TestAPipelineGoesAtThePaceOfTheNextSlowest(t *testing.T) {
	stage := func(mean float64) *candidate {
		return &candidate{Conclusion: judge.Conclusion{Mean: mean}, place: place{sort: placeStage}, cost: mean, costBy: byPace}
	}
	slow, slower := stage(0.02), stage(0.05)
	paced([]*candidate{slow, slower})
	assert.InDelta(t, 0.03, slower.cost, 1e-12)
	assert.Zero(t, slow.cost, "it waits for the slower one")
	assert.InDelta(t, 0.05, (&job{}).joint([]*candidate{slower, slow}), 1e-12)
}

func TestAllFindingsTogetherCostNoLessThanOne(t *testing.T) {
	w := newWorld(t, 4)
	for n := range int64(16) {
		p := "c20 *"
		if n >= 8 {
			p = "c30 *"
		}
		w.step(n, each(4, p, nil)...)
	}
	w.e.sorted()[0].judged = true
	c := nobody(model.ClassJobWide, 16)
	c.First = 8
	vs := concluded(w, c)
	require.Len(t, vs, 1)
	assert.InDelta(t, 0.010, vs[0].Finding.CostSeconds.V, 1e-6)
	assert.InDelta(t, 0.010, vs[0].Finding.CostJoint.V, 1e-6)
}

// Ranks that are slow alike, so that none alone costs anything: the others hold up the
// same groups, or the gradients' exchange.
func TestRanksThatHideEachOthersCost(t *testing.T) {
	for name, slow := range map[string][]int64{
		"one of each replica":   {2, 4, 11, 13},
		"most of a group":       {0, 1, 3, 18},
		"in all stages but one": {5, 9, 18, 20, 24, 29, 63},
	} {
		t.Run(name, func(t *testing.T) {
			e := engineOf(t, training.Spec{
				Name: "three", Noise: training.DefaultNoise(), Steps: 16,
				Layout: training.Layout{DP: 4, PP: 4, TP: 4, Microbatches: 8, Layers: 1, Scale: 0.5, Coarse: true},
				Faults: []training.Fault{{Family: training.GPUClock, Severity: 1.3, Ranks: slow}},
			}, 5)
			var told []int64
			for _, v := range accusations(e.Jobs()[0].Verdicts) {
				assert.Equal(t, model.ClassCompute, v.Finding.Class)
				told = append(told, v.Finding.Ranks...)
			}
			assert.ElementsMatch(t, slow, told)
		})
	}
}

// Of two that are slow alike each carries its part where its typical step does: what few long
// steps add to the mean is no reason to mend either.
func TestWhoIsHeldUpSeldomCarriesNothing(t *testing.T) {
	for typical, want := range map[float64]int{1: 2, 0.4: 0} {
		w := newWorld(t, 4)
		stepsOf(w, 16, each(4, "c100 *", map[int]program{1: "c104 *", 2: "c104 *"})...)
		a, b := accusation(model.ClassCompute, 1, 16), accusation(model.ClassCompute, 2, 16)
		for _, c := range []*judge.Conclusion{&a, &b} {
			c.Mean, c.Share = 0.004, 0.04
			c.Excess = typical * c.Mean
		}
		assert.Len(t, accusations(concluded(w, a, b)), want, "typical step %g of the mean", typical)
	}
}

// Steps that were walked outside of a stretch say nothing of it.
func TestWalksOutsideOfTheStretchDoNotCount(t *testing.T) {
	w := newWorld(t, 4)
	stepsOf(w, 8, each(4, "c100 *", nil)...)
	j := onlyJob(t, w.e)
	told := accusation(model.ClassCompute, 1, 8)
	told.First, told.Last = 2, 5
	c := j.candidate(told)
	c.in = stretch(j.window).between(2, 5)
	j.walks.steps = nil
	for step := range int64(8) {
		saved := 100.0
		if step >= 2 && step <= 5 {
			saved = 0.001
		}
		j.walks.steps = append(j.walks.steps, walkedStep{step: step, replayed: true, causes: []walkedCause{{rank: 1, class: model.ClassCompute, saved: saved}}})
	}
	assert.InDelta(t, 0.001, j.walksWithout(c), 1e-12)
}
