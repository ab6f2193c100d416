// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/connector/desyncconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// BenchmarkSpans is what a job that works costs: 100 collectives of a rank in one batch.
func BenchmarkSpans(b *testing.B) {
	const batch = 100
	face, err := NewFactory().CreateTracesToLogs(context.Background(), connectortest.NewNopSettings(metadata.Type), newDefaultConfig(), consumertest.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = face.Shutdown(context.Background()) }()
	of, at := rankOf(0), time.Unix(1_760_000_000, 0)
	ops := make([]model.Op, batch)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for i := range ops {
			at = at.Add(time.Millisecond)
			ops[i] = reduce(int64(i), at)
		}
		td := otelmap.OpsToTraces(&of, ops)
		b.StartTimer()
		_ = face.ConsumeTraces(context.Background(), td)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/span")
}

// BenchmarkStates takes the states of 1,024 ranks, in one message.
func BenchmarkStates(b *testing.B) {
	const ranks = 1024
	face, err := NewFactory().CreateLogsToLogs(context.Background(), connectortest.NewNopSettings(metadata.Type), newDefaultConfig(), consumertest.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = face.Shutdown(context.Background()) }()
	ld := plog.NewLogs()
	for rank := range int64(ranks) {
		otelmap.AppendRankState(ld, state(rank, 7, true, time.Unix(1_760_000_000, 0)))
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = face.ConsumeLogs(context.Background(), ld)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*ranks), "ns/state")
}
