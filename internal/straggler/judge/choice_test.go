// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// renamed lets a rank's kernel go by another name, and take so many times as long.
func renamed(rank int, key string, by float64) func(int, []testRow) {
	return func(_ int, rows []testRow) {
		for k := range rows[rank].kernels {
			if of := &rows[rank].kernels[k]; of.key == key {
				of.name, of.each = of.name+"_256", by*of.each
			}
		}
	}
}

// A device that is a little slower is so in all kernels: that one of them bears another
// name is no reason.
func TestASlowDeviceIsNoChoiceOfKernels(t *testing.T) {
	for _, slow := range []float64{1.03, 1.04, 1.05} {
		for seed := range uint64(10) {
			job := newTestJob(8, seed).with(slowRank(3, slow)).with(renamed(3, "gemm", 1))
			for _, c := range job.judged().Conclusions {
				if c.Class == model.ClassKernelChoice {
					t.Errorf("slower by %g, seed %d: got rank %d of class %s", slow, seed, c.Rank, c.Class)
				}
			}
		}
	}
	for seed := range uint64(10) {
		job := newTestJob(8, seed).with(slowRank(3, 1.03)).with(renamed(3, "gemm", 1.2))
		expect(t, job.judged(), what{model.ClassKernelChoice, 3})
	}
}

// unchosen fails where a kernel is told that somebody chose.
func unchosen(t *testing.T, job *testJob) {
	t.Helper()
	for _, c := range job.judged().Conclusions {
		if c.Class == model.ClassKernelChoice {
			t.Errorf("got a choice of rank %d, want none", c.Rank)
		}
	}
}

// Of two peers one runs another kernel for the same work, and takes longer by it. What the rest of
// the job runs says which; where there is no rest, or it differs, nobody does.
func TestKernelChoiceOfAPair(t *testing.T) {
	for seed := range uint64(10) {
		for _, kernels := range [][]kernel{testKernels, unshaped()} {
			pairs := func() *testJob {
				job := pipelined(2, 4, 1, seed)
				job.kernels = kernels
				return job
			}
			expect(t, pairs().judged())
			for _, by := range []float64{1.3, 2} {
				got := pairs().with(renamed(5, "gemm", by)).judged()
				expect(t, got, what{model.ClassKernelChoice, 5})
				if len(got.Conclusions) == 1 && got.Conclusions[0].Rung != RungKernel {
					t.Errorf("got rung %s, want %s", got.Conclusions[0].Rung, RungKernel)
				}
			}
			expect(t, pairs().with(renamed(5, "gemm", 1)).judged())
			expect(t, pairs().with(renamed(5, "gemm", 0.7)).judged())
			// Both of a stage run another one: that is their stage's, though one is slower.
			unchosen(t, pairs().with(renamed(4, "gemm", 1.3)).with(renamed(5, "gemm", 1.5)))
			// It has half as much again to do.
			unchosen(t, pairs().with(renamed(5, "gemm", 1.3)).with(func(_ int, rows []testRow) { rows[5].kernels[0].n += rows[5].kernels[0].n / 2 }))
			// Besides the two there is one more rank: two of three are not most of a job.
			few := pipelined(2, 2, 1, seed).with(renamed(1, "gemm", 1.3)).with(func(_ int, rows []testRow) { rows[3].gone = true })
			few.kernels = kernels
			unchosen(t, few)
		}
		got := newTestJob(2, seed).with(renamed(1, "gemm", 1.3)).judged()
		expect(t, got)
		if a := got.Abstained; a == nil || a.Gate != gatePair || a.Rank != 1 {
			t.Errorf("seed %d: got %+v, want an abstention for %s", seed, a, gatePair)
		}
	}
}

// Steps in which the choice costs more for a while are no independent ones.
func TestHowSureAChoiceIs(t *testing.T) {
	z := func(memory float64) float64 {
		tr := trialOf(newTestJob(8, 1).with(renamed(3, "gemm", 1.2)))
		tr.noise.likely = memory
		tr.choices()
		if len(tr.out) != 1 {
			t.Fatalf("memory %g: got %+v, want one choice", memory, tr.out)
		}
		return tr.out[0].Steadiness
	}
	if forgets, lasts := z(0), z(0.9); lasts > 0.8*forgets {
		t.Errorf("got %g standard errors where noise lasts, and %g where it forgets", lasts, forgets)
	}
}
