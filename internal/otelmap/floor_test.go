// SPDX-License-Identifier: Apache-2.0

//go:build linux

package otelmap

import (
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// liveOps are collectives as internal/rankevents makes them of a ring.
func liveOps(n int) []model.Op {
	ops := make([]model.Op, n)
	for i := range ops {
		at := int64(1_700_000_000_000_000_000 + i*10_000)
		ops[i] = model.Op{
			Kind: model.KindCollective, Name: model.AllReduce, Key: "all_reduce world", Seq: int64(i), Step: model.Some(int64(3)),
			Start: at + 500, End: at + 4000, Launch: model.Some(at), Stream: model.Some(int64(1)),
			Comm: model.Comm{ID: "0xabcdef0123456789", Name: "world", Size: model.Some(int64(8)), Rank: model.Some(int64(3))},
			Collective: model.Collective{
				Name: model.AllReduce, Seq: model.Some(int64(i)), SeqScope: model.ScopeCommFunc, Bytes: model.Some(int64(1 << 20)),
				DType: "bfloat16", Algo: "RING", Proto: "LL128", Channels: model.Some(int64(2)), State: "completed",
			},
			Waits: model.ProxyWaits{GPU: model.Some(1e-6), Peer: model.Some(5e-7), Wire: model.Some(2e-6), Flush: model.Some(0.0)},
			Peer:  model.Some(int64(4)),
			Clock: model.ClockNote{
				Offset: model.Some(1.5), Bound: model.Some(1e-5), Sigma: model.Some(1e-6), Timeline: "host:a/b/raw", RawStart: model.Some(at),
			},
		}
	}
	return ops
}

// bareSpans is the least that pdata itself costs: the same attributes of the same
// spans, put by hand, with ids that cost nothing.
func bareSpans(r *model.Rank, ops []model.Op) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	RankToResource(r, rs.Resource())
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	spans.EnsureCapacity(len(ops))
	for i := range ops {
		o := &ops[i]
		s := spans.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{1})
		s.SetSpanID(pcommon.SpanID{byte(i), byte(i >> 8)})
		s.SetParentSpanID(pcommon.SpanID{2})
		s.SetName(o.Name)
		s.SetKind(ptrace.SpanKindInternal)
		s.SetStartTimestamp(pcommon.Timestamp(o.Start))
		s.SetEndTimestamp(pcommon.Timestamp(o.End))
		bareAttributes(o, s.Attributes())
	}
	return td
}

func bareAttributes(o *model.Op, m pcommon.Map) {
	m.EnsureCapacity(29)
	m.PutStr(semconv.OpKind, string(o.Kind))
	m.PutStr(semconv.OpKey, o.Key)
	m.PutInt(semconv.OpSeq, o.Seq)
	m.PutInt(semconv.Step, o.Step.V)
	m.PutInt(semconv.StreamID, o.Stream.V)
	m.PutInt(semconv.LaunchTime, o.Launch.V)
	m.PutStr(semconv.CommID, o.Comm.ID)
	m.PutStr(semconv.CommName, o.Comm.Name)
	m.PutInt(semconv.CommSize, o.Comm.Size.V)
	m.PutInt(semconv.CommRank, o.Comm.Rank.V)
	m.PutStr(semconv.CollectiveName, o.Collective.Name)
	m.PutInt(semconv.CollectiveSeq, o.Collective.Seq.V)
	m.PutStr(semconv.CollectiveSeqScope, string(o.Collective.SeqScope))
	m.PutInt(semconv.CollectiveBytes, o.Collective.Bytes.V)
	m.PutStr(semconv.CollectiveDType, o.Collective.DType)
	m.PutStr(semconv.CollectiveAlgo, o.Collective.Algo)
	m.PutStr(semconv.CollectiveProto, o.Collective.Proto)
	m.PutInt(semconv.CollectiveChannels, o.Collective.Channels.V)
	m.PutStr(semconv.CollectiveState, o.Collective.State)
	m.PutInt(semconv.Peer, o.Peer.V)
	m.PutDouble(semconv.WaitGPU, o.Waits.GPU.V)
	m.PutDouble(semconv.WaitPeer, o.Waits.Peer.V)
	m.PutDouble(semconv.WaitWire, o.Waits.Wire.V)
	m.PutDouble(semconv.WaitFlush, o.Waits.Flush.V)
	m.PutDouble(semconv.ClockOffset, o.Clock.Offset.V)
	m.PutDouble(semconv.ClockBound, o.Clock.Bound.V)
	m.PutDouble(semconv.ClockSigma, o.Clock.Sigma.V)
	m.PutStr(semconv.ClockTimeline, o.Clock.Timeline)
	m.PutInt(semconv.ClockRawStart, o.Clock.RawStart.V)
}

// BenchmarkOpsOverFloor prints how much more than pdata itself the mapping costs,
// both taken in turn, in time of a core: on a machine that others use too, the
// time that passes says little.
func BenchmarkOpsOverFloor(b *testing.B) {
	const n = 2000
	ops, rank := liveOps(n), model.Rank{JobID: "j", Incarnation: "i", Rank: 3}
	var floor, mapped time.Duration
	spans := 0
	b.ReportAllocs()
	for b.Loop() {
		begin := cpuTime(b)
		bareSpans(&rank, ops)
		between := cpuTime(b)
		OpsToTraces(&rank, ops)
		floor, mapped, spans = floor+between-begin, mapped+cpuTime(b)-between, spans+n
	}
	b.ReportMetric(float64(floor.Nanoseconds())/float64(spans), "floor-ns/span")
	b.ReportMetric(float64(mapped.Nanoseconds())/float64(spans), "mapped-ns/span")
	b.ReportMetric(float64(mapped)/float64(floor), "x-floor")
}

// cpuTime is what this process has used of all cores.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
