// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v7"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/inspector"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// format is the name of what is received in the collector's own telemetry.
const format = "nccl_inspector"

// sink gathers what processes tell of, and hands it on in batches.
type sink struct {
	rd    *reader
	batch []model.RankOps
	ops   int
}

// Operation implements [inspector.Sink].
func (s *sink) Operation(rank *model.Rank, op *model.Op) {
	if s.rd.traces == nil {
		return
	}
	if n := len(s.batch); n == 0 || s.batch[n-1].Rank != *rank {
		s.batch = append(s.batch, model.RankOps{Rank: *rank})
	}
	last := &s.batch[len(s.batch)-1]
	last.Ops = append(last.Ops, *op)
	if s.ops++; s.ops >= s.rd.cfg.BatchOps {
		s.flush()
	}
}

// Record implements [inspector.Sink].
func (s *sink) Record(rank *model.Rank, r *inspector.Record) { s.rd.series.record(s.rd.now(), rank, r) }

// Odd implements [inspector.Sink].
func (s *sink) Odd(why string, n int64) { s.rd.odd(why, n) }

func (s *sink) flush() {
	rd := s.rd
	if s.ops == 0 || (rd.ctx.Err() != nil && !rd.last) {
		return // finish hands on what there is
	}
	batch, ops := s.batch, s.ops
	s.batch, s.ops = nil, 0
	if rd.interrupted {
		return
	}
	ctx := rd.obs.StartTracesOp(rd.ctx)
	left, err := rd.offer(ctx, ops, func() ptrace.Traces {
		td := ptrace.NewTraces()
		for i := range batch {
			otelmap.AppendOps(td, &batch[i].Rank, batch[i].Ops)
		}
		return td
	})
	rd.obs.EndTracesOp(ctx, format, ops, err)
	rd.telemetry.ReceiverNcclInspectorOperationsEmitted.Add(ctx, int64(ops-left))
	switch {
	case err == nil:
	case rd.ctx.Err() != nil && !rd.last:
		s.batch, s.ops = batch, ops
	case rd.last && rd.store.lasting() && !consumererror.IsPermanent(err):
		rd.interrupted = true
		rd.log.Info("Operations refused at the end: the next run reads them again", zap.Int("operations", left), zap.Error(err))
	default:
		rd.telemetry.ReceiverNcclInspectorOperationsDropped.Add(ctx, int64(left))
		rd.log.Error("Operations refused by the next component", zap.Int("operations", left), zap.Error(err))
	}
}

// offer gives spans to the next component until it takes them, refuses them for
// good, or time is up. It returns how many were not taken. The next component
// owns what it is given, even if it refuses it, so each attempt builds its own.
func (rd *reader) offer(ctx context.Context, spans int, build func() ptrace.Traces) (left int, err error) {
	retry := rd.cfg.RetryOnFailure
	delay := backoff.ExponentialBackOff{
		InitialInterval: retry.InitialInterval, RandomizationFactor: retry.RandomizationFactor,
		Multiplier: retry.Multiplier, MaxInterval: retry.MaxInterval,
	}
	begin := time.Now()
	for {
		err := rd.traces.ConsumeTraces(ctx, build())
		if err == nil {
			return 0, nil
		}
		var part consumererror.Traces
		if errors.As(err, &part) {
			spans, build = part.Data().SpanCount(), copyOf(part.Data())
		}
		if !retry.Enabled || rd.last || consumererror.IsPermanent(err) {
			return spans, fmt.Errorf("hand on operations: %w", err)
		}
		wait := delay.NextBackOff()
		if retry.MaxElapsedTime > 0 && time.Since(begin)+wait > retry.MaxElapsedTime {
			return spans, fmt.Errorf("hand on operations: got refusals for %v; want at most %v (retry_on_failure::max_elapsed_time): %w",
				time.Since(begin).Round(time.Millisecond), retry.MaxElapsedTime, err)
		}
		rd.telemetry.ReceiverNcclInspectorDeliveryRetries.Add(ctx, 1)
		select {
		case <-ctx.Done():
			return spans, fmt.Errorf("hand on operations: got told to stop after: %w", err)
		case <-time.After(wait):
		}
	}
}

// sendMetrics sends the series that changed. Refused, they are sent with the next
// poll: they only grow. It reports whether nothing waits.
func (rd *reader) sendMetrics() bool {
	if rd.metrics == nil || !rd.series.changed {
		return true
	}
	md := pmetric.NewMetrics()
	rd.series.write(md, rd.now())
	points := md.DataPointCount()
	ctx := rd.obs.StartMetricsOp(rd.ctx)
	err := rd.metrics.ConsumeMetrics(ctx, md)
	rd.obs.EndMetricsOp(ctx, format, points, err)
	if err != nil {
		rd.log.Warn("Metrics refused by the next component: they are sent again", zap.Error(err))
		return false
	}
	rd.series.changed = false
	return true
}

func copyOf(data ptrace.Traces) func() ptrace.Traces {
	return func() ptrace.Traces {
		td := ptrace.NewTraces()
		data.CopyTo(td)
		return td
	}
}
