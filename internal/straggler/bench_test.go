// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// benchJob is a job of 32 collectives and 320 kernels a rank and step, made once and
// moved on in time from step to step.
type benchJob struct {
	ranks []model.Rank
	ops   [][]model.Op
	count int
}

func newBenchJob(ranks, collectives, kernels int64) *benchJob {
	b := &benchJob{}
	for r := range ranks {
		b.ranks = append(b.ranks, model.Rank{
			JobID: "job", Incarnation: "life", Rank: r, HostName: fmt.Sprint("host", r/8),
			WorldSize: model.Some(ranks), ClockID: fmt.Sprint("host", r/8),
		})
		b.ops = append(b.ops, benchStep(r, 0, ranks, collectives, kernels))
		b.count += len(b.ops[r])
	}
	return b
}

// next moves all operations to the next step.
func (b *benchJob) next() {
	for _, ops := range b.ops {
		moveOn(ops)
	}
}

// moveOn moves operations to the next step.
func moveOn(ops []model.Op) {
	for i := range ops {
		op := &ops[i]
		op.Step.V++
		op.Start += 1e9
		op.End += 1e9
	}
}

func (b *benchJob) add(e *Engine) {
	for r := range b.ranks {
		e.Add(b.ranks[r], b.ops[r])
	}
	e.Verdicts()
}

// BenchmarkStep analyses one step of 32 collectives and 320 kernels a rank, and
// judges the window.
func BenchmarkStep(b *testing.B) {
	for _, ranks := range []int64{8, 64, 340} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			job := newBenchJob(ranks, 32, 10)
			e := New(benchConfig(), time.Now)
			b.ReportAllocs()
			var spent time.Duration
			for b.Loop() {
				from := cpuTime()
				job.add(e)
				spent += cpuTime() - from
				b.StopTimer()
				job.next()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*job.count), "ns/operation")
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*job.count), "cpu-ns/operation")
		})
	}
}

// cpuTime is what the process has computed so far, collecting garbage included: on a
// busy machine the time that passes says less.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchConfig() Config {
	cfg := NewDefaultConfig()
	cfg.Brief = true
	return cfg
}

// BenchmarkGrowth analyses steps of 20 collectives and as many kernels a rank, of ever
// more ranks, and reports what the engine keeps of each, and the most memory that the
// process ever had. LOCKSTEP_BENCH_RANKS adds a size, such as 16384.
func BenchmarkGrowth(b *testing.B) {
	sizes := []int64{64, 1024}
	if more, err := strconv.ParseInt(os.Getenv("LOCKSTEP_BENCH_RANKS"), 10, 64); err == nil {
		sizes = append(sizes, more)
	}
	const steps = 6
	for _, size := range sizes {
		b.Run(fmt.Sprintf("ranks=%d", size), func(b *testing.B) {
			// One rank's operations serve for all of a group, since those of 16,384
			// would need more memory than what is measured.
			var group [16][]model.Op
			for b.Loop() {
				for r := range group {
					group[r] = benchStep(int64(r), 0, size, 20, 1)
				}
				e := New(benchConfig(), time.Now)
				before := heap()
				var spent time.Duration
				count := 0
				for range steps {
					for r := range size {
						ops := group[r%int64(len(group))]
						rank := model.Rank{JobID: "job", Incarnation: "life", Rank: r, HostName: "host", WorldSize: model.Some(size), ClockID: fmt.Sprint("host", r/8)}
						from := cpuTime()
						e.Add(rank, ops)
						spent += cpuTime() - from
						count += len(ops)
					}
					from := cpuTime()
					e.Verdicts()
					spent += cpuTime() - from
					for r := range group {
						moveOn(group[r])
					}
				}
				b.ReportMetric(float64(spent.Nanoseconds())/float64(count), "cpu-ns/operation")
				b.ReportMetric(float64(heap()-before)/float64(size), "B/rank")
				b.ReportMetric(peak(), "peak-MiB")
				runtime.KeepAlive(e)
			}
		})
	}
}

// peak is the most memory that the process ever had, in MiB.
func peak() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Maxrss) / 1024
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func benchStep(rank, n, ranks, collectives, kernels int64) []model.Op {
	var ops []model.Op
	at := float64(n) * 1000
	begin := at
	for k := range collectives {
		for i := range kernels {
			ops = append(ops, model.Op{
				Kind: model.KindCompute, Name: "gemm", Seq: k*kernels + i, Step: model.Some(n), Stream: model.Some(int64(7)),
				Start: nanos(at), End: nanos(at + 0.2),
			})
			at += 0.2
		}
		c := collective(n, k, 1024, at+float64((rank*7+k)%5)*0.01, at+0.5)
		c.Comm.Size = model.Some(ranks)
		ops = append(ops, c)
		at += 0.5
	}
	return append(ops, stepOp(n, begin, at))
}

// BenchmarkReorder adds one rank's part of a step while so many complete steps wait for one that does not come.
func BenchmarkReorder(b *testing.B) {
	for _, waiting := range []int64{0, 10, 100, 1000} {
		b.Run(fmt.Sprintf("ranks=64/waiting=%d", waiting), func(b *testing.B) {
			const ranks = 64
			cfg := benchConfig()
			cfg.Reorder = 20 * time.Second
			now := time.Unix(2000, 0)
			e := New(cfg, func() time.Time { return now })
			add := func(r int64, ops []model.Op) {
				e.Add(model.Rank{JobID: "job", Incarnation: "life", Rank: r, WorldSize: model.Some(int64(ranks)), HostName: "host", ClockID: "c"}, ops)
			}
			for s := range waiting {
				for r := range int64(ranks) {
					add(r, benchStep(r, 10+s, ranks, 1, 1))
				}
			}
			part := []model.Op{stepOp(5, 0, 1)} // it may come again, and takes no more room
			b.ReportAllocs()
			for b.Loop() {
				add(0, part)
			}
			if n := len(e.jobs[jobKey{"job", "life"}].open); n != int(waiting)+1 {
				b.Fatalf("got %d open steps; want %d", n, waiting+1)
			}
		})
	}
}
