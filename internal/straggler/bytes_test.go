// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// flood makes the n-th message of a sender that never repeats itself.
type flood func(n int64) (model.Rank, []model.Op)

// novel is a name as long as one may be, and like no other.
func novel(what string, n int64) string {
	return fmt.Sprint(what, " ", n, strings.Repeat("x", cut.MaxName))[:cut.MaxName]
}

// floods are valid messages. Each message makes an engine keep something new.
var floods = map[string]flood{
	"operations": func(n int64) (model.Rank, []model.Op) {
		ops := floodOps(n, 24, func(op *model.Op, i int64) { op.Name, op.WorkGrid = novel("op", n<<8|i), novel("grid", i) })
		return floodRank("operations", n%4), ops
	},
	"communicators": func(n int64) (model.Rank, []model.Op) {
		return floodRank("communicators", n%4), floodOps(n, 24, func(op *model.Op, i int64) {
			op.Kind, op.Comm.ID, op.Comm.Digest = model.KindCollective, novel("comm", n<<8|i), novel("digest", i)
		})
	},
	"clocks": func(n int64) (model.Rank, []model.Op) {
		return floodRank("clocks", n%4), floodOps(n, 24, func(op *model.Op, i int64) {
			op.Kind, op.Comm.ID, op.ClockID = model.KindCollective, "comm", novel("clock", n<<8|i)
		})
	},
	"ranks": func(n int64) (model.Rank, []model.Op) {
		r := floodRank("ranks", n)
		r.HostName, r.HostID, r.HWID = novel("host", n), novel("id", n), novel("gpu", n)
		return r, floodOps(1, 1, func(*model.Op, int64) {})
	},
	"processes": func(n int64) (model.Rank, []model.Op) { // bounded by their ranks
		r := floodRank("processes", n%64)
		r.HostName, r.HWID = novel("host", n), novel("gpu", n)
		return r, floodOps(n, 1, func(*model.Op, int64) {})
	},
	"open steps": func(n int64) (model.Rank, []model.Op) {
		return floodRank("open steps", n%64), floodOps(n/64, 256, func(op *model.Op, i int64) { op.Seq = i })
	},
	"empty steps": func(n int64) (model.Rank, []model.Op) {
		r := floodRank("empty steps", n%512)
		r.HWID = novel("gpu", n)
		return r, floodOps(0, 64, func(op *model.Op, i int64) { *op = stepOp(n/512<<8|i, 0, 1) })
	},
	"closed steps": func(n int64) (model.Rank, []model.Op) { // bounded by the window
		r := floodRank("closed steps", 0)
		r.WorldSize = model.Some(int64(1))
		ops := floodOps(n, 128, func(op *model.Op, i int64) { op.Name = fmt.Sprint("op", i) })
		return r, append(ops, stepOp(n, 0, 1000))
	},
	"jobs": func(n int64) (model.Rank, []model.Op) {
		r := floodRank(novel("jobs", n), 0)
		r.JobID, r.JobName, r.HostName = novel("job", n), novel("name", n), novel("host", n)
		return r, floodOps(1, 24, func(op *model.Op, i int64) { op.Name = novel("op", i) })
	},
	"jobs that complete a step": func(n int64) (model.Rank, []model.Op) {
		r := floodRank(novel("jobs", n), 0)
		r.WorldSize = model.Some(int64(1))
		return r, append(floodOps(1, 24, func(op *model.Op, i int64) { op.Name = novel("op", i) }), stepOp(1, 0, 1000))
	},
}

func floodRank(job string, rank int64) model.Rank {
	return model.Rank{JobID: "hostile", Incarnation: job, Rank: rank, HostName: "h", WorldSize: model.Some(int64(32768))}
}

func floodOps(step int64, many int64, change func(op *model.Op, i int64)) []model.Op {
	ops := make([]model.Op, many)
	for i := range ops {
		at := int64(i) * 1000
		ops[i] = model.Op{Kind: model.KindCompute, Name: "op", Step: model.Some(step), Start: at, End: at + 500, Stream: model.Some(int64(7))}
		change(&ops[i], int64(i))
	}
	return ops
}

// wellBehaved is a job beside a flood. Its rank 1 is slow.
func wellBehaved(w *world, n int64) {
	w.now = w.now.Add(time.Second)
	w.step(n, computing(1), computing(1.6), computing(1), computing(1))
}

// A sender that never repeats itself holds no more than the bound, and takes nothing from another
// job.
func TestEngine_Flood_IsBoundedAndLeavesOthersAlone(t *testing.T) {
	const limit = 3 << 20
	for name, next := range floods {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 4, func(c *Config) { c.MaxMemory = limit })
			n, most, steps := int64(0), int64(0), int64(24)
			for step := range steps {
				wellBehaved(w, step)
				if step < minTrials {
					continue // it is at work when the flood comes
				}
				for range 12 {
					w.e.Add(next(n))
					n++
					require.LessOrEqual(t, w.e.Bytes(), int64(limit))
					most = max(most, w.e.Bytes())
				}
			}
			t.Logf("at most %d bytes; gave way %d times", most, gaveWay(w.e))
			if name != "processes" && name != "closed steps" {
				assert.Positive(t, gaveWay(w.e), "the limit was reached")
			}
			job := w.e.jobs[jobKey{"job", "life"}]
			require.NotNil(t, job, "the job beside it was given up")
			assert.Equal(t, int(steps), job.steps)
			var ranks []int64
			for _, f := range w.e.Standing() {
				if f.JobID == "job" {
					ranks = append(ranks, f.Rank.Or(-1))
				}
			}
			assert.Equal(t, []int64{1}, ranks)
			assert.Equal(t, w.e.Bytes(), recounted(w.e), "nothing is counted twice, or not at all")
		})
	}
}

// gaveWay counts what the bounds have cost.
func gaveWay(e *Engine) int64 {
	s := e.Stats()
	return s.JobsEvicted + s.StepsEvicted + s.StepsForgotten
}

// recounted adds up again what the jobs hold.
func recounted(e *Engine) (n int64) {
	for _, j := range e.jobs {
		s := sizes{ranks: j.sizes.ranks, scratch: j.sizes.scratch}
		for _, o := range j.open {
			s.open += openStepBytes
			for _, rs := range o.ranks {
				s.open += rs.room()
			}
		}
		for _, rs := range j.spare {
			s.spare += rs.room()
		}
		for _, rec := range j.window {
			s.window += rec.bytes()
		}
		n += j.base() + j.keys.bytes + j.forms.bytes + s.ranks + s.open + s.spare + s.window + s.scratch
	}
	return n
}

// The estimate is no less than what the heap shows, and the heap does not grow once the bound is
// reached.
func TestEngine_Flood_HeapStaysFlat(t *testing.T) {
	if !tier.Full(t) {
		t.Skip("it measures the heap: the full tier only")
	}
	const limit = 32 << 20
	for name, next := range floods {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4, func(c *Config) { c.MaxMemory = limit })
			before := liveHeap()
			n := int64(0)
			run := func(messages int64) int64 {
				for range messages {
					w.e.Add(next(n))
					n++
				}
				return liveHeap() - before
			}
			for gaveWay(w.e) == 0 && n < 1000 {
				run(100)
			}
			reached := n
			first := run(reached)
			second := run(2 * reached)
			t.Logf("after %d messages: heap %d KiB; after twice more: %d KiB; estimate %d KiB", reached, first>>10, second>>10, w.e.Bytes()>>10)
			assert.Less(t, second, int64(limit)*3/2)
			assert.Less(t, second-first, int64(limit)/2, "what comes and goes by the bound is no more than this")
			runtime.KeepAlive(w.e)
		})
	}
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Operations that were delivered twice left the count of open operations too large for good. So the
// engine closed steps early for lack of room that no operation took.
func TestJob_OperationsDeliveredTwice_LeaveNothingHeld(t *testing.T) {
	w := newWorld(t, 1)
	r := w.rank(0)
	for n := range int64(4) {
		ops := floodOps(n, 8, func(op *model.Op, i int64) { op.Seq = i })
		w.e.Add(r, ops)
		mark := stepOp(n, 0, 1)
		mark.StepOps = model.Some(int64(8))
		w.e.Add(r, append(ops, mark))
	}
	j := w.e.jobs[jobKey{r.JobID, r.Incarnation}]
	require.Empty(t, j.open)
	assert.Zero(t, j.held)
}

func TestEngine_LargestJobsOfOneSize_FirstByNameGivesWay(t *testing.T) {
	e := New(NewDefaultConfig(), time.Now)
	for i := range 32 {
		name := fmt.Sprintf("job %02d", 31-i)
		e.jobs[jobKey{name, name}] = &job{id: name, incarnation: name, sizes: sizes{young: true, counted: 100 + int64(i%2)}}
	}
	assert.Equal(t, "job 00", e.largest(true).id)
}
