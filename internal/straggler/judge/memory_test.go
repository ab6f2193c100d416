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

// Memory is looked for before there is a whole block of steps. Of four ranks it is known
// so badly that one healthy job in a hundred may be accused, whose noise is as much as a
// fault.
func TestNoiseWithMemoryIsSeenEarly(t *testing.T) {
	accused, jobs := 0, 0
	for _, dp := range []int{4, 8, 16} {
		for seed := range uint64(100) {
			job := newTestJob(dp, seed).with(remembering(seed+1000, dp, 0.1, 0.9))
			job.steps, job.kernels = 20, testKernels[:1]
			if n, _ := accusations(job, 1); n > 0 {
				accused++
			}
			jobs++
		}
	}
	if accused > jobs/100 {
		t.Errorf("got %d of %d jobs accused, want at most one in a hundred", accused, jobs)
	}
}

func TestLinksWithMemory(t *testing.T) {
	const ranks, sd, memory = 8, 0.4, 0.9
	for seed := range uint64(100) {
		job := newTestJob(ranks, seed)
		rng := rand.New(rand.NewPCG(seed, 3))
		x := make([]float64, ranks)
		job.kernels = testKernels[:1]
		job.links = func(_ *rand.Rand, _ int) (out []Link) {
			for r := range x {
				x[r] = memory*x[r] + sd*math.Sqrt(1-memory*memory)*rng.NormFloat64()
				out = append(out, Link{Src: int64(r), Dst: int64(r+1) % ranks, Class: 1, Own: float32(0.01 * math.Exp(x[r])), Bytes: 1e6, N: 4})
			}
			return out
		}
		if n, last := accusations(job, 1); n > 0 {
			t.Errorf("seed %d: %d accusations, the last %+v", seed, n, last.Conclusions)
		}
	}
}

// A slow drift beneath noise that forgets makes steps longer for a while: no change of the
// job, while one as large that stays is.
func TestADriftIsNoChange(t *testing.T) {
	const jobs, steps, memory, sd = 200, 200, 0.95, 0.06
	found := func(shift, drift float64) (n int) {
		for seed := range uint64(jobs) {
			rng := rand.New(rand.NewPCG(seed, 4))
			x, of := 0.0, make([]longStep, steps)
			for i := range of {
				x = memory*x + drift*math.Sqrt(1-memory*memory)*rng.NormFloat64()
				of[i] = longStep{step: int64(i), seconds: float32(math.Exp(x + sd*rng.NormFloat64()))}
				if i >= steps/2 {
					of[i].seconds *= float32(1 + shift)
				}
			}
			if c := changeOf(of); c.z >= wideZ && c.share >= wideShare {
				n++
			}
		}
		return n
	}
	if got := found(0, sd); got > 0 {
		t.Errorf("got %d changes in %d jobs that drift, want none", got, jobs)
	}
	if got := found(0.15, 0); got < jobs*95/100 {
		t.Errorf("got %d changes in %d jobs that change, want nearly all", got, jobs)
	}
}
