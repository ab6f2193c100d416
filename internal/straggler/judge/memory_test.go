// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
	"github.com/lockstep-otel/lockstep/internal/tier"
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
		if got := tr.memory().measured; math.Abs(got-memory) > 0.12 {
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
		for seed := range uint64(tier.N(t, 2, 6)) {
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
	sizes := []int{4, 8, 16}
	claim := tier.Claim{Full: 0.99, Holds: 0.995, Fails: 0.9, Error: 0.05}
	claim.Check(t, 100*len(sizes), func(i int) bool {
		dp, seed := sizes[i%len(sizes)], uint64(i/len(sizes))
		job := newTestJob(dp, seed).with(remembering(seed+1000, dp, 0.1, 0.9))
		job.steps, job.kernels = 20, testKernels[:1]
		n, _ := accusations(job, 1)
		return n == 0
	})
}

func TestLinksWithMemory(t *testing.T) {
	const ranks, sd, memory = 8, 0.4, 0.9
	for seed := range uint64(tier.N(t, 25, 100)) { // 25 without an accusation exclude one in 8
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

// trialOf returns a trial of what a job did, before anybody is accused.
func trialOf(job *testJob) *trial {
	judge := New(Config{}, job.place)
	for step := range job.steps {
		judge.Add(job.step(step))
	}
	t := &trial{cfg: &judge.cfg, h: &judge.history, places: &judge.places, links: &judge.links, looks: 1}
	t.h.each(func(f *frame) { t.frames = append(t.frames, f) })
	t.gather()
	t.noise.memories = t.memory()
	t.estimate()
	return t
}

// Of three steps nothing is known but what is expected; the more steps and ranks, the more
// they say. From a block on it is what was measured.
func TestMemoryIsExpectedBeforeItIsMeasured(t *testing.T) {
	likely := func(ranks, steps int, memory float64) float64 {
		sum := 0.0
		const jobs = 20
		for seed := range uint64(jobs) {
			job := newTestJob(ranks, seed).with(remembering(seed, ranks, 0.05, memory))
			job.steps, job.kernels = steps, testKernels[:1]
			m := trialOf(job).noise.memories
			if steps < MemoryBlock && m.measured != 0 || steps >= MemoryBlock && m.measured != m.likely {
				t.Fatalf("%d steps: got %+v", steps, m)
			}
			sum += m.likely / jobs
		}
		return sum
	}
	for _, memory := range []float64{0, 0.8} {
		if got := likely(8, 4, memory); math.Abs(got-rankMemory) > 1e-9 {
			t.Errorf("memory %g, 4 steps: got %g, want what is expected", memory, got)
		}
		far := func(x float64) float64 { return math.Abs(x - memory) }
		if few, many := far(likely(8, 12, memory)), far(likely(64, 12, memory)); few > far(rankMemory)*3/4 || many > far(rankMemory)/2 {
			t.Errorf("memory %g, 12 steps: got %.2f from it of 8 ranks, and %.2f of 64; want both nearer than what is expected", memory, few, many)
		}
	}
}

// What devices differ by is believed as long as the ranks bear it out. Where noise lasts they do
// not, before that can be measured; where they differ for good and nothing varies, it is no noise.
func TestWhatDevicesDifferByIsContradicted(t *testing.T) {
	priorOf := func(steps int, change func(job *testJob, seed uint64)) float64 {
		var all []float64
		for seed := range uint64(40) {
			job := newTestJob(8, seed)
			job.steps, job.kernels = steps, testKernels[:1]
			change(job, seed)
			all = append(all, trialOf(job).noise.prior)
		}
		return stats.SelectMedian(all)
	}
	noise := func(memory float64) func(*testJob, uint64) {
		return func(job *testJob, seed uint64) { job.with(remembering(seed, 8, 0.1, memory)) }
	}
	constant := func(job *testJob, _ uint64) {
		job.noise, job.hostNoise, job.lottery = 0, 0, 0.1
	}
	for name, of := range map[string]struct {
		steps       int
		change      func(*testJob, uint64)
		least, most float64
	}{
		"noise that forgets":         {5, noise(0), priorWorkers, priorWorkers},
		"noise that lasts":           {5, noise(0.95), 0, priorWorkers / 2},
		"noise that can be measured": {MemoryBlock, noise(0.95), priorWorkers, priorWorkers},
		"nothing varies":             {5, constant, priorWorkers, priorWorkers},
	} {
		if got := priorOf(of.steps, of.change); got < of.least || got > of.most {
			t.Errorf("%s: got %g, want from %g to %g", name, got, of.least, of.most)
		}
	}
}

// Links and ranks go by one rule, whatever is expected of each: chance by what is likely, and
// what is told is what was measured.
func TestLinksAndRanksRememberAlike(t *testing.T) {
	for _, steps := range []int{4, 12, 2 * MemoryBlock} {
		job := newTestJob(8, 1).with(remembering(1, 8, 0.1, 0.9))
		job.steps, job.kernels = steps, testKernels[:1]
		var own []float32
		job.with(func(_ int, rows []testRow) {
			own = own[:0]
			for r := range rows {
				own = append(own, float32(0.01*rows[r].slow))
			}
			rows[3].slow *= 3
		})
		job.links = func(*rand.Rand, int) (out []Link) {
			for r, s := range own {
				out = append(out, Link{Src: int64(r), Dst: int64(r+1) % 8, Class: 1, Own: s * float32(when(r == 5, 5)), Bytes: 1e6, N: 4})
			}
			return out
		}
		tr := trialOf(job)
		ranks := tr.noise.memories
		for _, k := range tr.trunks() {
			switch {
			case k.measured != k.likely && steps >= MemoryBlock || k.measured != 0 && steps < MemoryBlock:
				t.Errorf("%d steps: got %+v of a link", steps, k.memories)
			case steps == 4 && math.Abs(k.likely-linkMemory) > 1e-9:
				t.Errorf("%d steps: got %+v of a link, want what is expected", steps, k.memories)
			case steps > 4 && math.Abs(k.likely-ranks.likely) > 0.2:
				t.Errorf("%d steps: got %+v of a link, %+v of ranks", steps, k.memories, ranks)
			}
		}
		tr.accuse()
		tr.structure()
		told := map[string]float64{}
		for _, c := range tr.out {
			told[c.Class] = c.Memory
		}
		link, linked := told[model.ClassLink]
		rank, ranked := told[model.ClassCompute]
		if !linked || !ranked || (link > 0) != (steps >= MemoryBlock) || rank != ranks.measured {
			t.Errorf("%d steps: got %v told, %+v of ranks", steps, told, ranks)
		}
	}
}

// Noise that forgets seems to last by chance: that is not believed at once.
func TestNoiseThatForgetsHardlySeemsToLast(t *testing.T) {
	const jobs = 100
	lasts := 0
	for seed := range uint64(jobs) {
		job := newTestJob(8, seed).with(remembering(seed, 8, 0.05, 0))
		job.steps, job.kernels = 12, testKernels[:1]
		if trialOf(job).noise.likely > rankMemory {
			lasts++
		}
	}
	if lasts > jobs/20 {
		t.Errorf("got %d of %d jobs in which it does, want at most one in twenty", lasts, jobs)
	}
}
