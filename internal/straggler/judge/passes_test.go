// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// passKernels are those of a model whose kernels tell their passes, and an optimizer.
var passKernels = []kernel{
	{key: "gemm", name: "gemm_tn", shape: "32x48", n: 12, each: 1e-3},
	{key: "flash_fwd", name: "flash_fwd", shape: "32x32", n: 6, each: 1e-3},
	{key: "norm", name: "norm", shape: "4096", n: 12, each: 1e-4},
	{key: "gemm", name: "gemm_nn", shape: "48x32", n: 12, each: 1e-3},
	{key: "flash_bwd", name: "flash_bwd", shape: "32x32", n: 6, each: 2e-3, backward: true},
	{key: "norm_backward", name: "norm_backward", shape: "4096", n: 12, each: 2e-4, backward: true},
	{key: "adam", name: "adam", shape: "320", n: 4, each: 1e-3},
}

// passJob makes kernels of all ranks take another time in every step: factor tells by
// what.
func passJob(dp int, seed uint64, factor func(step, rank int, k *kernel) float64) *testJob {
	job := newTestJob(dp, seed)
	job.kernels = passKernels
	return job.with(func(step int, rows []testRow) {
		for r := range rows {
			for i := range rows[r].kernels {
				k := &rows[r].kernels[i]
				k.each *= factor(step, r, k)
			}
		}
	})
}

func kernelAt(k *kernel) int {
	return slices.IndexFunc(passKernels, func(p kernel) bool { return p.name == k.name })
}

func attends(k *kernel) bool { return k.key == "flash_fwd" || k.key == "flash_bwd" }

type draw func(step, rank, kernel int) float64

// draws returns lognormal factors: one for each step, rank, and kernel that they are
// asked for.
func draws(seed uint64, sigma float64) draw {
	rng := rand.New(rand.NewPCG(seed, 5))
	known := map[[3]int]float64{}
	return func(step, rank, kernel int) float64 {
		at := [3]int{step, rank, kernel}
		if known[at] == 0 {
			known[at] = math.Exp(sigma * rng.NormFloat64())
		}
		return known[at]
	}
}

func TestWorkThatNobodyCounts(t *testing.T) {
	long := []what{{model.ClassWorkImbalance, -1}}
	for name, c := range map[string]struct {
		sigma  float64
		noise  float64
		factor func(draw draw, step, rank int, k *kernel) float64
		want   []what
	}{
		"attention alone": {0.25, 0.02, func(draw draw, step, rank int, k *kernel) float64 {
			if attends(k) {
				return draw(step, rank, 0)
			}
			return 1
		}, long},
		"attention by the square, all else by the length": {0.2, 0.02, func(draw draw, step, rank int, k *kernel) float64 {
			switch {
			case attends(k):
				return sq(draw(step, rank, 0))
			case k.key == "adam":
				return 1
			}
			return draw(step, rank, 0)
		}, long},
		"lengths that hardly differ": {0.03, 0.005, func(draw draw, step, rank int, k *kernel) float64 {
			if attends(k) {
				return draw(step, rank, 0)
			}
			return 1
		}, nil},
		"devices that change their speed": {0.25, 0.02, func(draw draw, step, rank int, _ *kernel) float64 {
			return draw(step, rank, 0)
		}, nil},
		"attention that is noisy": {0.25, 0.02, func(draw draw, step, rank int, k *kernel) float64 {
			if attends(k) {
				return draw(step, rank, kernelAt(k))
			}
			return 1
		}, nil},
		"attention that is noisy, and lengths that differ": {0.2, 0.02, func(draw draw, step, rank int, k *kernel) float64 {
			if attends(k) {
				return math.Sqrt(draw(step, rank, 0)) * draw(step, rank, 1+kernelAt(k))
			}
			return 1
		}, nil},
		"all kernels are noisy": {0.15, 0.02, func(draw draw, step, rank int, k *kernel) float64 {
			return draw(step, rank, kernelAt(k))
		}, nil},
		"one rank's attention": {0, 0.02, func(_ draw, _, rank int, k *kernel) float64 {
			if rank == 2 && attends(k) {
				return 1.5
			}
			return 1
		}, []what{{model.ClassCompute, 2}}},
		"one rank's attention, in half of the steps": {0.25, 0.02, func(draw draw, step, rank int, k *kernel) float64 {
			if rank == 2 && attends(k) {
				return max(1, 1.5*draw(step, rank, 0))
			}
			return 1
		}, []what{{model.ClassCompute, 2}}},
	} {
		for _, dp := range []int{8, 64} {
			t.Run(fmt.Sprint(name, " ", dp), func(t *testing.T) {
				for seed := range uint64(tier.N(t, 1, 3)) {
					draw := draws(seed, c.sigma)
					job := passJob(dp, seed+1, func(step, rank int, k *kernel) float64 { return c.factor(draw, step, rank, k) })
					job.steps, job.noise = 48, c.noise
					expect(t, job.judged(), c.want...)
				}
			})
		}
	}
}

// alikeIn judges how the passes of a job go together.
func alikeIn(job *testJob) (alike, bool) {
	judge := New(Config{}, job.place)
	for step := range job.steps {
		judge.Add(job.step(step))
	}
	t := &trial{cfg: &judge.cfg, h: &judge.history}
	t.h.each(func(f *frame) { t.frames = append(t.frames, f) })
	t.gather()
	return t.passesAlike(func(*standing) bool { return false })
}

func TestHowPassesGoTogether(t *testing.T) {
	few := []kernel{passKernels[0], passKernels[1], passKernels[4], passKernels[6]}
	for name, c := range map[string]struct {
		kernels     []kernel
		noise       float64
		change      func(more float64, k *kernel)
		least, most float64
	}{
		"what is taken out of both for the device makes no noise alike": {few, 0.1, func(float64, *kernel) {}, -0.5, 0.1},
		"who differs says nothing of the device": {passKernels, 0.02, func(more float64, k *kernel) {
			if attends(k) {
				k.each *= more
			}
		}, 0.8, 1},
		"amounts are known": {passKernels, 0.02, func(more float64, k *kernel) {
			k.work = 1000
			if attends(k) {
				k.each, k.work = k.each*more, k.work*more
			}
		}, -0.5, 0.3},
		"peers may have sent more": {passKernels, 0.02, func(more float64, k *kernel) {
			if attends(k) {
				k.each, k.between = k.each*more, k.n
			}
		}, -0.5, 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(10) {
				draw := draws(seed, 0.25)
				job := passJob(16, seed, func(int, int, *kernel) float64 { return 1 })
				job.kernels, job.noise = c.kernels, c.noise
				job.with(func(step int, rows []testRow) {
					for r := range rows {
						for i := range rows[r].kernels {
							c.change(draw(step, r, 0), &rows[r].kernels[i])
						}
					}
				})
				a, ok := alikeIn(job)
				if ok != (a.correlation >= workCorrelation) || a.correlation < c.least || a.correlation > c.most || a.correlation == 0 {
					t.Errorf("seed %d: got correlation %.2f, want from %.1f to %.1f", seed, a.correlation, c.least, c.most)
				}
			}
		})
	}
}

func TestWhoLeads(t *testing.T) {
	var tops []leader
	for range 5 {
		tops = append(tops, leader{n: 7, share: 0.1}, leader{n: 3, share: 0.2}, leader{n: 3, share: 0.3}, leader{})
	}
	for least, leads := range map[float64]float64{0: 10.0 / 15, 0.15: 1} {
		var a alike
		a.lead(tops, least)
		if a.steps != 15 || a.first != 3 || a.leader != leads || a.share != 0.2 {
			t.Errorf("got %+v, want rank 3 in %g of 15 steps, and 0.2", a, leads)
		}
	}
}

// All wait for the longest of the microbatches that a role computes at a time.
func TestMicrobatchesThatDiffer(t *testing.T) {
	for _, c := range []struct {
		dp                            int
		correlation, variation, noise float64
		want                          []what
	}{
		{4, 0.9, 0.025, 0.01, nil},
		{4, 0.9, 0.05, 0.01, []what{{model.ClassWorkImbalance, -1}}},
		{128, 0.9, 0.025, 0.01, []what{{model.ClassWorkImbalance, -1}}},
		{128, 0.9, 0.01, 0.01, nil},
		{128, 0.9, 0.01, 0.06, nil},
		{128, 0.5, 0.2, 0.01, nil},
	} {
		job := newTestJob(c.dp, 1).with(func(_ int, rows []testRow) {
			for r := range rows {
				rows[r].correlation, rows[r].variation = c.correlation, c.variation
			}
		})
		job.noise = c.noise
		expect(t, job.judged(), c.want...)
	}
}

func TestTheLargestOfMany(t *testing.T) {
	// Expected maxima of normal values: Harter (1961).
	for n, want := range map[int]float64{2: 1, 8: 1.424, 64: 2.344, 100: 2.508} {
		if got := largestOf(&basis{rung: RungRole, peers: n - 1}); math.Abs(got-want) > 0.03 {
			t.Errorf("got %.3f for %d, want %.3f", got, n, want)
		}
	}
	if got := largestOf(&basis{rung: RungKernel, peers: 99}); got != 1 {
		t.Errorf("got %.3f where nobody knows how many there are, want 1", got)
	}
}

// One rank whose passes are long in every second step leads in all steps that anybody leads by
// much: that is no work that rotates, whatever it is.
func TestOneRankLeads(t *testing.T) {
	for seed := range uint64(10) {
		job := passJob(4, seed, func(step, rank int, k *kernel) float64 {
			if rank == 2 && attends(k) {
				return []float64{0.8, 1.2}[step%2]
			}
			return 1
		})
		job.noise = 0.002
		for _, c := range job.judged().Conclusions {
			if c.Class == model.ClassWorkImbalance {
				t.Errorf("seed %d: got %+v", seed, c)
			}
		}
	}
}

// Steps that are like the one before say less of how passes go together.
func TestChanceOfPassesThatGoTogether(t *testing.T) {
	tr := &trial{looks: 1}
	const steps = 20
	of := func(memory float64) float64 {
		return tr.alikeChance(&alike{steps: steps, correlation: 0.7, memory: memory})
	}
	few := tr.alikeChance(&alike{steps: 2, correlation: 0.7})
	if lasts, forgets := of(0.9), of(0); Worth(steps, 0.9) > 2 || lasts < few || forgets > lasts/10 {
		t.Errorf("got %g where work lasts and %g where it does not; want the former as of less than two steps, %g", lasts, forgets, few)
	}
}
