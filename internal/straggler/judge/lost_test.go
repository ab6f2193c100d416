// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// lossy leaves out operations at random.
func lossy(job *testJob, share float64) *testJob {
	return job.with(func(_ int, rows []testRow) {
		for r := range rows {
			rows[r].lost = share
			for k := range rows[r].kernels {
				seen := 0
				for range rows[r].kernels[k].n {
					if job.rng.Float64() >= share {
						seen++
					}
				}
				rows[r].kernels[k].n = seen
			}
		}
	})
}

// tallied is a job whose kernels tell how much they do.
func tallied(seed uint64) *testJob {
	job := newTestJob(8, seed)
	job.kernels = []kernel{
		{key: "gemm", name: "gemm_128", shape: "64x1 f16", n: 4, each: 5e-3, work: 64},
		{key: "attention", name: "flash", shape: "32x8 f16", n: 2, each: 5e-3, work: 256},
	}
	job.steps = 30
	return job
}

// hasMoreToDo gives a rank's operations more to do.
func hasMoreToDo(rank int, by float64) func(int, []testRow) {
	return func(_ int, rows []testRow) {
		for k := range rows[rank].kernels {
			rows[rank].kernels[k].each *= by
			rows[rank].kernels[k].work *= by
		}
	}
}

// Who lost less than the others did not do more.
func TestLostOperationsAreNoWork(t *testing.T) {
	for seed := range uint64(10) {
		for _, share := range []float64{0.05, 0.2, 0.5} {
			expect(t, lossy(tallied(seed), share).judged())
		}
	}
}

// What is lost does not hide who is slow, nor who has more to do in each operation.
func TestLostOperationsLeaveTheRest(t *testing.T) {
	for seed := range uint64(4) {
		expect(t, lossy(tallied(seed).with(slowRank(3, 1.2)), 0.3).judged(), what{model.ClassCompute, 3})
		got := lossy(tallied(seed).with(hasMoreToDo(3, 1.5)), 0.3).judged()
		expect(t, got, what{model.ClassWorkImbalance, -1})
		if len(got.Conclusions) == 1 && (len(got.Conclusions[0].Ranks) != 1 || got.Conclusions[0].Ranks[0] != 3) {
			t.Errorf("got ranks %v, want 3", got.Conclusions[0].Ranks)
		}
	}
}
