package straggler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// warming shows a world steps whose kernels vary by so much, nine tenths of it as in the
// step before, and returns the ranks that were accused. slow is a factor on rank 1.
func warming(t *testing.T, seed uint64, ranks int, sd, slow float64) map[int64]bool {
	t.Helper()
	const memory = 0.9
	rng := rand.New(rand.NewPCG(seed, 3))
	by := make([]float64, ranks)
	w := newWorld(t, ranks)
	accused := map[int64]bool{}
	for n := range int64(128) {
		programs := make([]program, ranks)
		for r := range programs {
			by[r] = memory*by[r] + sd*math.Sqrt(1-memory*memory)*rng.NormFloat64()
			f := 1 + by[r]
			if r == 1 && n >= 40 {
				f *= slow
			}
			programs[r] = fmt.Sprintf("h1:data c%.3f:gemm c%.3f:norm *", 20*f, 5*f)
		}
		w.step(n, programs...)
		if n%2 == 0 {
			continue
		}
		for _, v := range w.e.Verdicts() {
			if f := &v.Finding; f.Class == model.ClassCompute || f.Class == model.ClassHost {
				accused[f.Rank.Or(-1)] = true
			}
		}
	}
	return accused
}

// Steps that follow each other are alike: that a rank is slow in many of them is no more
// than chance, unless it is by more.
func TestNoiseWithMemoryAccusesNobody(t *testing.T) {
	for _, ranks := range []int{4, 8} {
		for _, sd := range []float64{0.03, 0.05} {
			for seed := range uint64(4) {
				assert.Empty(t, warming(t, seed, ranks, sd, 1), "%d ranks, deviation %g, seed %d", ranks, sd, seed)
			}
		}
		assert.Equal(t, map[int64]bool{1: true}, warming(t, 9, ranks, 0.03, 1.3), "%d ranks, one slow by 1.3", ranks)
	}
}
