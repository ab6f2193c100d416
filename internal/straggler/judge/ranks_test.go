package judge

import (
	"fmt"
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
			if c.Confidence > 0.7 {
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
