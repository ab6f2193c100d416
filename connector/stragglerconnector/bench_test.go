// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// benchStep is one step of many ranks: 20 collectives with a kernel before each.
func benchStep(n int64, ranks int) []ptrace.Traces {
	const meetings = 20
	batches := make([]ptrace.Traces, ranks)
	start := time.Unix(1_700_000_000, 0).UnixNano() + n*1000*ms
	for r := range int64(ranks) {
		rank := model.Rank{
			JobID: "job", Incarnation: "inc", Rank: r, WorldSize: model.Some(int64(ranks)),
			ClockID: fmt.Sprintf("host:%d/b/raw", r/8), // eight ranks a host
		}
		ops := make([]model.Op, 0, 2*meetings+1)
		for i := range int64(meetings) {
			from := start + i*40*ms
			enter := from + 10*ms + (r*7919+i)%1000*1000
			ops = append(ops, model.Op{
				Kind: model.KindCompute, Name: "gemm", Seq: i, Start: from, End: enter, Step: model.Some(n), Stream: model.Some(int64(7)),
			}, model.Op{
				Kind: model.KindCollective, Name: "all_reduce", Seq: i, Start: enter, End: from + 20*ms, Step: model.Some(n), Stream: model.Some(int64(20)),
				Comm:       model.Comm{ID: "c", Size: model.Some(int64(ranks))},
				Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(n*meetings + i), SeqScope: model.ScopeCommFunc},
			})
		}
		ops = append(ops, model.Op{Kind: model.KindStep, Name: "step", Start: start, End: start + 800*ms, Step: model.Some(n)})
		batches[r] = otelmap.OpsToTraces(&rank, ops)
	}
	return batches
}

// BenchmarkStep takes one step of all ranks through all outputs.
func BenchmarkStep(b *testing.B) {
	for _, ranks := range []int{8, 128, 1024} {
		b.Run(fmt.Sprintf("%d ranks", ranks), func(b *testing.B) {
			ctx, f, cfg, set := context.Background(), NewFactory(), newDefaultConfig(), connectortest.NewNopSettings(metadata.Type)
			leader, _ := f.CreateTracesToLogs(ctx, set, cfg, consumertest.NewNop())
			metrics, _ := f.CreateTracesToMetrics(ctx, set, cfg, consumertest.NewNop())
			story, _ := f.CreateTracesToTraces(ctx, set, cfg, consumertest.NewNop())
			_ = leader.Start(ctx, componenttest.NewNopHost())
			b.ReportAllocs()
			spans, n := 0, int64(0)
			for b.Loop() {
				b.StopTimer()
				batches := benchStep(n, ranks)
				b.StartTimer()
				for _, td := range batches {
					spans += td.SpanCount()
					_ = leader.ConsumeTraces(ctx, td)
				}
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(spans), "ns/span")
			_ = leader.Shutdown(ctx)
			_ = metrics.Shutdown(ctx)
			_ = story.Shutdown(ctx)
		})
	}
}
