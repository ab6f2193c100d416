// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/kair"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// beatingJob is a job of 32 ranks of 2 layers of 24 kernels of 1 ms, each with an
// all-reduce at its end; rank 5 computes by a factor longer. Rank r's clock is r hours
// off.
func beatingJob(cfg Config, factor float64) *Engine {
	const ranks, steps, layers, kernels = 32, 6, 2, 24
	rng := rand.New(rand.NewPCG(1, 2))
	e := New(cfg, time.Now)
	for n := range int64(steps) {
		begin := float64(n) * 100
		ops := make([][]model.Op, ranks)
		at := make([]float64, ranks)
		for r := range ranks {
			at[r] = begin
		}
		for layer := range int64(layers) {
			last := 0.0
			for r := range ranks {
				for k := range int64(kernels) {
					length := 1 + 0.02*rng.NormFloat64()
					if r == 5 {
						length *= factor
					}
					ops[r] = append(ops[r], model.Op{
						Kind: model.KindCompute, Name: fmt.Sprintf("gemm_%d", k%3), Seq: layer*kernels + k/3, Step: model.Some(n),
						Stream: model.Some(int64(7)), Start: nanos(at[r]), End: nanos(at[r] + length),
					})
					at[r] += length
				}
				last = max(last, at[r])
			}
			for r := range ranks {
				c := collective(n, layer, 1024, at[r], last+0.5)
				c.Comm.Size = model.Some(int64(ranks))
				ops[r], at[r] = append(ops[r], c), last+0.5
			}
		}
		for r := range ranks {
			ops[r] = append(ops[r], stepOp(n, begin, at[r]))
			for i := range ops[r] {
				ops[r][i].Start += int64(r) * int64(time.Hour)
				ops[r][i].End += int64(r) * int64(time.Hour)
			}
			e.Add(model.Rank{
				JobID: "job", Incarnation: "life", Rank: int64(r), WorldSize: model.Some(int64(ranks)), ClockID: fmt.Sprint(r),
			}, ops[r])
		}
	}
	return e
}

func TestDivergenceIsOfRanksThatComputeSlower(t *testing.T) {
	j := beatingJob(NewDefaultConfig(), 1.3).Jobs()[0]
	require.Len(t, j.Divergence, 32)
	for r, d := range j.Divergence {
		if r != 5 {
			assert.Less(t, d, j.Divergence[5]/2, "rank %d", r)
		}
	}
	require.Len(t, j.Heatmap.Rows, 32)
	assert.Equal(t, int64(5), j.Heatmap.Rows[5].Worst)
	assert.Greater(t, j.Heatmap.Rows[5].Score, 2*j.Heatmap.Rows[4].Score)

	require.Len(t, j.Frequency.Ops, 4)
	assert.InDelta(t, 32, j.Frequency.Workers, 0)
	got, reduce := map[string]float64{}, collective(0, 0, 0, 0, 0)
	for _, o := range j.Frequency.Ops {
		for _, n := range o.Counts {
			got[o.Op] += float64(n)
		}
	}
	assert.InDelta(t, 512, got["gemm_0"], 1e-3, "16 of each of 32 ranks in a step")
	assert.InDelta(t, 512, got["gemm_2"], 1e-3)
	assert.InDelta(t, 64, got[reduce.ComparisonKey()], 1e-3)
}

func TestRhythmCanBeSwitchedOff(t *testing.T) {
	cfg := NewDefaultConfig()
	cfg.Rhythm = false
	j := beatingJob(cfg, 1.3).Jobs()[0]
	assert.Nil(t, j.Divergence)
	assert.Empty(t, j.Frequency.Ops)
	assert.Empty(t, j.Heatmap.Rows)
}

func TestKAIRNamesWhomItAccuses(t *testing.T) {
	cfg := NewDefaultConfig()
	cfg.Method = evidence.MethodKAIR
	e := beatingJob(cfg, 1.3)
	require.Len(t, e.sorted(), 1)
	named := e.sorted()[0].kairNamed()
	require.Len(t, named, 1)
	c := named[0]
	assert.Equal(t, int64(5), c.Rank)
	assert.Equal(t, model.ClassCompute, c.Class)
	assert.Equal(t, "gemm_0", c.Op, "the first of a layer that is late")
	assert.Equal(t, 6, c.Steps)
	assert.Equal(t, 31, c.Peers)
	assert.Greater(t, c.Numbers["z_score"], 3.0)
	assert.Less(t, c.Chance, 0.0014, "of three standard deviations")
	assert.Empty(t, beatingJobNamed(cfg, 1))
	cfg.Method = evidence.MethodLockstep
	assert.Empty(t, beatingJobNamed(cfg, 1.3), "KAIR was not asked")
}

// Outliers that KAIR finds no time to follow are counted.
func TestOutliersThatAreNotFollowedAreCounted(t *testing.T) {
	const ranks = 32
	w := newWorld(t, ranks, func(c *Config) { c.Method = evidence.MethodKAIR })
	slow := each(ranks, "c20:gemm c10:norm *", map[int]program{5: "c40:gemm c30:norm *"})
	w.step(0, slow...)
	require.Zero(t, w.e.Stats().ConclusionsDropped)
	r := w.e.sorted()[0].rhythm
	cfg := kair.Published()
	cfg.MaxWalks = 1
	r.accuser = kair.NewNamed(cfg, r.keys.name)
	w.step(1, slow...)
	assert.Positive(t, w.e.Stats().ConclusionsDropped)
	assert.Equal(t, r.accuser.Stats().WalksLeftOut, w.e.Stats().ConclusionsDropped)
}

func beatingJobNamed(cfg Config, factor float64) (ranks []int64) {
	for _, j := range beatingJob(cfg, factor).jobs {
		for _, c := range j.kairNamed() {
			ranks = append(ranks, c.Rank)
		}
	}
	return ranks
}

// BenchmarkRhythm is what hearing the rhythm of a step costs: 32 collectives and 320
// kernels a rank.
func BenchmarkRhythm(b *testing.B) {
	for _, ranks := range []int64{64, 512} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			bench := newBenchJob(ranks, 32, 10)
			e := New(NewDefaultConfig(), time.Now)
			for r := range bench.ranks {
				bench.ranks[r].WorldSize = model.Some(ranks + 1) // the step stays open
				e.Add(bench.ranks[r], bench.ops[r])
			}
			j := e.job(&bench.ranks[0])
			views := j.views(j.open[0])
			rec := &record{start: views[0].start, end: views[0].end}
			b.ReportAllocs()
			for b.Loop() {
				j.rhythm.hear(rec, views, &e.stats)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*bench.count), "ns/operation")
		})
	}
}
