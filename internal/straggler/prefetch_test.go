// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// prefetching simulates sharded training: the parameters of each layer are gathered
// while the device still computes the layer before, one layer ahead. Only the
// collectives are recorded, all launched far ahead, and no step waits for anything,
// so that ranks run ahead of each other by up to a layer. Times in ms.
type prefetching struct {
	layers   int
	noise    float64 // of a layer's compute, relative, standard deviation
	transfer float64
	pace     []float64 // of each rank
	computed []float64 // when the layer before was
	before   []float64 // and the one before that
	ended    float64   // the last collective
	waits    bool      // hosts wait for their devices at the end of each step
}

func (p *prefetching) step(w *world, rng *rand.Rand, n int64) {
	const layer = 2.0
	ops := make([][]model.Op, len(p.pace))
	launched := make([]float64, len(p.pace))
	for r := range launched {
		if launched[r] = max(0, p.ended-20); p.waits {
			launched[r] = max(p.ended, p.computed[r]) + 0.1
			p.before[r] = launched[r] + 0.02
		}
	}
	for l := range p.layers {
		starts := make([]float64, len(p.pace))
		last := 0.0
		for r := range starts {
			starts[r] = max(p.ended, p.before[r])
			last = max(last, starts[r])
		}
		p.ended = last + p.transfer
		for r := range starts {
			ops[r] = append(ops[r], model.Op{
				Kind: model.KindCollective, Name: model.AllGather, Seq: int64(l), Step: model.Some(n), Stream: model.Some[int64](1),
				Start: ns(starts[r]), End: ns(p.ended), Launch: model.Some(ns(launched[r])),
				Comm:       model.Comm{ID: "world", Size: model.Some(int64(len(p.pace)))},
				Collective: model.Collective{Name: model.AllGather, Seq: model.Some(n*int64(p.layers) + int64(l)), SeqScope: model.ScopeCommFunc},
			})
			p.before[r] = p.computed[r]
			p.computed[r] = max(p.computed[r], p.ended) + layer*p.pace[r]*max(0.1, 1+p.noise*rng.NormFloat64())
		}
	}
	for r := range ops {
		ops[r] = append(ops[r], model.Op{
			Kind: model.KindStep, Name: "step", Step: model.Some(n), Start: ns(launched[r]), End: ns(p.ended),
			StepOps: model.Some(int64(p.layers)),
		})
		w.e.Add(w.rank(int64(r)), ops[r])
	}
}

// named runs the job, with rank 3 as slow as said, and returns who is named.
func (p prefetching) named(t *testing.T, seed, steps int, slow float64) map[int64]bool {
	t.Helper()
	const ranks = 8
	w := newWorld(t, ranks)
	rng := rand.New(rand.NewPCG(uint64(seed), 71))
	p.layers, p.noise, p.transfer = 24, 0.1, 0.05
	p.computed, p.before, p.pace = make([]float64, ranks), make([]float64, ranks), slices.Repeat([]float64{1}, ranks)
	p.pace[3] = slow
	out := map[int64]bool{}
	for n := range steps {
		p.step(w, rng, int64(n))
		for _, v := range accusations(w.e.Verdicts()) {
			out[v.Finding.Rank.V] = true
		}
	}
	return out
}

// Who is behind stays the last for long, and chance makes some of its layers longer
// than the others'.
func TestHealthyPrefetchingJobsAreLeftAlone(t *testing.T) {
	jobs, named := soakJobs(t), 0
	for seed := range jobs {
		if len(prefetching{}.named(t, seed, 64, 1)) > 0 {
			named++
		}
	}
	t.Logf("jobs with a finding: %d of %d", named, jobs)
	assert.LessOrEqual(t, named, jobs/40)
}

// From the same start in every step, the others are seen to be faster until they have
// run ahead as far as they can.
func TestASlowRankOfAPrefetchingJobIsNamed(t *testing.T) {
	for seed := range 4 {
		assert.Equal(t, map[int64]bool{3: true}, prefetching{waits: true}.named(t, seed, 40, 1.2))
	}
}

// Where no step waits, a slow rank and one that is merely behind leave the same
// stamps: their peers have computed before they are seen to.
func TestASlowRankThatNobodyTellsFromOneBehindIsNotNamed(t *testing.T) {
	assert.Empty(t, prefetching{}.named(t, 1, 40, 1.4))
}
