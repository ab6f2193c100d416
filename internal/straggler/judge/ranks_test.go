// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestOneRankIsNamed(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(int, []testRow)
		class string
		op    string
		cause string
	}{
		{"compute by 1.1", slowRank(3, 1.1), model.ClassCompute, "gemm", ""},
		{"compute by 1.3", slowRank(3, 1.3), model.ClassCompute, "gemm", ""},
		{"one kernel", slowKernel(3, "attention", 1.5), model.ClassCompute, "attention", ""},
		{"data loading", idleRank(3, "data_loading", 20e-3), model.ClassHost, "data_loading", model.CauseDataLoader},
		{"pauses", pausingRank(3, 6, 0.1), model.ClassHost, "garbage_collection", model.CauseGC},
	} {
		for _, dp := range []int{4, 8, 64} {
			t.Run(fmt.Sprintf("%s of %d", c.name, dp), func(t *testing.T) {
				got := newTestJob(dp, 1).with(c.fault).judged()
				expect(t, got, what{c.class, 3})
				if len(got.Conclusions) == 1 {
					if g := got.Conclusions[0]; g.Op != c.op || g.Cause != c.cause {
						t.Errorf("got %s because of %q, want %s %q", g.Op, g.Cause, c.op, c.cause)
					}
				}
			})
		}
	}
}

func TestNobodyIsNamed(t *testing.T) {
	for _, dp := range []int{1, 2, 3, 8, 64, 512} {
		t.Run(fmt.Sprint(dp), func(t *testing.T) {
			job := newTestJob(dp, uint64(dp))
			job.steps = 100
			judge := New(Config{}, job.place)
			for step := range job.steps {
				judge.Add(job.step(step))
				if dp < 100 || step%16 == 0 {
					expect(t, judge.Judge())
				}
			}
		})
	}
}

func TestEpisodeIsFound(t *testing.T) {
	got := newTestJob(16, 1).with(slowDuring(5, 1.3, 30, 38)).judged()
	expect(t, got, what{model.ClassCompute, 5})
	if len(got.Conclusions) == 1 {
		if c := got.Conclusions[0]; c.First != 30 || c.Last != 37 {
			t.Errorf("got steps %d to %d, want 30 to 37", c.First, c.Last)
		}
	}
}

func TestPausesOfAllAreJitter(t *testing.T) {
	for _, dp := range []int{8, 64, 512} {
		job := newTestJob(dp, 1).with(func(step int, rows []testRow) {
			for r := range rows {
				pausingRank(r, 16, 0.1)(step, rows)
			}
		})
		got := job.judged()
		expect(t, got, what{model.ClassJitter, -1})
		if len(got.Conclusions) == 1 {
			if p := got.Conclusions[0].Pauses; p == nil || p.Period != 16 || p.Median < 0.08 {
				t.Errorf("got %+v, want a pause of 0.1 s every 16 steps", p)
			}
		}
	}
}

func TestSeveralAtOnce(t *testing.T) {
	job := newTestJob(64, 1).with(slowRank(3, 1.1)).with(slowRank(9, 1.3)).with(idleRank(40, "forward", 0.03))
	expect(t, job.judged(), what{model.ClassCompute, 3}, what{model.ClassCompute, 9}, what{model.ClassHost, 40})
}

func TestHalfOfTheCohortIsNobody(t *testing.T) {
	job := newTestJob(8, 1)
	job.perHost = 64
	for r := range 4 {
		job.with(slowRank(2*r, 1.3))
	}
	got := job.judged()
	expect(t, got)
	if got.Abstained == nil || got.Abstained.Rank%2 != 0 {
		t.Errorf("got %+v, want an abstention that tells of one of the slower half", got.Abstained)
	}
}

// Where half of a cohort or more is slower, each rank looks like chance, or like its peers.
func TestADividedCohortIsNoHealth(t *testing.T) {
	for _, c := range []struct {
		ranks, slow, perHost int
		by                   float64
		want                 string
	}{
		{8, 4, 64, 1.2, gateHalf},
		{8, 5, 64, 1.2, gateHalf},
		{8, 6, 64, 1.1, gateHalf},
		{8, 7, 64, 1.2, gateShare}, // one is faster, and the others are what is usual
		{16, 8, 8, 1.2, gateHalf},  // one of two hosts
		{16, 8, 4, 1.2, gateHalf},  // two of four
		{8, 5, 64, 1.02, gateShare},
		{8, 0, 64, 1, gateShare},
	} {
		job := newTestJob(c.ranks, 1)
		job.perHost = c.perHost
		var slow []int64
		for r := range c.slow {
			job.with(slowRank(r, c.by))
			slow = append(slow, int64(r))
		}
		got := job.judged()
		expect(t, got)
		switch a := got.Abstained; {
		case a == nil || a.Gate != c.want:
			t.Errorf("%d of %d by %g: got %+v, want gate %s", c.slow, c.ranks, c.by, a, c.want)
		case c.want == gateHalf && (!slices.Equal(a.Ranks, slow) || a.Seconds <= 0):
			t.Errorf("%d of %d by %g: got %+v, want ranks %v", c.slow, c.ranks, c.by, a, slow)
		}
	}
}

func TestNodeIsNamed(t *testing.T) {
	job := newTestJob(32, 1).with(func(_ int, rows []testRow) {
		for r := 8; r < 16; r++ {
			rows[r].slow = 1.2
		}
	})
	got := job.judged()
	expect(t, got, what{model.ClassNode, -1})
	if len(got.Conclusions) == 1 && (got.Conclusions[0].Host != "nodeba" || len(got.Conclusions[0].Ranks) != 8) {
		t.Errorf("got %+v, want nodeba with 8 ranks", got.Conclusions[0])
	}
	if len(got.Conclusions) == 1 && got.Conclusions[0].Peers != 24 {
		t.Errorf("got %d peers, want the 24 ranks of other hosts", got.Conclusions[0].Peers)
	}
}

// Of two hosts that differ nobody knows which is as it should be, but by much.
func TestOneHostOfTwo(t *testing.T) {
	for by, want := range map[float64][]what{1.06: nil, 1.15: nil, 1.4: {{model.ClassNode, -1}}} {
		job := newTestJob(16, 1).with(func(_ int, rows []testRow) {
			for r := 8; r < 16; r++ {
				rows[r].slow = by
			}
		})
		got := job.judged()
		expect(t, got, want...)
		for _, c := range got.Conclusions {
			if c.Confidence > pairConfidence {
				t.Errorf("slow by %g: got confidence %g, want that of a pair", by, c.Confidence)
			}
		}
	}
}

// Half of the hosts are no culprits.
func TestHalfOfTheHostsIsNobody(t *testing.T) {
	expect(t, newTestJob(32, 1).with(func(_ int, rows []testRow) {
		for r := range 16 {
			rows[r].slow = 1.3
		}
	}).judged())
}

// The same of two stages that each hold a host: their kernels differ.
func TestOneStageOfTwo(t *testing.T) {
	for by, want := range map[float64][]what{1.055: nil, 1.15: nil, 1.4: {{model.ClassNode, -1}}} {
		expect(t, pipelined(2, 2, 4, 1).with(func(_ int, rows []testRow) {
			for r := range rows {
				if rows[r].pp == 0 {
					rows[r].slow = by
				}
			}
		}).judged(), want...)
	}
}

func TestOnsetIsDated(t *testing.T) {
	got := newTestJob(8, 1).with(slowDuring(5, 1.2, 20, 1000)).judged()
	expect(t, got, what{model.ClassCompute, 5})
	if len(got.Conclusions) == 1 && got.Conclusions[0].First != 20 {
		t.Errorf("got first step %d, want 20", got.Conclusions[0].First)
	}
}

// TestExcessThatIsGiven judges ranks of which only communication was recorded.
func TestExcessThatIsGiven(t *testing.T) {
	for _, kind := range []Kind{Compute, Host} {
		job := newTestJob(8, 1)
		judge := New(Config{}, job.place)
		for step := range 40 {
			s := job.step(step)
			for r := range s.Rows {
				row := &s.Rows[r]
				row.Given, row.Cells = true, nil
				row.Excess[kind] = float32(1e-3 * job.rng.NormFloat64())
				if r == 2 {
					row.Excess[kind] += 15e-3
				}
			}
			judge.Add(s)
		}
		class := map[Kind]string{Compute: model.ClassCompute, Host: model.ClassHost}[kind]
		got := judge.Judge()
		expect(t, got, what{class, 2})
		if len(got.Conclusions) == 1 && got.Conclusions[0].Rung != RungSegment {
			t.Errorf("got rung %q, want %q", got.Conclusions[0].Rung, RungSegment)
		}
	}
}

// Where half of a cohort is slow, the other members of the stage tell which half it is,
// if they agree.
func TestHalfOfTheCohortAmongOthers(t *testing.T) {
	const odd = 1
	halves := func(others ...float64) *testJob {
		job := newTestJob(4, 1)
		job.tp, job.perHost = 4, 16
		return job.with(func(_ int, rows []testRow) {
			for r := range rows {
				switch {
				case rows[r].tp != odd:
					rows[r].slow = others[rows[r].tp]
				case rows[r].dp < 2:
					rows[r].slow = 1.3
				}
			}
		})
	}
	got := halves(1, 0, 1, 1).judged()
	expect(t, got, what{model.ClassCompute, 1}, what{model.ClassCompute, 5})
	for _, c := range got.Conclusions {
		if c.Rung != RungMembers || c.Peers != 12 {
			t.Errorf("got %d peers, %s, want the 12 other members of the stage", c.Peers, c.Rung)
		}
	}
	for _, others := range [][]float64{{1.15, 0, 1.15, 1.15}, {1.3, 0, 1.3, 1.3}, {0.8, 0, 1.03, 1.3}} {
		for _, w := range said(halves(others...).judged()) {
			if w.rank >= 0 {
				t.Errorf("others slow by %g: got %v, want nobody", others, w)
			}
		}
	}
}

// Of two ranks that are judged by a larger cohort, since others of it have better peers, one is
// no half of it.
func TestFewAreJudgedByMany(t *testing.T) {
	job := newTestJob(4, 1).with(slowRank(1, 1.3))
	job.tp = 2
	job.missing = func(_, rank int) bool { return rank == 5 || rank == 7 }
	got := job.judged()
	expect(t, got, what{model.ClassCompute, 1})
	if len(got.Conclusions) == 1 && got.Conclusions[0].Peers != 5 {
		t.Errorf("got %d peers, want all others of the role", got.Conclusions[0].Peers)
	}
}
