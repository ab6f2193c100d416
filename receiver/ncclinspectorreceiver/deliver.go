// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
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
	left, err := deliver.Traces(ctx, rd.retry(), rd.traces, ops, func() ptrace.Traces {
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
	case rd.last && rd.store.lasting() && !deliver.IsPermanent(err):
		rd.interrupted = true
		rd.log.Info("Operations refused at the end: the next run reads them again", zap.Int("operations", left), zap.Error(err))
	default:
		rd.telemetry.ReceiverNcclInspectorOperationsDropped.Add(ctx, int64(left))
		if !errors.Is(err, deliver.ErrClosed) { // what a closed gate refuses is logged once, at the end
			rd.log.Error("Operations refused by the next component", zap.Int("operations", left), zap.Error(err))
		}
	}
}

func (rd *reader) retry() deliver.Retry {
	return deliver.Retry{Config: rd.cfg.RetryOnFailure, Once: rd.last, Retried: func(ctx context.Context) {
		rd.telemetry.ReceiverNcclInspectorDeliveryRetries.Add(ctx, 1)
	}}
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
