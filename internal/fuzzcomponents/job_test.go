// SPDX-License-Identifier: Apache-2.0

package fuzzcomponents

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/versionmap"
)

// world is how many ranks the job has from which inputs begin.
const world = 3

func rankOf(n int64) model.Rank {
	host := fmt.Sprint("node", n%2)
	return model.Rank{
		JobName: "train", JobID: "job", Incarnation: "inc", Rank: n, LocalRank: model.Some(n / 2), WorldSize: model.Some(int64(world)),
		HostName: host, HostID: host, HWID: fmt.Sprint("GPU-", n), PID: model.Some(100 + n), ClockID: "host:" + host + "/boot/realtime",
	}
}

// operations are one step of a rank; rank 1 is slow.
func operations(rank, step int64, begin time.Time) []model.Op {
	at := func(ms int64) int64 { return begin.Add(time.Duration(ms) * time.Millisecond).UnixNano() }
	compute := int64(10)
	if rank == 1 {
		compute = 30
	}
	stream, comm := model.Some(int64(7)), model.Comm{ID: "0xc", Name: "world", Size: model.Some(int64(world))}
	ops := []model.Op{
		{Kind: model.KindHost, Name: "dataloader", Start: at(0), End: at(1), ThreadID: model.Some(int64(1))},
		{Kind: model.KindScope, Name: "forward", Start: at(1), End: at(compute), ThreadID: model.Some(int64(1))},
		{Kind: model.KindCopy, Name: "memcpy", Start: at(1), End: at(2), Stream: stream},
		{Kind: model.KindCompute, Name: "gemm", Start: at(2), End: at(compute), Stream: stream, Launch: model.Some(at(1)), WorkBytes: model.Some(int64(1 << 20))},
		{
			Kind: model.KindCollective, Name: model.AllReduce, Start: at(compute), End: at(32), Stream: model.Some(int64(20)), Comm: comm,
			Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(step), SeqScope: model.ScopeCommFunc, Bytes: model.Some(int64(4096))},
		},
		{Kind: model.KindSend, Name: "send", Start: at(32), End: at(33), Stream: model.Some(int64(21)), Comm: comm, Peer: model.Some((rank + 1) % world)},
		{Kind: model.KindRecv, Name: "recv", Start: at(32), End: at(33), Stream: model.Some(int64(21)), Comm: comm, Peer: model.Some((rank + world - 1) % world)},
	}
	ops = append(ops, model.Op{Kind: model.KindStep, Name: "step", Start: at(0), End: at(34), StepOps: model.Some(int64(len(ops)))})
	for i := range ops {
		ops[i].Step = model.Some(step)
	}
	return ops
}

// spans are one step of all ranks, and a request that is no operation.
func spans(step int64, now time.Time) ptrace.Traces {
	td := ptrace.NewTraces()
	for rank := range int64(world) {
		r := rankOf(rank)
		otelmap.AppendOps(td, &r, operations(rank, step, now))
	}
	request(td, byte(step), now)
	return td
}

// request is a call of one service by another.
func request(td ptrace.Traces, id byte, now time.Time) {
	for i, kind := range []ptrace.SpanKind{ptrace.SpanKindClient, ptrace.SpanKindServer} {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", fmt.Sprint("service ", i))
		rs.Resource().Attributes().PutStr("host.name", fmt.Sprint("node", i))
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID([16]byte{1, id})
		s.SetSpanID([8]byte{byte(i + 1), id})
		s.SetParentSpanID([8]byte{byte(i), id})
		s.SetKind(kind)
		s.SetName("GET")
		s.SetStartTimestamp(otelTime(now, i))
		s.SetEndTimestamp(otelTime(now, 10-i))
		s.Events().AppendEmpty().SetTimestamp(otelTime(now, 5))
	}
}

// records are one event of every kind that ranks, nodes and connectors send.
func records(step int64, now time.Time) plog.Logs {
	ld := plog.NewLogs()
	at := now.UnixNano()
	for rank := range int64(world) {
		ofRank(ld, rank, step, now)
	}
	ofNodes(ld, step, at)
	rl := ld.ResourceLogs().AppendEmpty()
	epochmap.JobToResource("job", "train", rl.Resource())
	events := rl.ScopeLogs().AppendEmpty().LogRecords()
	for rank := range int64(world) {
		o := model.EpochObservation{
			Time: at, JobID: "job", Generation: "3 ranks", Save: 100, Domain: model.Domain{Kind: model.DomainModel, ID: fmt.Sprint("rank ", rank)}, Of: world,
			State: model.DomainCommitted, Epoch: model.Some(100 - rank%2), Witness: "metadata", Observer: fmt.Sprint("node", rank), Revision: step + 1, Confidence: 1,
		}
		epochmap.ObservationToLog(&o, events.AppendEmpty())
	}
	f := model.Finding{
		Time: at, Start: at - 1000, Severity: model.SeverityWarn, JobName: "train", JobID: "job", Incarnation: "inc", Kind: model.FindingStraggler,
		Class: model.ClassCompute, ID: "f", Revision: step + 1, Status: model.StatusOpen, Rank: model.Some(int64(1)), StepFirst: model.Some(int64(0)), StepLast: model.Some(step),
		CostSeconds: model.Some(0.01), CostShare: model.Some(0.3), Confidence: 0.9, Evidence: evidence.Text(`{"excess_seconds":0.02}`), Ranks: []int64{1, 2}, Links: []model.SpanRef{{}},
	}
	otelmap.FindingToLog(&f, events.AppendEmpty())
	events.AppendEmpty().Body().SetStr("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE)")
	return ld
}

func ofRank(ld plog.Logs, rank, step int64, now time.Time) {
	r, at := rankOf(rank), now.UnixNano()
	open := model.OpenOp{
		Op: operations(rank, step, now)[4], Time: at, Status: model.StatusOpen, Age: 3, InFlight: 1,
		Enqueued: model.Some(step), Completed: model.Some(step - 1), Scope: "forward", ScopeFor: model.Some(1.5),
	}
	otelmap.AppendOpen(ld, &r, []model.OpenOp{open})
	state := model.RankState{
		Rank: r, Time: at, Source: model.StateRankEvents, Process: model.ProcessRunning, LastEnqueue: at, LibVersion: "2.26.2",
		Comms: []model.CommState{{
			Comm: model.Comm{ID: "0xc", Name: "world"}, Members: []int64{0, 1, 2}, Scope: model.ScopeCommFunc,
			Frontiers: []model.Frontier{{Func: model.AllReduce, Enqueued: model.Some(step), Completed: model.Some(step - 1)}},
		}},
		Ops: []model.StateOp{{Kind: model.KindCollective, Name: model.AllReduce, Seq: step, Created: at - int64(time.Minute), Stack: 1}}, Stacks: []string{"main"},
	}
	if rank == 1 { // which the others wait for
		state.Ops = nil
	}
	otelmap.AppendRankState(ld, &state)
	otelmap.AppendRankMembers(ld, &state)
	otelmap.AppendAbsence(ld, &r, &model.Absence{Rank: rank, Reason: model.AbsentDead, Detail: "pid gone", Time: at})
	otelmap.AppendFact(ld, &model.Fact{Rank: r, Source: "nccl_ras", Kind: model.FactNCCLAsyncError, What: "timeout", Time: at})
	resumemap.Append(ld, &model.Resume{
		Rank: r, Time: at, Life: "boot/1", Number: 1, Step: 100 + rank%2, OptimizerStep: model.Some(int64(100)), DataCursor: "7", RNGDigest: fmt.Sprintf("%032x", rank), Replica: "dp",
	})
	resumemap.AppendFingerprints(ld, &r, []model.Fingerprint{{Rank: r, Time: at, Life: "boot/1", Step: step, Hash: uint64(rank % 2), Total: 100, Group: "dp", Replicas: world}})
}

func ofNodes(ld plog.Logs, step, at int64) {
	for n := range int64(2) {
		rl := ld.ResourceLogs().AppendEmpty()
		versionmap.NodeToResource(fmt.Sprint("node", n), fmt.Sprint("node", n), rl.Resource())
		events := rl.ScopeLogs().AppendEmpty().LogRecords()
		versionmap.VersionToLog(&model.VersionObservation{
			Time: at, HostName: fmt.Sprint("node", n), Domain: model.VersionKernelDriver, Version: fmt.Sprint("550.", n), Units: 1, Of: 1, Life: 1, Revision: step + 1,
		}, events.AppendEmpty())
		versionmap.FactToLog(&model.NodeFact{Time: at, Source: "fleet_version", Kind: model.FactDriverMismatch, What: "550 and 560"}, events.AppendEmpty())
		clockmap.EdgeToLog(&model.ClockEdge{
			Src: "host:node0/boot/raw", Dst: fmt.Sprintf("host:node%d/boot/%s", n, []string{"realtime", "raw"}[n]), At: at, Span: 1e9,
			Lower: -1000, Upper: 1000, Samples: 10, Source: []string{model.EdgePair, model.EdgeProbe}[n], Stamps: model.StampKernel, Sigma: 10,
		}, events.AppendEmpty())
		clockmap.ModelToLog(&model.ClockModel{Clock: "host:node1/boot/raw", Timeline: "timeline:host:node0/boot/raw#1", From: at, Until: at + 1, At: at, Bound: 1000}, events.AppendEmpty())
	}
}
