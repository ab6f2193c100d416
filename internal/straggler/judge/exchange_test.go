// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// expertJob runs one kernel between two all_to_all's, always in the same shape.
func expertJob(dp int) *testJob {
	job := newTestJob(dp, 1)
	job.kernels = append([]kernel{{key: "experts", name: "grouped", shape: "64x8", n: 16, each: 2e-3, between: 16, sent: 1 << 20}}, testKernels...)
	return job
}

// manyExperts spends four fifths of its time on experts.
func manyExperts() *testJob {
	job := expertJob(8)
	job.kernels[0].each *= 10
	return job
}

// withExperts changes what a rank's experts do.
func withExperts(rank int, f func(*kernel)) func(int, []testRow) {
	return func(_ int, rows []testRow) { f(&rows[rank].kernels[0]) }
}

func expectAbstained(t *testing.T, got Judgement, rank int64) {
	t.Helper()
	expect(t, got)
	if a := got.Abstained; a == nil || a.Gate != gateWork || a.Rank != rank {
		t.Errorf("got %+v, want rank %d kept back by %s", a, rank, gateWork)
	}
}

func TestWorkOfUnknownAmount(t *testing.T) {
	for _, by := range []float64{1.3, 3} {
		expectAbstained(t, expertJob(8).with(slowKernel(3, "experts", by)).judged(), 3)
	}
	blind := expertJob(8).with(slowKernel(3, "experts", 2))
	blind.kernels[0].shape, blind.kernels[0].sent = "", 0
	expectAbstained(t, blind.judged(), 3)

	// Two equal ranks, and a third that nobody is like: the kernels' own comparison.
	expectAbstained(t, expertJob(2).with(slowKernel(1, "experts", 4)).judged(), 1)
	pair := expertJob(2).with(slowKernel(1, "experts", 4))
	pair.kernels[0].shape = ""
	expectAbstained(t, pair.judged(), 1)
}

func TestUnknownWorkOfAWholeHost(t *testing.T) {
	job := expertJob(16)
	job.perHost = 2
	for _, r := range []int{4, 5} {
		job.with(slowKernel(r, "experts", 1.5))
	}
	expect(t, job.judged())
}

func TestUnknownWorkNowAndThen(t *testing.T) {
	slow := func(key string) *testJob {
		return expertJob(16).with(func(step int, rows []testRow) {
			if step%5 == 0 {
				slowKernel(3, key, 2)(step, rows)
			}
		})
	}
	expect(t, slow("experts").judged())
	expect(t, slow("gemm").judged(), what{model.ClassCompute, 3})
}

func TestASlowDeviceIsNamedInAnExpertGroup(t *testing.T) {
	for name, job := range map[string]*testJob{
		"all kernels":            expertJob(8).with(slowRank(3, 1.1)),
		"and more to do":         expertJob(8).with(slowRank(3, 1.2)).with(slowKernel(3, "experts", 2)),
		"little else to do":      manyExperts().with(slowRank(3, 1.1)),
		"of a pair":              expertJob(2).with(slowRank(3%2, 1.5)),
		"for some steps":         expertJob(8).with(slowDuring(3, 1.3, 20, 40)),
		"one kernel elsewhere":   expertJob(8).with(slowKernel(3, "gemm", 1.5)),
		"a shape tells":          expertJob(8).with(slowKernel(3, "experts", 1.5)).with(withExperts(5, func(k *kernel) { k.shape = "96x8" })),
		"bytes tell":             expertJob(8).with(slowKernel(3, "experts", 1.5)).with(withExperts(5, func(k *kernel) { k.sent *= 2; k.each *= 2 })),
		"it runs elsewhere, too": expertJob(8).with(slowKernel(3, "experts", 1.5)).with(withExperts(6, func(k *kernel) { k.between-- })),
	} {
		t.Run(name, func(t *testing.T) {
			got := job.judged()
			rank := int64(3)
			if job.world() == 2 {
				rank = 1
			}
			for _, c := range got.Conclusions {
				if c.Class == model.ClassCompute && c.Rank == rank {
					return
				}
			}
			t.Errorf("got %+v, want rank %d; abstained %+v", got.Conclusions, rank, got.Abstained)
		})
	}
}

// A persistent kernel has one shape whatever it does, and runs in the dense layers, too.
func TestExpertsShareAKernelWithOtherLayers(t *testing.T) {
	mixed := func(by, sent float64) *testJob {
		return expertJob(8).with(func(_ int, rows []testRow) {
			for r := range rows {
				rows[r].kernels[0].between = 12
			}
			rows[3].kernels[0].each *= by
			rows[3].kernels[0].sent *= sent
		})
	}
	expectAbstained(t, mixed(1.5, 2).judged(), 3)
	expect(t, mixed(1.5, 1).judged(), what{model.ClassCompute, 3})
	expect(t, mixed(1.5, 0.5).judged(), what{model.ClassCompute, 3})
	expect(t, mixed(1.5, 2).with(slowRank(3, 1.1)).judged(), what{model.ClassCompute, 3})
}

func TestAnotherKernelForAnUnknownAmount(t *testing.T) {
	other := func(k int) *testJob {
		return expertJob(8).with(func(_ int, rows []testRow) {
			rows[3].kernels[k].name += "_large"
			rows[3].kernels[k].each *= 1.5
		})
	}
	expect(t, other(0).judged())
	expect(t, other(1).judged(), what{model.ClassKernelChoice, 3})
}

func TestASlowHostOfAHotExpert(t *testing.T) {
	job := expertJob(8).with(slowKernel(3, "experts", 3)).with(idleRank(3, "data_loading", 0.05))
	expect(t, job.judged(), what{model.ClassHost, 3})
}

func TestBytesSentBackAreWork(t *testing.T) {
	job := expertJob(8).with(withExperts(3, func(k *kernel) { k.sent *= 1.5; k.each *= 1.5 }))
	got := job.judged()
	expect(t, got, what{model.ClassWorkImbalance, -1})
	if len(got.Conclusions) == 1 && (len(got.Conclusions[0].Ranks) != 1 || got.Conclusions[0].Ranks[0] != 3) {
		t.Errorf("got ranks %v, want 3", got.Conclusions[0].Ranks)
	}
}
