// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
)

// neighbour is a job that behaves and has one fault, which the collector must find.
type neighbour struct {
	name string
	// run sends the messages of the job's ranks until the context ends. Refused messages are lost.
	run func(ctx context.Context, job string, send func(message))
	// want are the kind, class and rank of the finding; any other of the job is wrong.
	kind, class string
	rank        int64
	// configs are those whose collectors judge it.
	configs []string
}

var (
	straggling = neighbour{"straggling", runStraggling, model.FindingStraggler, model.ClassCompute, 5, []string{gateway, standalone}}
	hanging    = neighbour{"hanging", runHanging, model.FindingDesync, model.ClassNotScheduled, 3, []string{gateway}}
	resuming   = neighbour{"resuming", runResuming, model.FindingEpoch, model.ClassMixed, 5, []string{fleet}}
)

// ranks is how many a neighbour has.
const ranks = 8

// neighbourRank is a rank of a job. All jobs run on the same nodes, one after the other or
// beside each other.
func neighbourRank(job string, rank int64) model.Rank {
	node := fmt.Sprint("node", rank)
	return model.Rank{
		JobName: job, JobID: job, Incarnation: job, Rank: rank, WorldSize: model.Some(int64(ranks)), HostName: node,
		HostID: node, HWID: fmt.Sprint("GPU-", rank), PID: model.Some(rank + 100),
	}
}

// each calls do again and again, and sleeps until the context ends.
func each(ctx context.Context, every time.Duration, do func(n int64)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := int64(0); ; n++ {
		do(n)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sendEach sends what each rank says in a message of its own, as agents of several nodes do.
func sendEach(send func(message), m message) {
	if m.isLogs {
		for _, rl := range m.logs.ResourceLogs().All() {
			ld := plog.NewLogs()
			rl.CopyTo(ld.ResourceLogs().AppendEmpty())
			send(ofLogs(ld))
		}
		return
	}
	for _, rs := range m.traces.ResourceSpans().All() {
		td := ptrace.NewTraces()
		rs.CopyTo(td.ResourceSpans().AppendEmpty())
		send(ofTraces(td))
	}
}

// runStraggling has rank 5 compute three times as long as the others, each step.
func runStraggling(ctx context.Context, job string, send func(message)) {
	each(ctx, 250*time.Millisecond, func(n int64) { sendEach(send, ofTraces(step(job, n, time.Now(), 5))) })
}

// step returns one step of all ranks. The rank slow is slow; -1 is no rank.
func step(job string, n int64, begin time.Time, slow int64) ptrace.Traces {
	td := ptrace.NewTraces()
	at := func(ms int64) int64 { return begin.Add(time.Duration(ms) * time.Millisecond).UnixNano() }
	for rank := range int64(ranks) {
		compute := 10 + rank%3
		if rank == slow {
			compute = 30
		}
		r := neighbourRank(job, rank)
		otelmap.AppendOps(td, &r, []model.Op{
			{Kind: model.KindCompute, Name: "gemm", Start: at(0), End: at(compute), Step: model.Some(n), Stream: model.Some(int64(7))},
			{
				Kind: model.KindCollective, Name: model.AllReduce, Start: at(compute), End: at(31), Step: model.Some(n), Stream: model.Some(int64(20)),
				Comm:       model.Comm{ID: job, Size: model.Some(int64(ranks))},
				Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(n), SeqScope: model.ScopeCommFunc},
			},
			{Kind: model.KindStep, Name: "step", Start: at(0), End: at(31), Step: model.Some(n)},
		})
	}
	return td
}

// beforeHang is how many collectives a job does before it hangs: the connector learns its
// rhythm from 200 gaps of all ranks.
const beforeHang = 100

// runHanging has rank 3 never come to a collective that the others wait in.
func runHanging(ctx context.Context, job string, send func(message)) {
	work, stop := context.WithCancel(ctx)
	each(work, 50*time.Millisecond, func(n int64) {
		sendEach(send, ofTraces(reduced(job, n, time.Now())))
		if n+1 == beforeHang {
			stop()
		}
	})
	since := time.Now()
	if ctx.Err() == nil {
		each(ctx, 2*time.Second, func(int64) { sendEach(send, ofLogs(states(job, 3, beforeHang, since))) })
	}
}

// reduced is one collective of all ranks that is over.
func reduced(job string, seq int64, now time.Time) ptrace.Traces {
	td := ptrace.NewTraces()
	for rank := range int64(ranks) {
		r := neighbourRank(job, rank)
		otelmap.AppendOps(td, &r, []model.Op{{
			Kind: model.KindCollective, Name: model.AllReduce, Start: now.Add(-time.Millisecond).UnixNano(), End: now.UnixNano(), Comm: model.Comm{ID: "0xabc"},
			Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(seq), SeqScope: model.ScopeCommFunc},
		}})
	}
	return td
}

// states are those of all ranks; one has not come to a collective that the others are in.
func states(job string, absent, seq int64, since time.Time) plog.Logs {
	ld := plog.NewLogs()
	for rank := range int64(ranks) {
		s := model.RankState{
			Rank: neighbourRank(job, rank), Time: time.Now().UnixNano(), Source: model.StateRankEvents, Process: model.ProcessRunning,
			Comms: []model.CommState{{
				Comm: model.Comm{ID: "0xabc", Name: "world"}, Members: []int64{0, 1, 2, 3, 4, 5, 6, 7}, Scope: model.ScopeCommFunc,
				Frontiers: []model.Frontier{{Func: model.AllReduce, Enqueued: model.Some(seq - 1), Completed: model.Some(seq - 1)}},
			}},
		}
		if rank != absent {
			s.Comms[0].Frontiers[0].Enqueued = model.Some(seq)
			s.Ops = []model.StateOp{{Kind: model.KindCollective, Name: model.AllReduce, Seq: seq, Created: since.UnixNano()}}
		}
		otelmap.AppendRankState(ld, &s)
	}
	return ld
}

// runResuming has rank 5 load another step than the others.
func runResuming(ctx context.Context, job string, send func(message)) {
	each(ctx, 5*time.Second, func(int64) {
		ld := plog.NewLogs()
		for rank := range int64(ranks) {
			v := model.Resume{Rank: neighbourRank(job, rank), Time: time.Now().UnixNano(), Life: fmt.Sprint("process ", rank), Number: 1, Step: 1200}
			if rank == 5 {
				v.Step = 1100
			}
			resumemap.Append(ld, &v)
		}
		sendEach(send, ofLogs(ld))
	})
}
