// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/stats"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// Each case passes every gate but one.
func TestEachGateAloneAbstains(t *testing.T) {
	for name, tc := range map[string]struct {
		gate  string
		steps func(n int64) []program
	}{
		// Last in half of the steps only.
		"chance": {gateFalseAlarm, func(n int64) []program {
			return each(4, "c20 *", map[int]program{int(n % 2): "c40 *"})
		}},
		// 3 ms in every step, of 100: 3 % of its own time.
		"small excess": {gateExcess, func(int64) []program {
			return each(4, "c100 *", map[int]program{1: "c103 *"})
		}},
		// 40 ms and 2 ms in turn: always last, yet half of the steps hardly.
		"unsteady excess": {gateFalseAlarm, func(n int64) []program {
			return each(4, "c20 *", map[int]program{1: []program{"c60 *", "c22 *"}[n%2]})
		}},
		// 2 ms of 20, in steps that last for 200 ms.
		"small cost": {gateCost, func(int64) []program {
			return each(4, "c20 *", map[int]program{1: "c22 *"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			if tc.gate == gateCost {
				w.ring = func(int64) hop { return hop{transfer: 180} }
			}
			for n := range int64(6) {
				w.step(n, tc.steps(n)...)
			}
			assert.Empty(t, accusations(w.e.Verdicts()))
			abstained := w.e.Jobs()[0].Abstained
			require.NotNil(t, abstained)
			assert.Equal(t, tc.gate, abstained.Gate)
		})
	}
}

func TestCostCountsTheEndOfTheLastStep(t *testing.T) {
	w := newWorld(t, 4)
	for n := range int64(8) {
		w.step(n, each(4, "c20 * h1:optimizer", map[int]program{3: "c20 * h21:optimizer"})...)
	}
	vs := w.e.Verdicts()
	require.Len(t, vs, 1)
	assert.Equal(t, "optimizer", vs[0].Finding.Op)
	// 20 ms in each of eight steps, the last of which nobody waits for.
	assert.InDelta(t, 0.020, vs[0].Finding.CostSeconds.V, 1e-6)
}

func TestSteadiness(t *testing.T) {
	assert.Zero(t, steadiness([]float64{5}, 1), "one sample says nothing of spread")
	assert.Zero(t, steadiness([]float64{0, 0, 0}, 3))
	// Equal samples: the spread is floored at 1 %.
	assert.InDelta(t, 2/(1.2533*0.01), steadiness([]float64{7, 7, 7, 7}, 4), 1e-9)
	// Median 10, deviations 1, 0, 1: MAD 1.
	assert.InDelta(t, 10*1.7320508/(1.2533*1.4826), steadiness([]float64{9, 10, 11}, 3), 1e-6)
}

func TestAnAbsurdWorldCostsNothing(t *testing.T) {
	w := newWorld(t, 2, func(c *Config) { c.MaxRanks = 1000 })
	w.size = 1 << 40
	w.step(1, "c1 *", "c1 *")
	reports := w.e.Flush()
	require.Len(t, reports, 1)
	assert.Len(t, reports[0].Missing, maxListed)
	assert.Equal(t, 998, reports[0].MissingCount)
	assert.Equal(t, int64(2), w.e.Stats().WorldsCapped)
}

func TestComputeIsNotAccusedInFewSteps(t *testing.T) {
	w := newWorld(t, 8)
	w.step(1, each(8, "c10 * c10 * c10 * c10 * c10 *", map[int]program{5: "c15 * c15 * c15 * c15 * c15 *"})...)
	assert.Empty(t, w.e.Verdicts())
	assert.Equal(t, gateFewSteps, w.e.Jobs()[0].Abstained.Gate, "it may have had more to do")
}

func TestStepsNeeded(t *testing.T) {
	c := NewDefaultConfig()
	for ranks, want := range map[int]int64{1: 3, 2: 11, 4: 6, 64: 3} {
		assert.Equal(t, want, c.StepsNeeded(ranks), ranks)
	}
	for ranks := 2; ranks < 10; ranks++ {
		n := int(c.StepsNeeded(ranks))
		chance := func(steps int) float64 {
			return float64(ranks*maxLooks) * stats.BinomialTailSum(steps, steps, 1/float64(ranks))
		}
		assert.LessOrEqual(t, chance(n), c.MaxFalseAlarm, ranks)
		assert.Greater(t, chance(n-1), c.MaxFalseAlarm, ranks)
	}
}

// A rank that is slow in kernel after kernel is no matter of one of them.
func TestTheActionFollowsHowManyKernelsAreSlow(t *testing.T) {
	for want, slow := range map[string]program{
		"in many kernels, most in":             "c12:a c12:b c12:c c12:d *",
		`compare "a" on rank 1 with its peers`: "c18:a c10:b c10:c c10:d *",
	} {
		w := newWorld(t, 4)
		for n := range int64(8) {
			w.step(n, each(4, "c10:a c10:b c10:c c10:d *", map[int]program{1: slow})...)
		}
		vs := w.e.Verdicts()
		require.Len(t, vs, 1)
		assert.Contains(t, vs[0].Finding.Action, want)
	}
}

func TestActionOfWorkCountsItsRanks(t *testing.T) {
	assert.Contains(t, workAction(&candidate{Conclusion: judge.Conclusion{Ranks: []int64{4}}}), "rank 4 is given more work than its peers, and is not at fault: balance")
	assert.Contains(t, workAction(&candidate{Conclusion: judge.Conclusion{Ranks: []int64{4, 5}}}), "2 ranks are given more work than their peers, and none is at fault: balance")
}

func TestWhatAMiscountSays(t *testing.T) {
	assert.Contains(t, (&miscounted{comm: "dp", by: 1, taken: 1}).say(2), "by +1 differently from other members: in 1 step nothing says which are the same, and they met nobody")
	assert.Contains(t, (&miscounted{mended: 1, taken: 3}).say(2), "in 1 step their bytes and times say which are the same, and they were taken for these; in 3 steps nothing")
}
