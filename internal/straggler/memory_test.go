// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// computing and unrecorded are programs of a rank that takes so many times as long: in
// kernels, or in what nobody recorded.
func computing(by float64) program {
	return fmt.Sprintf("h1:data c%.3f:gemm c%.3f:norm *", 20*by, 5*by)
}

func unrecorded(by float64) program { return fmt.Sprintf("h%.3f *", 25*by) }

// warming shows a world steps that vary by so much, a part of it as in the step before, and
// returns the ranks that were accused. slow is a factor on rank 1.
func warming(t *testing.T, seed uint64, ranks int, sd, memory, slow float64, of func(by float64) program) map[int64]bool {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	by := make([]float64, ranks)
	w := newWorld(t, ranks)
	accused := map[int64]bool{}
	for n := range int64(128) {
		programs := make([]program, ranks)
		for r := range programs {
			by[r] = memory*by[r] + sd*math.Sqrt(1-memory*memory)*rng.NormFloat64()
			f := 1 + by[r]
			if r == 1 && n >= 40 {
				f *= slow
			}
			programs[r] = of(f)
		}
		w.step(n, programs...)
		if n%2 == 0 {
			continue
		}
		for _, v := range w.e.Verdicts() {
			if f := &v.Finding; f.Class == model.ClassCompute || f.Class == model.ClassHost {
				accused[f.Rank.Or(-1)] = true
			}
		}
	}
	return accused
}

// Steps that follow each other are alike: that a rank is slow in many of them is no more
// than chance, unless it is by more.
func TestNoiseWithMemoryAccusesNobody(t *testing.T) {
	for _, ranks := range []int{4, 8} {
		for _, sd := range []float64{0.03, 0.05} {
			for seed := range uint64(tier.N(t, 2, 4)) {
				assert.Empty(t, warming(t, seed, ranks, sd, 0.9, 1, computing), "%d ranks, deviation %g, seed %d", ranks, sd, seed)
			}
		}
		assert.Equal(t, map[int64]bool{1: true}, warming(t, 9, ranks, 0.03, 0.9, 1.3, computing), "%d ranks, one slow by 1.3", ranks)
	}
}

// So it is where only communication was recorded, and the order of ranks is all that
// tells. What is left is told by the judge in the first steps, which do not show memory.
func TestNoiseWithMemoryInTheDarkAccusesNobody(t *testing.T) {
	const jobs = 20
	left := tier.Claim{Full: 0.85, Holds: 0.95, Fails: 0.6, Error: 0.05}
	for _, ranks := range []int{4, 8} {
		left.Check(t, jobs, func(seed int) bool {
			return len(warming(t, uint64(seed)+100, ranks, 0.1, 0.8, 1, unrecorded)) == 0
		})
		assert.Equal(t, map[int64]bool{1: true}, warming(t, 9, ranks, 0.03, 0.8, 1.5, unrecorded), "%d ranks, one slow by 1.5", ranks)
	}
}

// The judge's own tests of false alarms are at the level at which it is asked here.
func TestTheJudgeIsAskedAtTheLevelOfItsTests(t *testing.T) {
	assert.InDelta(t, judge.DefaultFalseAlarm, judgeAlarm*NewDefaultConfig().MaxFalseAlarm, 1e-12)
}
