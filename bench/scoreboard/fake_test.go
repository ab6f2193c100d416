// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// fake is a data-parallel job: a kernel, and a collective in which everybody waits for
// the slowest. Rank slow takes twice as long from step 2 on; nobody does where it is -1.
type fake struct {
	n, steps, at int
	slow         int64
	missing      int // this rank is not seen; -1: all are
	late         int // this rank's operations come after the next step's; 0: none
}

func (f *fake) Ranks() []model.Rank {
	out := make([]model.Rank, f.n)
	for i := range out {
		out[i] = model.Rank{
			JobID: "job", JobName: "job", Incarnation: "life", Rank: int64(i), WorldSize: model.Some(int64(f.n)),
			HostName: "host" + string(rune('a'+i/2)), ClockID: "clock",
		}
	}
	return out
}

const (
	fakeFrom   = 2
	fakeKernel = int64(20e6)
)

func (f *fake) Truth() training.Truth {
	if f.slow < 0 {
		return training.Truth{}
	}
	return training.Truth{Culprits: []training.Culprit{{
		Family: "gpu_clock", Class: model.ClassCompute, Ranks: []int64{f.slow}, Stage: -1, Peer: -1, Ops: []string{"gemm"},
		First: fakeFrom, Last: int64(f.steps) - 1, Cost: float64(fakeKernel) / 1e9, Slowdown: 2,
	}}}
}

func (f *fake) Places() training.Truth { return f.Truth() }

func (f *fake) took(rank int, step int) int64 {
	// Healthy ranks take turns in being a little slower.
	took := fakeKernel + int64((rank+step)%f.n)*1e4
	if int64(rank) == f.slow && step >= fakeFrom {
		took += fakeKernel
	}
	return took
}

func (f *fake) Next() (*simulatedStep, bool) {
	if f.at == f.steps {
		return nil, false
	}
	n := f.at
	f.at++
	slowest := int64(0)
	for r := range f.n {
		slowest = max(slowest, f.took(r, n))
	}
	const most = int64(1e9)
	begin := int64(n+1) * most
	end := begin + slowest + 1e6
	return &simulatedStep{N: int64(n), Seconds: float64(end-begin) / 1e9, Late: func(r int) bool { return f.late > 0 && r == f.late }, Ops: func(r int) []model.Op {
		if r == f.missing {
			return nil
		}
		step, stream := model.Some(int64(n)), model.Some(int64(7))
		at := begin + f.took(r, n)
		return []model.Op{
			{Kind: model.KindCompute, Name: "gemm", Start: begin, End: at, Step: step, Stream: stream, Launch: model.Some(begin - 1e4)},
			{
				Kind: model.KindCollective, Name: "ncclDevKernel_AllReduce", Start: at, End: end, Step: step, Stream: stream, Launch: model.Some(begin - 5e3),
				Comm:       model.Comm{ID: "world", Size: model.Some(int64(f.n)), Rank: model.Some(int64(r))},
				Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(int64(n)), SeqScope: model.ScopeComm, Bytes: model.Some(int64(4096))},
			},
			{Kind: model.KindStep, Name: "step", Start: begin, End: end, Step: step, StepOps: model.Some(int64(2))},
		}
	}}, true
}
