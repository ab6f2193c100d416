package judge

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// remembering makes kernels vary by what they did in the step before, and something new.
func remembering(seed uint64, ranks int, sd, memory float64) func(int, []testRow) {
	rng := rand.New(rand.NewPCG(seed, 77))
	x := make([]float64, ranks)
	return func(_ int, rows []testRow) {
		for r := range rows {
			x[r] = memory*x[r] + sd*math.Sqrt(1-memory*memory)*rng.NormFloat64()
			rows[r].slow *= max(0.5, 1+x[r])
		}
	}
}

func TestMemoryIsMeasured(t *testing.T) {
	for _, memory := range []float64{0, 0.5, 0.9} {
		job := newTestJob(8, 1).with(remembering(1, 8, 0.05, memory)).with(slowDuring(3, 1.5, 30, 64))
		judge := New(Config{}, job.place)
		for step := range job.steps {
			judge.Add(job.step(step))
		}
		tr := &trial{cfg: &judge.cfg, h: &judge.history, places: &judge.places, links: &judge.links}
		tr.h.each(func(f *frame) { tr.frames = append(tr.frames, f) })
		tr.gather()
		if got := tr.memory(); math.Abs(got-memory) > 0.12 {
			t.Errorf("got memory %g, want %g", got, memory)
		}
	}
}

func TestInflation(t *testing.T) {
	// Of n values with neighbours correlated by r, the mean's variance is that of one times
	// (n + 2 (n-1) r + 2 (n-2) r^2 + ...) / n^2.
	for _, c := range []struct {
		steps        int
		memory, want float64
	}{{10, 0, 1}, {1, 0.9, 1}, {2, 0.5, 1.5}, {3, 0.5, (3 + 4*0.5 + 2*0.25) / 3}} {
		if got := inflation(c.steps, c.memory); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d steps, memory %g: got %g, want %g", c.steps, c.memory, got, c.want)
		}
	}
}

func TestNoiseWithMemory(t *testing.T) {
	for _, dp := range []int{4, 8, 64} {
		for seed := range uint64(6) {
			job := newTestJob(dp, seed).with(remembering(seed, dp, 0.05, 0.9))
			job.steps, job.kernels = 192, testKernels[:1]
			if n, last := accusations(job, 8); n > 0 {
				t.Errorf("%d ranks, seed %d: %d accusations, the last %+v", dp, seed, n, last.Conclusions)
			}
		}
		got := newTestJob(dp, 1).with(remembering(1, dp, 0.02, 0.9)).with(slowRank(1, 1.3)).judged()
		expect(t, got, what{model.ClassCompute, 1})
	}
}
