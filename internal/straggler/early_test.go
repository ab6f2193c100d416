// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// warm makes steps of a job whose devices take another time in each step, which is like the
// time in the step before by so much.
type warm struct {
	ranks      int
	sd, memory float64
	slow       float64 // factor of rank 1; 1 where it is healthy
}

// firstAccused runs the job, judged at every step, and returns the step in which somebody was
// accused first, -1 for none, and whether that was rank 1.
func (h warm) firstAccused(t *testing.T, seed uint64, steps int64) (at int64, right bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 71))
	by := make([]float64, h.ranks)
	for r := range by {
		by[r] = h.sd * rng.NormFloat64()
	}
	w := newWorld(t, h.ranks)
	for n := range steps {
		programs := make([]program, h.ranks)
		for r := range programs {
			by[r] = h.memory*by[r] + h.sd*math.Sqrt(1-h.memory*h.memory)*rng.NormFloat64()
			f := max(0.5, 1+by[r])
			if r == 1 {
				f *= h.slow
			}
			programs[r] = fmt.Sprintf("h1:data c%.4f:gemm c%.4f:norm *", 20*f, 5*f)
		}
		w.step(n, programs...)
		for _, v := range accusations(w.e.Verdicts()) {
			return n + 1, v.Finding.Rank == model.Some(int64(1))
		}
	}
	return -1, false
}

// Nothing can be measured of what noise remembers in three steps, and of four ranks little in
// twelve. LOCKSTEP_SOAK_JOBS makes it as many jobs of each sort, and
// an eighth of that of 64 ranks, too.
func TestHealthyJobsInNoiseThatLasts(t *testing.T) {
	const steps, block = 48, 16
	jobs := soakJobs(t)
	sizes := []int{4, 8}
	if os.Getenv("LOCKSTEP_SOAK_JOBS") != "" {
		sizes = append(sizes, 64)
	}
	accused, all := 0, 0
	for _, ranks := range sizes {
		jobs := max(jobs*8/max(8, ranks), 1)
		for _, sd := range []float64{0.05, 0.1} {
			for _, memory := range []float64{0, 0.5, 0.8, 0.9, 0.95} {
				by := map[string]int{}
				for seed := range jobs {
					at, _ := warm{ranks, sd, memory, 1}.firstAccused(t, uint64(seed), steps)
					switch all++; {
					case at > block:
						by["17 to 48"]++
					case at > 6:
						by["7 to 16"]++
					case at > 0:
						by["3 to 6"]++
					}
					if at > 0 {
						accused++
					}
				}
				t.Logf("%d ranks, noise %g, memory %g: of %d healthy jobs, accused first in steps %v", ranks, sd, memory, jobs, by)
			}
		}
	}
	assert.LessOrEqual(t, accused, (all+99)/100, "of %d", all)
}

// A device that is slower by a tenth is named soon where noise forgets. Where it does not, it
// may take a block of steps to tell it from noise.
func TestStepsUntilASlowDeviceIsNamed(t *testing.T) {
	jobs := soakJobs(t)
	noise := [3]float64{0.01, 0.02, 0.03}
	for _, of := range []struct {
		ranks  int
		memory float64
		most   [3]float64 // mean steps, by noise
	}{
		{4, 0, [3]float64{8, 10, 15}},
		{8, 0, [3]float64{6, 8, 13}},
		{4, 0.5, [3]float64{12, 24, 36}},
		{8, 0.5, [3]float64{6, 16, 32}},
	} {
		for i, sd := range noise {
			sum, found := int64(0), 0
			for seed := range jobs {
				if at, right := (warm{of.ranks, sd, of.memory, 1.1}).firstAccused(t, uint64(seed), 48); at > 0 {
					assert.True(t, right, "%d ranks, noise %g, seed %d", of.ranks, sd, seed)
					sum, found = sum+at, found+1
				}
			}
			mean := float64(sum) / float64(max(1, found))
			t.Logf("%d ranks, noise %g, memory %g: %d of %d named, after %.1f steps", of.ranks, sd, of.memory, found, jobs, mean)
			assert.LessOrEqual(t, mean, of.most[i], "%d ranks, noise %g", of.ranks, sd)
			assert.GreaterOrEqual(t, 4*found, 3*jobs)
		}
	}
}
