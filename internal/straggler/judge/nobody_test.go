// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// accusations counts the conclusions that blame somebody, when the job is judged at every
// look-th step.
func accusations(j *testJob, look int) (n int, last Judgement) {
	judge := New(Config{}, j.place)
	for step := range j.steps {
		judge.Add(j.step(step))
		if step%look != look-1 {
			continue
		}
		last = judge.Judge()
		for i := range last.Conclusions {
			switch last.Conclusions[i].Class {
			case model.ClassCompute, model.ClassHost, model.ClassKernelChoice, model.ClassLink, model.ClassNode:
				n++
			}
		}
	}
	return n, last
}

// background makes jobs in which nobody is at fault, each unlike the other.
func background(seed uint64, dp int) map[string]*testJob {
	drift := make([]float64, dp)
	temperature, lengths, pauses := rand.New(rand.NewPCG(seed, 9)), rand.New(rand.NewPCG(seed, 10)), rand.New(rand.NewPCG(seed, 11))
	job := func() *testJob { return newTestJob(dp, seed) }
	loud := job()
	loud.noise, loud.hostNoise, loud.lottery = 0.05, 0.5, 0.01
	return map[string]*testJob{
		"quiet": job(),
		"loud":  loud,
		"temperature": job().with(func(_ int, rows []testRow) {
			for r := range rows {
				drift[r] = 0.99*drift[r] + 0.001*temperature.NormFloat64()
				rows[r].slow *= 1 + drift[r]
			}
		}),
		"sequences": job().with(func(_ int, rows []testRow) {
			for r := range rows {
				rows[r].slow *= math.Exp(0.25 * lengths.NormFloat64())
			}
		}),
		"collector": job().with(func(step int, rows []testRow) {
			for r := range rows {
				pausingRank(r, 13, 0.15)(step, rows)
			}
		}),
		"long and seldom": job().with(func(_ int, rows []testRow) {
			for r := range rows {
				if pauses.Float64() < 0.005 {
					rows[r].idle["forward"] += 0.3 * math.Exp(pauses.NormFloat64())
				}
			}
		}),
		"rare pauses": job().with(func(_ int, rows []testRow) {
			for r := range rows {
				if pauses.Float64() < 0.02 {
					rows[r].idle["forward"] += 0.1 * pauses.ExpFloat64()
				}
			}
		}),
	}
}

// TestNobodyIsAccused judges healthy jobs at every step. LOCKSTEP_SOAK_JOBS makes it as
// many seeds of each.
func TestNobodyIsAccused(t *testing.T) {
	seeds := 1
	if n, err := strconv.Atoi(os.Getenv("LOCKSTEP_SOAK_JOBS")); err == nil {
		seeds = n
	}
	for _, dp := range []int{3, 4, 8, 64} {
		steps := 0
		accused := map[string]int{}
		for seed := range seeds {
			jobs := background(uint64(seed+1), dp)
			for _, name := range sortedKeys(jobs) {
				job := jobs[name]
				job.steps = max(64, tier.N(t, 512, 2048)/dp*2)
				n, _ := accusations(job, max(1, dp/8))
				accused[name] += n
				steps += job.steps * dp
				if n > 0 && seeds == 1 {
					t.Errorf("%d ranks, %s: %d accusations", dp, name, n)
				}
			}
		}
		t.Logf("%d ranks: %d rank-steps, accusations %v", dp, steps, accused)
	}
}

func TestPausesAtScale(t *testing.T) {
	for _, dp := range []int{8, 64, 512, 4096} {
		t.Run(fmt.Sprint(dp), func(t *testing.T) {
			job := background(5, dp)["collector"]
			job.kernels = job.kernels[:1]
			if dp > 1000 {
				job.steps = 32
			}
			n, last := accusations(job, 16)
			if n > 0 {
				t.Errorf("got %d accusations", n)
			}
			expect(t, last, what{model.ClassJitter, -1})
		})
	}
}
