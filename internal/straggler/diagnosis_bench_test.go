// SPDX-License-Identifier: Apache-2.0

//go:build unix

package straggler

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// pipeJob is a job of pipelines: stages one behind another in each of several data-
// parallel replicas, microbatches forward and then backward through all of them,
// messages between stages, and collectives over the replicas of a stage.
type pipeJob struct {
	stages, replicas, batches int64
	slow                      int64 // rank whose device is a fifth slower
	rng                       *rand.Rand
	now                       []float64 // ms, by rank
	ops                       [][]model.Op
	step                      int64
}

func (p *pipeJob) rank(replica, stage int64) int64 { return replica*p.stages + stage }

func (p *pipeJob) add(rank int64, op model.Op, from, to float64) {
	op.Step, op.Start, op.End = model.Some(p.step), nanos(from), nanos(to)
	p.ops[rank] = append(p.ops[rank], op)
	p.now[rank] = to
}

func (p *pipeJob) compute(rank int64, name string, batch int64, ms float64) {
	ms *= 1 + 0.01*p.rng.NormFloat64()
	if rank == p.slow {
		ms *= 1.2
	}
	at := p.now[rank]
	p.add(rank, model.Op{Kind: model.KindCompute, Name: name, Seq: batch, Stream: model.Some(int64(7)), Microbatch: model.Some(batch)}, at, at+ms)
}

// pass sends a microbatch to another rank, which waits for it.
func (p *pipeJob) pass(src, dst, batch int64, name string) {
	const wire = 0.05
	n := p.step*p.batches + batch
	message := func(kind model.OpKind, peer int64) model.Op {
		return model.Op{
			Kind: kind, Name: name, Seq: batch, Stream: model.Some(int64(20)), Peer: model.Some(peer),
			Comm:       model.Comm{ID: fmt.Sprintf("pipe-%d-%d-%s", min(src, dst), max(src, dst), name), Size: model.Some(int64(2))},
			Collective: model.Collective{Name: model.SendRecv, Seq: model.Some(n), SeqScope: model.ScopeCommFunc},
		}
	}
	sent, free := p.now[src], p.now[dst]
	p.add(src, message(model.KindSend, dst), sent, sent+wire)
	p.add(dst, message(model.KindRecv, src), free, max(sent, free)+wire)
}

func (p *pipeJob) meet(stage int64, name string, ms float64) {
	last := 0.0
	for d := range p.replicas {
		last = max(last, p.now[p.rank(d, stage)])
	}
	for d := range p.replicas {
		r := p.rank(d, stage)
		p.add(r, model.Op{
			Kind: model.KindCollective, Name: "nccl_" + name, Stream: model.Some(int64(21)),
			Comm:       model.Comm{ID: fmt.Sprint("stage-", stage), Size: model.Some(p.replicas)},
			Collective: model.Collective{Name: name, Seq: model.Some(p.step), SeqScope: model.ScopeCommFunc, Bytes: model.Some(int64(1 << 24))},
		}, p.now[r], last+ms)
	}
}

func (p *pipeJob) next() [][]model.Op {
	n := p.stages * p.replicas
	if p.now == nil {
		p.now, p.ops = make([]float64, n), make([][]model.Op, n)
	}
	begin := make([]float64, n)
	for r := range p.ops {
		p.ops[r], begin[r] = nil, p.now[r]
	}
	for s := range p.stages {
		p.meet(s, model.AllGather, 1)
	}
	for d := range p.replicas {
		for b := range p.batches {
			for s := range p.stages {
				if s > 0 {
					p.pass(p.rank(d, s-1), p.rank(d, s), b, "forward")
				}
				p.compute(p.rank(d, s), "forward", b, 5)
			}
		}
		for b := range p.batches {
			for s := p.stages - 1; s >= 0; s-- {
				if s < p.stages-1 {
					p.pass(p.rank(d, s+1), p.rank(d, s), b, "backward")
				}
				p.compute(p.rank(d, s), "backward", b, 10)
			}
		}
	}
	for s := range p.stages {
		p.meet(s, model.ReduceScatter, 1)
	}
	for r := range n {
		p.compute(r, "optimizer", 0, 2)
		p.ops[r] = append(p.ops[r], stepOp(p.step, begin[r], p.now[r]))
	}
	p.step++
	return p.ops
}

// BenchmarkDiagnosis is the whole diagnosis of a recorded job of 120,000 operations, 64
// ranks by 44 steps: from its operations to its findings. cpu-ns/operation is what all
// threads took, which other programs on the machine disturb less.
func BenchmarkDiagnosis(b *testing.B) {
	const steps = 44
	p := &pipeJob{stages: 4, replicas: 16, batches: 8, slow: 23, rng: rand.New(rand.NewPCG(1, 2))}
	var job [][][]model.Op
	var ranks []model.Rank
	ops := 0
	for range steps {
		job = append(job, p.next())
		p.ops = make([][]model.Op, len(p.ops))
		for _, list := range job[len(job)-1] {
			ops += len(list)
		}
	}
	for r := range int64(64) {
		ranks = append(ranks, model.Rank{
			JobID: "job", Incarnation: "life", Rank: r, WorldSize: model.Some(int64(64)), HostName: fmt.Sprint("n", r/8),
			ClockID: fmt.Sprint("n", r/8), Parallel: model.Parallel{PP: model.Some(r % 4), DP: model.Some(r / 4)},
		})
	}
	for _, method := range []string{evidence.MethodLockstep, evidence.MethodKAIR} {
		b.Run(method, func(b *testing.B) {
			b.ReportAllocs()
			var named []Verdict
			began := cpu()
			for b.Loop() {
				cfg := NewDefaultConfig()
				cfg.Method, cfg.Brief = method, true // as lockstep analyze
				e := New(cfg, time.Now)
				for n := range job {
					for r := range ranks {
						e.Add(ranks[r], job[n][r])
					}
				}
				e.Flush()
				named = e.Verdicts()
			}
			total := float64(b.N * ops)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/total, "ns/operation")
			b.ReportMetric(float64(cpu()-began)/total, "cpu-ns/operation")
			b.ReportMetric(float64(ops), "operations")
			if len(named) != 1 || named[0].Finding.Rank.Or(-1) != p.slow {
				b.Errorf("got findings %+v; want one of rank %d", named, p.slow)
			}
		})
	}
}

// cpu returns what the process has taken of processors, ns.
func cpu() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
