// SPDX-License-Identifier: Apache-2.0

package kair

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestWindowsOfAStep(t *testing.T) {
	g := NewGrid(4, 1000, 2000)
	for at, want := range map[int64]int{0: 0, 1000: 0, 1001: 0, 1250: 0, 1251: 1, 1500: 1, 1750: 2, 1751: 3, 2000: 3, 9999: 3} {
		assert.Equal(t, want, g.Window(at), "at %d", at)
	}
	g = NewGrid(4, math.MinInt64, math.MaxInt64)
	assert.Equal(t, 3, g.Window(math.MaxInt64))
	assert.Equal(t, 0, g.Window(math.MinInt64+1))
	const now = int64(1.7e18) // floating point has no nanoseconds of it
	g = NewGrid(4, now, now+4)
	assert.Equal(t, 0, g.Window(now+1))
	assert.Equal(t, 3, g.Window(now+4))
	g = NewGrid(4, 1000, 1001)
	assert.Equal(t, 3, g.Window(math.MaxInt64))
	g = NewGrid(4, 1000, 1000)
	assert.Zero(t, g.Window(5000), "a step of no length has one window")
}

func op(step int64, name string, seq int64, start, end float64) model.Op {
	return model.Op{
		Kind: model.KindCompute, Name: name, Seq: seq, Step: model.Some(step), Stream: model.Some(int64(7)),
		Start: int64(start * 1e6), End: int64(end * 1e6),
	}
}

// Two workers, four windows of 1 ms: gemm twice in the first window at worker 0 and
// once in the second at both, copy once in the last at worker 1.
func TestFrequency(t *testing.T) {
	cfg := Published()
	cfg.Windows, cfg.MaxShown = 4, 2
	a := New(cfg)
	for step := range int64(3) {
		from := float64(step) * 100
		a.Add(model.Rank{Rank: 0}, []model.Op{
			op(step, "gemm", 0, from, from+0.5), op(step, "gemm", 1, from+0.5, from+0.9), op(step, "gemm", 2, from+0.9, from+1.5),
		})
		a.Add(model.Rank{Rank: 1}, []model.Op{
			op(step, "gemm", 0, from, from+1.5), op(step, "relu", 0, from+3, from+4), op(step, "rare", 0, from+2, from+3),
		})
		a.Close(step)
	}
	v := a.Frequency()
	assert.Equal(t, 4, v.Windows)
	assert.Equal(t, 3, v.Steps)
	assert.InDelta(t, 2, v.Workers, 0)
	assert.InDelta(t, 0.004, v.Seconds, 1e-12)
	require.Len(t, v.Ops, 3)
	assert.Equal(t, OpWindows{Op: "gemm", Counts: []float32{2, 2, 0, 0}, Share: []float32{0.5, 1, 0, 0}}, v.Ops[0])
	// Events come by start, so that relu found the second place taken by rare.
	assert.Equal(t, OpWindows{Op: "rare", Counts: []float32{0, 0, 1, 0}, Share: []float32{0, 0, 0.5, 0}}, v.Ops[1])
	assert.Equal(t, OpWindows{Op: model.OpOther, Counts: []float32{0, 0, 0, 1}, Share: []float32{0, 0, 0, 0.5}}, v.Ops[2])
}

// What comes late but often replaces, at the end of a span, what came first and rarely.
func TestFrequencyKeepsTheMostFrequent(t *testing.T) {
	f := NewFrequency(2, 3, 4)
	for range 8 {
		f.Begin(1000)
		f.Worker()
		for key := uint32(1); key <= 200; key++ {
			f.Add(key, 0)
		}
		for range 9 {
			f.Add(150, 1)
			f.Add(160, 1)
		}
	}
	v := f.View(func(k uint32) string { return strconv.Itoa(int(k)) })
	require.Len(t, v.Ops, 4)
	assert.Equal(t, "150", v.Ops[0].Op)
	assert.Equal(t, "160", v.Ops[1].Op)
	assert.Equal(t, "0", v.Ops[3].Op, "all others")
	sum := float32(0)
	for _, o := range v.Ops {
		sum += o.Counts[0] + o.Counts[1]
	}
	assert.InDelta(t, 218, sum, 1e-3, "operations of a step: none is lost in the exchange")
}

func TestHeatmap(t *testing.T) {
	p := program{ranks: 64, layers: 8, kernels: 12, kernel: steady(23, 1.3), rng: rand.New(rand.NewPCG(8, 1))}
	a := New(Plus())
	p.run(a, 1)
	h := a.Heatmap(64)
	require.Len(t, h.Rows, 64)
	row := h.Rows[23]
	assert.Equal(t, int64(23), row.Worst)
	assert.InDelta(t, a.Scores()[0].Score, row.Score, 1e-9, "there is one step")
	// The others end at 1/1.3 of the step; by then it has done as much of its own.
	assert.InDelta(t, 1/1.3-1, row.Ahead[98], 0.02)
	assert.InDelta(t, 0, row.Ahead[127], 1e-6)
	h = a.Heatmap(10)
	require.Len(t, h.Rows, 8, "rows of eight ranks are the first that are few enough")
	assert.Equal(t, HeatRow{Role: 0, First: 16, Last: 23, Ranks: 8, Worst: 23, Score: row.Score, Ahead: row.Ahead}, h.Rows[2])
	assert.Zero(t, h.LeftOut)
}

func TestHeatmapOfManyRoles(t *testing.T) {
	a := New(Plus())
	for r := range int64(40) {
		a.Add(model.Rank{Rank: r, Parallel: model.Parallel{PP: model.Some(r / 2)}}, []model.Op{op(0, "gemm", 0, 0, 1)})
	}
	a.Close(0)
	h := a.Heatmap(12)
	assert.Len(t, h.Rows, 12, "of twenty roles")
	assert.Equal(t, 16, h.LeftOut)
	assert.Len(t, a.Scores(), 40)
}

// A large cohort is scored by bounds; the first are exact, and no other is above them.
func TestScoresOfALargeCohort(t *testing.T) {
	p := program{ranks: 300, layers: 2, kernels: 12, kernel: steady(123, 1.2), rng: rand.New(rand.NewPCG(9, 1))}
	a := New(Published())
	p.run(a, 1)
	exact := a.rhythm.latest[0].table.Pairwise()
	scores := a.Scores()
	assert.Equal(t, int64(123), scores[0].Rank)
	for i, s := range scores {
		if i < surely {
			assert.InDelta(t, exact[s.Rank], s.Score, 1e-12)
		}
		assert.InDelta(t, exact[s.Rank], s.Score, 0.02)
	}
}

func TestScoresForgetOldSteps(t *testing.T) {
	cfg := Published()
	cfg.Span = 4
	a := New(cfg)
	rng := rand.New(rand.NewPCG(10, 1))
	slow := program{ranks: 32, layers: 2, kernels: 6, kernel: steady(5, 1.5), rng: rng}
	sane := program{ranks: 32, layers: 2, kernels: 6, kernel: steady(-1, 1), rng: rng}
	before := 0.0
	for n := range int64(20) {
		p := &slow
		if n >= 8 {
			p = &sane
		}
		for r, ops := range p.step(n) {
			a.Add(model.Rank{Rank: int64(r)}, ops)
		}
		a.Close(n)
		if n == 7 {
			require.Len(t, a.Accusations(), 1)
			before = a.Scores()[0].Score
		}
	}
	assert.Empty(t, a.Accusations())
	assert.LessOrEqual(t, a.Scores()[0].Steps, 8)
	assert.Less(t, a.Scores()[0].Score, before/2)
}

func TestBadInputIsBoundedAndCounted(t *testing.T) {
	cfg := Published()
	cfg.MaxRanks, cfg.MaxOps, cfg.MaxKeys, cfg.MaxOpenSteps = 2, 5, 3, 2
	a := New(cfg)
	a.Add(model.Rank{Rank: 0}, []model.Op{{Kind: model.KindCompute, Name: "no step"}, {Kind: model.KindStep, Step: model.Some(int64(1))}, {Kind: "what"}})
	assert.Equal(t, Stats{OpsWithoutStep: 1}, a.Stats())
	for r := range int64(3) {
		a.Add(model.Rank{Rank: r}, []model.Op{op(1, "a", 0, 5, 1), op(1, "b", 0, 1, 2), op(1, "c", 0, -9e12, 9e12)})
	}
	assert.Equal(t, Stats{OpsWithoutStep: 1, OpsRefused: 3, OpsDropped: 1, KeysOverflowed: 1}, a.Stats())
	for n := range int64(4) {
		a.Add(model.Rank{Rank: 0}, []model.Op{op(n+2, "a", 0, 1, 2)})
	}
	assert.Equal(t, int64(3), a.Stats().StepsEvicted)
	a.Add(model.Rank{Rank: 0}, []model.Op{op(1, "a", 0, 1, 2)})
	assert.Equal(t, int64(1), a.Stats().LateOps)
	a.Close(99)
	a.Close(5)
	assert.NotEmpty(t, a.Scores())
}

func TestOpenStepsAreBoundedTogether(t *testing.T) {
	cfg := Published()
	cfg.MaxOpenOps = 10
	a := New(cfg)
	ops := func(step int64, n int) (out []model.Op) {
		for i := range n {
			out = append(out, op(step, "a", int64(i), float64(i), float64(i+1)))
		}
		return out
	}
	a.Add(model.Rank{}, ops(1, 5))
	a.Add(model.Rank{}, ops(2, 5))
	assert.Zero(t, a.Stats().StepsEvicted)
	a.Add(model.Rank{}, ops(3, 5))
	assert.Equal(t, int64(1), a.Stats().StepsEvicted, "the oldest makes room")
	a.Add(model.Rank{}, ops(4, 20))
	assert.Equal(t, int64(3), a.Stats().StepsEvicted, "one step alone may be larger")
	assert.Equal(t, 1, a.open.Len())
	a.Close(4)
	a.Add(model.Rank{}, ops(5, 5))
	a.Add(model.Rank{}, ops(6, 5))
	assert.Equal(t, int64(3), a.Stats().StepsEvicted, "what was closed counts no more")
}

// Delivered twice, a step says the same.
func TestDuplicatesChangeNothing(t *testing.T) {
	once, twice := New(Published()), New(Published())
	p := program{ranks: 32, layers: 2, kernels: 6, barriers: true, kernel: steady(5, 1.3), rng: rand.New(rand.NewPCG(11, 1))}
	for n := range int64(4) {
		for r, ops := range p.step(n) {
			once.Add(model.Rank{Rank: int64(r)}, ops)
			twice.Add(model.Rank{Rank: int64(r)}, ops)
			twice.Add(model.Rank{Rank: int64(r)}, ops[:len(ops)/2])
		}
		once.Close(n)
		twice.Close(n)
	}
	assert.Equal(t, once.Scores(), twice.Scores())
	assert.Equal(t, once.Accusations(), twice.Accusations())
	assert.Equal(t, once.Frequency(), twice.Frequency())
}

// BenchmarkStep is what one step costs, per operation.
func BenchmarkStep(b *testing.B) {
	for _, ranks := range []int{64, 512} {
		b.Run(strconv.Itoa(ranks), func(b *testing.B) {
			p := program{ranks: ranks, layers: 16, kernels: 16, barriers: true, kernel: steady(3, 1.2), rng: rand.New(rand.NewPCG(12, 1))}
			a := New(Published())
			ops := 0
			for n := int64(0); b.Loop(); n++ {
				b.StopTimer()
				step := p.step(n)
				b.StartTimer()
				for r := range step {
					ops += len(step[r])
					a.Add(model.Rank{Rank: int64(r)}, step[r])
				}
				a.Close(n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(ops), "ns/operation")
		})
	}
}
