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
