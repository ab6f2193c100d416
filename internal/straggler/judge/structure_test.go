// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func pipelined(dp, pp, tp int, seed uint64) *testJob {
	j := newTestJob(dp, seed)
	j.pp, j.tp = pp, tp
	return j
}

// moreLayers gives a stage more of the same kernels.
func moreLayers(stage int, by float64) func(int, []testRow) {
	return func(_ int, rows []testRow) {
		for r := range rows {
			if rows[r].pp != stage {
				continue
			}
			for k := range rows[r].kernels {
				rows[r].kernels[k].n = int(float64(rows[r].kernels[k].n) * by)
			}
		}
	}
}

func TestStageWithMoreLayers(t *testing.T) {
	for _, c := range []struct{ dp, pp, tp int }{{1, 4, 1}, {1, 8, 8}, {2, 4, 1}, {4, 4, 2}, {16, 2, 1}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			job := pipelined(c.dp, c.pp, c.tp, 1).with(moreLayers(1, 1.5))
			got := job.judged()
			expect(t, got, what{model.ClassStageImbalance, -1})
			if len(got.Conclusions) == 1 {
				if g := got.Conclusions[0]; g.Stage != 1 || len(g.Ranks) != c.dp*c.tp {
					t.Errorf("got stage %d with ranks %v", g.Stage, g.Ranks)
				}
			}
		})
	}
}

func TestSlowRankOfAPipeline(t *testing.T) {
	for _, c := range []struct{ dp, pp, tp int }{{1, 4, 1}, {1, 8, 8}, {2, 4, 1}, {2, 2, 4}, {4, 4, 2}} {
		for _, by := range []float64{1.15, 1.5} {
			t.Run(fmt.Sprint(c, by), func(t *testing.T) {
				job := pipelined(c.dp, c.pp, c.tp, 1).with(slowRank(1, by))
				expect(t, job.judged(), what{model.ClassCompute, 1})
			})
		}
	}
}

func TestSlowRankBesideAStageImbalance(t *testing.T) {
	job := pipelined(4, 4, 2, 1).with(moreLayers(3, 1.3)).with(slowRank(2, 1.2))
	expect(t, job.judged(), what{model.ClassCompute, 2}, what{model.ClassStageImbalance, -1})
}

func TestSlowHostHoldsAStage(t *testing.T) {
	job := pipelined(2, 4, 4, 1).with(func(_ int, rows []testRow) {
		for r := range rows {
			if rows[r].pp == 2 {
				rows[r].slow = 1.3
			}
		}
	})
	expect(t, job.judged(), what{model.ClassNode, -1})
}

func TestWorkThatRotates(t *testing.T) {
	for _, dp := range []int{8, 64} {
		for _, known := range []bool{true, false} {
			rng := rand.New(rand.NewPCG(7, 7))
			job := newTestJob(dp, 1).with(func(_ int, rows []testRow) {
				for r := range rows {
					more := 0.7 + 0.6*rng.Float64()
					rows[r].slow *= more
					rows[r].correlation, rows[r].variation = 0.97, 0.2
					if known {
						for k := range rows[r].kernels {
							rows[r].kernels[k].work = 4096 * more
						}
					}
				}
			})
			t.Run(fmt.Sprint(dp, known), func(t *testing.T) {
				expect(t, job.judged(), what{model.ClassWorkImbalance, -1})
			})
		}
	}
}

func TestHotExpert(t *testing.T) {
	expert := func(r *testRow, tokens float64, shaped bool) {
		k := kernel{key: "expert", name: "grouped_gemm", shape: "64 bf16", n: 8, each: 2e-3 * tokens / 4096, work: tokens}
		if shaped {
			k.shape = fmt.Sprintf("%d bf16", int(tokens/64))
		}
		r.kernels = append(r.kernels, k)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for _, c := range []struct {
		name   string
		dp, ep int
		shaped bool
		tokens func(rank, expert int) float64
		ranks  []int64
	}{
		{"fixed, one replica", 8, 8, true, func(rank, _ int) float64 { return pickTokens(rank == 2) }, []int64{2}},
		{"fixed, one replica, one shape", 8, 8, false, func(rank, _ int) float64 { return pickTokens(rank == 2) }, []int64{2}},
		{"fixed, in all replicas", 64, 8, true, func(_, e int) float64 { return pickTokens(e == 2) }, []int64{2, 10, 18, 26, 34, 42, 50, 58}},
		{"rotating", 16, 16, true, func(int, int) float64 { return float64(2048 + 64*rng.IntN(64)) }, nil},
		{"rotating, one shape", 16, 16, false, func(int, int) float64 { return float64(2048 + 64*rng.IntN(64)) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := newTestJob(c.dp, 1)
			job.ep = c.ep
			job.with(func(_ int, rows []testRow) {
				for r := range rows {
					expert(&rows[r], c.tokens(r, rows[r].ep), c.shaped)
				}
			})
			got := job.judged()
			expect(t, got, what{model.ClassWorkImbalance, -1})
			if len(got.Conclusions) == 1 && !slices.Equal(got.Conclusions[0].Ranks, c.ranks) {
				t.Errorf("got ranks %v, want %v", got.Conclusions[0].Ranks, c.ranks)
			}
		})
	}
}

func pickTokens(hot bool) float64 {
	if hot {
		return 8192
	}
	return 4096
}

func TestAnotherKernelForTheSameWork(t *testing.T) {
	job := newTestJob(8, 1).with(func(_ int, rows []testRow) {
		rows[5].kernels[0].name = "gemm_64"
		rows[5].kernels[0].each *= 1.4
	})
	got := job.judged()
	expect(t, got, what{model.ClassKernelChoice, 5})
	if len(got.Conclusions) == 1 && got.Conclusions[0].Op != "gemm" {
		t.Errorf("got operation %q, want gemm", got.Conclusions[0].Op)
	}
}

// Devices of one kind differ by a percent, but not in which kernels they run: another one
// is told where a slow device is not yet.
func TestAnotherKernelIsToldSooner(t *testing.T) {
	for _, c := range []struct {
		name string
		by   float64
		want []what
	}{
		{"gemm_64", 1.06, []what{{model.ClassKernelChoice, 5}}},
		{"gemm_64", 1.03, nil},
		{"gemm_128", 1.06, nil},
	} {
		expect(t, newTestJob(64, 1).with(func(_ int, rows []testRow) {
			rows[5].kernels[0].name = c.name
			rows[5].kernels[0].each *= c.by
		}).judged(), c.want...)
	}
}

// The grid of another kernel is another for the same work: how much there was to do, the
// rank's other kernels say.
func TestAnotherKernelHasAnotherGrid(t *testing.T) {
	for name, c := range map[string]struct {
		more float64 // work in all kernels
		want what
	}{
		"the same work": {1, what{model.ClassKernelChoice, 5}},
		"more work":     {1.4, what{model.ClassWorkImbalance, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			job := newTestJob(8, 1).with(func(_ int, rows []testRow) {
				for r := range rows {
					for k := range rows[r].kernels {
						of := &rows[r].kernels[k]
						of.work, of.shape = 1000, "1000,1,1"
						if r != 5 {
							continue
						}
						of.work *= c.more
						of.each *= c.more
						if k == 0 {
							of.name, of.work = "gemm_64", 4000*c.more
							of.each *= 1.4
						}
						of.shape = fmt.Sprintf("%g,1,1", of.work)
					}
				}
			})
			expect(t, job.judged(), c.want)
		})
	}
}

func TestWholeJobBecomesSlower(t *testing.T) {
	job := newTestJob(16, 1)
	job.steps = 100
	job.with(func(step int, rows []testRow) {
		if step >= 70 {
			for r := range rows {
				rows[r].slow = 1.2
			}
		}
	})
	job.seconds = func(step int) float64 {
		if step >= 70 {
			return 0.165 + 0.001*float64(step%3)
		}
		return 0.15 + 0.001*float64(step%3)
	}
	got := job.judged()
	expect(t, got, what{model.ClassJobWide, -1})
	if len(got.Conclusions) == 1 {
		if c := got.Conclusions[0]; c.First != 70 || c.Op != partDevice {
			t.Errorf("got a change of %s at step %d, want compute at 70", c.Op, c.First)
		}
	}
}

// Where nothing is known of devices, nobody knows what of a step became longer.
func TestWhatAChangeIsOfMayNotBeKnown(t *testing.T) {
	for want, device := range map[string]float32{partDevice: 0.1, model.OpOther: 0} {
		steps := make([]longStep, 40)
		for i := range steps {
			steps[i] = longStep{step: int64(i), seconds: 0.15, device: device, host: 0.05}
			if i >= 20 {
				steps[i].seconds, steps[i].device, steps[i].host = 0.2, 1.5*device, 0.05
				if device == 0 {
					steps[i].host = 0.1
				}
			}
		}
		c := changeOf(steps)
		if got, s := c.part(); got != want || math.Abs(s-0.05) > 1e-6 {
			t.Errorf("got %s by %g s, want %s by 0.05 s", got, s, want)
		}
	}
}

// mesh makes all ranks send to all others; slow says by what a transfer is longer.
func mesh(n int, slow func(src, dst int64) float64) func(*rand.Rand, int) []Link {
	return func(rng *rand.Rand, _ int) (out []Link) {
		for s := range int64(n) {
			for d := range int64(n) {
				if s == d {
					continue
				}
				own := 4e-3 * slow(s, d) * (1 + 0.1*rng.NormFloat64())
				out = append(out, Link{Src: s, Dst: d, Op: "send_recv", Class: 1, N: 4, Own: float32(max(0, own)), Bytes: 1 << 24})
			}
		}
		return out
	}
}

func TestLinks(t *testing.T) {
	for _, c := range []struct {
		name       string
		slow       func(src, dst int64) float64
		rank, peer int64
		side       string
	}{
		{"one link", func(s, d int64) float64 { return when(s == 2 && d == 5, 2) }, 2, 5, ""},
		{"sender's card", func(s, _ int64) float64 { return when(s == 2, 2) }, 2, -1, SideSend},
		{"receiver's card", func(_, d int64) float64 { return when(d == 5, 2) }, 5, -1, SideReceive},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := newTestJob(8, 1)
			job.links = mesh(8, c.slow)
			got := job.judged()
			expect(t, got, what{model.ClassLink, c.rank})
			if len(got.Conclusions) == 1 {
				if g := got.Conclusions[0]; g.Peer != c.peer || g.Side != c.side {
					t.Errorf("got peer %d side %q, want %d %q", g.Peer, g.Side, c.peer, c.side)
				}
			}
		})
	}
	t.Run("all alike", func(t *testing.T) {
		job := newTestJob(8, 1)
		job.links = mesh(8, func(int64, int64) float64 { return 3 })
		expect(t, job.judged())
	})
}

func when(yes bool, x float64) float64 {
	if yes {
		return x
	}
	return 1
}

func TestSlowGroup(t *testing.T) {
	job := newTestJob(16, 1)
	job.links = func(rng *rand.Rand, _ int) (out []Link) {
		for g := range int64(4) {
			k := Link{Src: -1, Dst: -1, Comm: fmt.Sprint("dp", g), Op: "all_reduce", Class: 9, N: 8, Bytes: 1 << 26}
			for r := range int64(4) {
				k.Members = append(k.Members, g+4*r)
			}
			k.Own = float32(10e-3 * when(g == 2, 1.6) * (1 + 0.05*rng.NormFloat64()))
			out = append(out, k)
		}
		return out
	}
	got := job.judged()
	expect(t, got, what{model.ClassLink, -1})
	if len(got.Conclusions) == 1 && (got.Conclusions[0].Comm != "dp2" || len(got.Conclusions[0].Ranks) != 4) {
		t.Errorf("got %+v, want the four ranks of dp2", got.Conclusions[0])
	}
}

func TestWaitsOnTheWire(t *testing.T) {
	job := newTestJob(8, 1)
	job.links = func(rng *rand.Rand, _ int) (out []Link) {
		for s := range int64(8) {
			x := 2e-4 * rng.NormFloat64()
			if s == 6 {
				x += 8e-3
			}
			out = append(out, Link{Src: s, Dst: -1, Op: "all_reduce", Class: 1, N: 4, Own: 12e-3, Given: true, Excess: float32(x)})
		}
		return out
	}
	expect(t, job.judged(), what{model.ClassLink, 6})
}

// Where nobody counted the work, that ranks differ from step to step is a weak sign of it,
// however many they are; where what they differ by lasts, it is none.
func TestUncountedWork(t *testing.T) {
	for _, dp := range []int{8, 64, 512} {
		job := newTestJob(dp, 7)
		job.noise, job.kernels, job.steps = 0.04, testKernels[:1], 32
		for _, c := range job.judged().Conclusions {
			if c.Class != model.ClassWorkImbalance || c.Confidence > 0.7 || c.Chance <= 0 {
				t.Errorf("%d ranks: got %s with confidence %g and chance %g", dp, c.Class, c.Confidence, c.Chance)
			}
		}
		warm := newTestJob(dp, 7).with(remembering(1, dp, 0.05, 0.9))
		warm.kernels = testKernels[:1]
		for _, c := range warm.judged().Conclusions {
			t.Errorf("%d ranks, noise that lasts: got %s", dp, c.Class)
		}
	}
}

// A host that holds exactly one stage is slow, or the stage has more to do: unless the same
// kernels ran elsewhere, nothing tells which.
func TestAStageAndAHostThatCoincide(t *testing.T) {
	for name, of := range map[string]struct {
		perHost int
		shaped  bool
		want    string
	}{
		"kernels as elsewhere":  {4, true, ""},
		"nothing to compare":    {4, false, "nodebb"},
		"a host of two stages":  {8, false, ""},
		"a stage on four hosts": {1, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			job := pipelined(2, 4, 2, 1)
			job.perHost = of.perHost
			if !of.shaped {
				job.kernels = unshaped()
			}
			job.with(func(_ int, rows []testRow) {
				for r := range rows {
					if of.perHost == 4 {
						rows[r].host = fmt.Sprint("node", string("abcd"[rows[r].pp]), "b")
					}
				}
			}).with(moreLayers(1, 1.5))
			got := job.judged()
			expect(t, got, what{model.ClassStageImbalance, -1})
			if len(got.Conclusions) == 1 && got.Conclusions[0].Host != of.want {
				t.Errorf("got host %q, want %q", got.Conclusions[0].Host, of.want)
			}
		})
	}
}
