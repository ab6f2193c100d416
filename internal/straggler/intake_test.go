// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

func problemsOf(w *world) []string { return w.e.Jobs()[0].Problems }

func TestOperationsWithoutRankOrStepAreCounted(t *testing.T) {
	w := newWorld(t, 1)
	r := w.rank(0)
	r.Rank = -1
	assert.Empty(t, w.e.Add(r, []model.Op{stepOp(1, 0, 1)}))
	assert.Empty(t, w.e.Jobs(), "it makes no job")
	assert.Equal(t, int64(1), w.e.Stats().OpsWithoutRank)
	w.e.Add(w.rank(0), []model.Op{{Kind: model.KindCompute, Name: "a", Start: 1, End: 2}})
	assert.Equal(t, int64(1), w.e.Stats().OpsWithoutStep)
}

func TestAbsurdDurationsChangeNothing(t *testing.T) {
	day := int64(24 * time.Hour)
	for name, bad := range map[string]model.Op{
		"ends before it starts": {Start: nanos(10), End: nanos(5)},
		"lasts two days":        {Start: nanos(10), End: nanos(10) + 2*day},
		"before 1970":           {Start: -5, End: 5},
		"overflows":             {Start: 0, End: math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			w.extra = func(rank, step int64) []model.Op {
				if rank != 1 {
					return nil
				}
				op := bad
				op.Kind, op.Name, op.Step = model.KindCompute, "broken", model.Some(step)
				coll := bad
				coll.Kind, coll.Name, coll.Step = model.KindCollective, model.AllReduce, model.Some(step)
				coll.Comm = model.Comm{ID: "other", Size: model.Some[int64](1)}
				return []model.Op{op, coll}
			}
			for n := range int64(6) {
				w.step(n, each(4, "c20 *", map[int]program{2: "h20:data c20 *"})...)
			}
			require.Len(t, w.reports, 6, "a step does not wait for what was left out")
			for _, r := range w.reports[0].Ranks {
				assert.Less(t, r.Split.Sum(), time.Second)
			}
			assert.Equal(t, int64(12), w.e.Stats().OpsUnsound)
			require.Len(t, problemsOf(w), 1)
			assert.Contains(t, problemsOf(w)[0], `operations left out: 12, since`)
			assert.Contains(t, problemsOf(w)[0], `"broken" of rank 1 in step 0`)
		})
	}
}

func TestAStepThatNeverEndsIsJudgedAtItsDeadline(t *testing.T) {
	w := newWorld(t, 2)
	for r := range int64(2) {
		ops := []model.Op{{Kind: model.KindCompute, Name: "a", Start: nanos(0), End: nanos(5), Step: model.Some(int64(1))}}
		if r == 0 {
			ops = append(ops, stepOp(1, 0, 5))
		} else {
			// It says that it lasts for a year.
			long := stepOp(1, 0, 5)
			long.End = long.Start + int64(365*24*time.Hour)
			ops = append(ops, long)
		}
		assert.Empty(t, w.e.Add(w.rank(r), ops))
	}
	w.now = w.now.Add(31 * time.Second)
	reports := w.e.Expire()
	require.Len(t, reports, 1)
	assert.Equal(t, 5*ms, time.Duration(reports[0].End-reports[0].Start), "as long as what was seen of it")
	assert.Equal(t, int64(1), w.e.Stats().StepsUnended)
	require.Len(t, problemsOf(w), 2)
	assert.Contains(t, problemsOf(w)[1], "the last: step 1 of rank 1")
}

func TestARankThatAppearsTwiceIsTold(t *testing.T) {
	for name, other := range map[string]func(*model.Rank){
		"on another host": func(r *model.Rank) { r.HostName = "elsewhere" },
		"another process": func(r *model.Rank) { r.PID = model.Some[int64](77) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			first := w.rank(0)
			first.PID = model.Some[int64](7)
			second := first
			other(&second)
			op := func(from, to float64) model.Op {
				return model.Op{Kind: model.KindCompute, Name: "a", Start: nanos(from), End: nanos(to), Step: model.Some(int64(1))}
			}
			w.e.Add(first, []model.Op{op(0, 5)})
			w.e.Add(second, []model.Op{op(20, 80), stepOp(1, 20, 90)})
			w.e.Add(first, []model.Op{stepOp(1, 0, 10)})
			reports := w.e.Add(w.rank(1), []model.Op{op(0, 5), stepOp(1, 0, 10)})
			require.Len(t, reports, 1)
			assert.Equal(t, 5*ms, reports[0].Ranks[0].Split.Compute, "the first is believed")
			assert.Equal(t, int64(2), w.e.Stats().OpsOfTwins)
			require.Len(t, problemsOf(w), 1)
			assert.Contains(t, problemsOf(w)[0], "rank 0 came from two processes in the same step: host host0 pid 7 and ")
			assert.Contains(t, problemsOf(w)[0], "2 operations of the second were left out")
		})
	}
}

// named returns the host and the hardware that the only finding names.
func named(t *testing.T, w *world) (host, hwID string) {
	t.Helper()
	vs := w.e.Verdicts()
	require.Len(t, vs, 1)
	return vs[0].Finding.Host, vs[0].Finding.HWID
}

func TestATwinIsNotNamed(t *testing.T) {
	const steps = 8
	slow := each(4, "h1:data c30 * c5", map[int]program{2: "h21:data c30 * c5"})
	deliver := func(w *world, step int64) {
		r := w.rank(2)
		r.HostName, r.HWID = "innocent", "GPU-innocent"
		w.e.Add(r, []model.Op{{Kind: model.KindCompute, Name: "a", Start: nanos(0), End: nanos(1), Step: model.Some(step)}})
	}
	t.Run("in the same step", func(t *testing.T) {
		w := newWorld(t, 4)
		step := int64(0)
		w.extra = func(rank, _ int64) []model.Op {
			if rank == 3 { // after rank 2 has begun to deliver
				deliver(w, step)
			}
			return nil
		}
		for ; step < steps; step++ {
			w.step(step, slow...)
		}
		require.Equal(t, int64(steps), w.e.Stats().OpsOfTwins)
		host, hwID := named(t, w)
		assert.Equal(t, w.rank(2).HostName, host)
		assert.Equal(t, w.rank(2).HWID, hwID)
		f := w.e.Jobs()[0].Verdicts[0].Finding
		assert.LessOrEqual(t, f.Confidence, eitherTwin)
		assert.Contains(t, evidence.Encode(f.Evidence), "two processes say that they are this rank")
	})
	t.Run("late", func(t *testing.T) {
		w := newWorld(t, 4)
		for n := range int64(steps) {
			w.step(n, slow...)
			deliver(w, n)
		}
		require.Equal(t, int64(steps), w.e.Stats().LateOps)
		host, _ := named(t, w)
		assert.Equal(t, w.rank(2).HostName, host)
	})
	t.Run("moved with a later step", func(t *testing.T) {
		w := newWorld(t, 4)
		at := "before"
		w.hosts = func(r int64) string { return fmt.Sprint(at, r) }
		for n := range int64(2 * steps) {
			if n == steps {
				at = "after"
			}
			w.step(n, slow...)
		}
		host, _ := named(t, w)
		assert.Equal(t, "after2", host)
	})
}

// Steps that close out of order leave the rank where it was last.
func TestAnEarlierStepThatClosesLaterMovesNobodyBack(t *testing.T) {
	w := newWorld(t, 1)
	old, moved := w.rank(0), w.rank(0)
	old.HostName, moved.HostName = "before", "after"
	w.e.Add(old, []model.Op{{Kind: model.KindCompute, Name: "a", Start: nanos(0), End: nanos(5), Step: model.Some(int64(1))}})
	require.Len(t, w.e.Add(moved, []model.Op{stepOp(2, 10, 20)}), 1)
	reports := w.e.Add(old, []model.Op{stepOp(1, 0, 10)})
	require.Len(t, reports, 1)
	assert.Equal(t, "before", reports[0].Ranks[0].Rank.HostName)
	assert.Equal(t, "after", w.e.sorted()[0].ranks[0].rank.HostName)
}

func TestAStepWaitsForNothingThatWasLeftOut(t *testing.T) {
	const step = 1
	op := func(name string, from, to float64) model.Op {
		return model.Op{Kind: model.KindCompute, Name: name, Start: nanos(from), End: nanos(to), Step: model.Some[int64](step)}
	}
	mark := stepOp(step, 0, 5)
	mark.StepOps = model.Some[int64](2)
	for name, second := range map[string]model.Op{"refused": op("b", 4, 3), "beyond the limit": op("b", 4, 5)} {
		good := op("a", 0, 4)
		for order, ops := range map[string][]model.Op{
			"first":   {second, mark, good},
			"between": {mark, second, good},
			"last":    {good, mark, second},
		} {
			t.Run(name+" "+order, func(t *testing.T) {
				w := newWorld(t, 1, func(c *Config) { c.MaxOpsPerRankStep = 1 })
				require.Len(t, w.e.Add(w.rank(0), ops), 1)
				stats := w.e.Stats()
				assert.Equal(t, int64(1), stats.OpsUnsound+stats.OpsDropped)
			})
		}
	}
}

func TestARankOfWhichAllWasLeftOutIsMissing(t *testing.T) {
	w := newWorld(t, 2)
	w.e.Add(w.rank(0), []model.Op{{Kind: model.KindCompute, Name: "a", Start: nanos(0), End: nanos(5), Step: model.Some[int64](1)}, stepOp(1, 0, 5)})
	for step := range int64(3) { // of steps 0 and 2 nothing else comes
		w.e.Add(w.rank(1), []model.Op{{Kind: model.KindCompute, Name: "a", Start: nanos(5), End: nanos(3), Step: model.Some(step)}})
	}
	reports := w.e.Flush()
	require.Len(t, reports, 1)
	assert.Equal(t, []int64{1}, reports[0].Missing)
	assert.Equal(t, 5*ms, time.Duration(reports[0].End-reports[0].Start))
}

func TestARankThatMovesIsNoTwin(t *testing.T) {
	w := newWorld(t, 2)
	at := "before"
	w.hosts = func(r int64) string { return fmt.Sprint(at, r) }
	for n := range int64(6) {
		if n == 3 {
			at = "after"
		}
		w.step(n, each(2, "c20 *", nil)...)
	}
	assert.Len(t, w.reports, 6)
	assert.Empty(t, problemsOf(w))
	assert.Equal(t, "after0", w.e.sorted()[0].ranks[0].rank.HostName)
}

func TestSourcesThatKnowLessContradictNobody(t *testing.T) {
	full := model.Rank{HostName: "n1", HostID: "id", PID: model.Some[int64](5)}
	assert.True(t, full.MayBe(&model.Rank{}))
	assert.True(t, full.MayBe(&model.Rank{HostName: "n1"}))
	assert.False(t, full.MayBe(&model.Rank{HostID: "other"}))
}

func TestManyTwinsAreBounded(t *testing.T) {
	w := newWorld(t, 101)
	for r := range int64(100) {
		for _, host := range []string{"a", "b"} {
			rank := w.rank(r)
			rank.HostName = host
			w.e.Add(rank, []model.Op{stepOp(1, 0, 10)})
		}
	}
	assert.Equal(t, int64(100), w.e.Stats().OpsOfTwins)
	assert.Len(t, problemsOf(w), maxTwins+1)
}

func TestAMillionNamesAreBounded(t *testing.T) {
	w := newWorld(t, 1)
	const each = 50_000
	steps := int64(tier.N(t, 2, 20))
	ops := make([]model.Op, 0, each+1)
	for n := range steps {
		ops = ops[:0]
		for i := range int64(each) {
			at := nanos(float64(n)*100) + i*1000
			ops = append(ops, model.Op{Kind: model.KindCompute, Name: fmt.Sprint("kernel", n*each+i), Start: at, End: at + 900, Step: model.Some(n)})
		}
		ops = append(ops, stepOp(n, float64(n)*100, float64(n)*100+60))
		require.Len(t, w.e.Add(w.rank(0), ops), 1)
	}
	j := w.e.sorted()[0]
	assert.LessOrEqual(t, len(j.keys.ops), maxKeys)
	assert.Equal(t, steps*each-maxKeys+1, w.e.Stats().PlacesOverflowed)
	require.Len(t, problemsOf(w), 1)
	assert.Contains(t, problemsOf(w)[0], "Do their names hold numbers that count up?")
}

func TestWhatTheJudgeRefusesIsCountedBeyondItsJob(t *testing.T) {
	w := newWorld(t, 1, func(c *Config) { c.MaxJobs = 1 })
	w.e.Add(w.rank(0), []model.Op{stepOp(1, 0, 10)})
	w.e.sorted()[0].judgement.Add(&judge.Sheet{Seconds: math.NaN()})
	assert.Equal(t, int64(1), w.e.Stats().JudgeRefused)
	other := w.rank(0)
	other.JobID = "other"
	w.e.Add(other, []model.Op{stepOp(1, 0, 10)})
	assert.Equal(t, int64(1), w.e.Stats().JobsEvicted)
	assert.Equal(t, int64(1), w.e.Stats().JudgeRefused)
}

// One rank's absurd stamps hide nobody: rank 1 of four computes longer, and is named.
func TestAbsurdStampsHideNobody(t *testing.T) {
	const hours = 20 * 3600e3 // ms
	for name, tc := range map[string]struct {
		bend    func(step int64, ops []model.Op)
		problem string
		more    int // problems
	}{
		"a step that ends 20 h late": {func(_ int64, ops []model.Op) {
			ops[len(ops)-1].End += nanos(hours) - nanos(0)
		}, "nothing in their step lasts so long", 0},
		"kernels of 20 h": {func(_ int64, ops []model.Op) {
			ops[0].End += nanos(hours) - nanos(0)
		}, "nothing in their step lasts so long", 0},
		"a clock that jumps": {func(step int64, ops []model.Op) {
			for i := range ops {
				if step >= 10 {
					ops[i].Start += nanos(hours) - nanos(0)
					ops[i].End += nanos(hours) - nanos(0)
				}
			}
		}, "began a step minutes or more from all others", 1}, // and meets nobody in time
	} {
		t.Run(name, func(t *testing.T) {
			e := New(NewDefaultConfig(), time.Now)
			for n := range int64(20) {
				for r := range int64(4) {
					own, at := 20+0.1*float64((r*7+n)%5), float64(n)*40
					if r == 1 {
						own += 6
					}
					c := collective(n, 0, 1024, at+own, at+28)
					c.Comm.Size = model.Some[int64](4)
					ops := []model.Op{
						{Kind: model.KindCompute, Name: "gemm", Step: model.Some(n), Stream: model.Some[int64](7), Start: nanos(at), End: nanos(at + own)},
						c, stepOp(n, at, at+30),
					}
					if r == 2 {
						tc.bend(n, ops)
					}
					e.Add(model.Rank{JobID: "job", Incarnation: "life", Rank: r, WorldSize: model.Some[int64](4), HostName: fmt.Sprint("n", r/2), ClockID: fmt.Sprint("c", r/2)}, ops)
				}
			}
			e.Flush()
			e.Verdicts()
			rep := e.Jobs()[0]
			require.Len(t, rep.Verdicts, 1)
			assert.Equal(t, model.Some[int64](1), rep.Verdicts[0].Finding.Rank)
			assert.Less(t, rep.StepTime/time.Duration(rep.Steps), 60*time.Millisecond)
			require.Len(t, rep.Problems, 1+tc.more)
			assert.Contains(t, rep.Problems[0], tc.problem)
		})
	}
}
