// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/inspector"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

func (rd *reader) tracesTo(next consumer.Traces) {
	rd.traces = rd.out.Traces(next, &deliver.Counts{
		What: "Operations", Keeps: rd.keeps,
		Emitted: rd.telemetry.ReceiverNcclInspectorOperationsEmitted.Add, Dropped: rd.telemetry.ReceiverNcclInspectorOperationsDropped.Add,
	})
}

// keeps reports whether operations that were refused are delivered again: at the end, since this reader has to
// stop, or by the next run, which reads their lines again.
func (rd *reader) keeps(err error) bool {
	return !deliver.IsPermanent(err) && (rd.last && rd.store.lasting() || !rd.last && rd.told())
}

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
	if s.ops == 0 || (rd.told() && !rd.last) {
		return // finish hands on what there is
	}
	batch, ops := s.batch, s.ops
	s.batch, s.ops = nil, 0
	if rd.interrupted {
		return
	}
	o := rd.traces.Send(rd.ctx, ops, func() ptrace.Traces {
		td := ptrace.NewTraces()
		for i := range batch {
			otelmap.AppendOps(td, &batch[i].Rank, batch[i].Ops)
		}
		return td
	})
	switch {
	case !o.Kept: // taken, or dropped
	case rd.last:
		rd.interrupted = true
	default:
		s.batch, s.ops = batch, ops
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
	rd.series.changed = rd.metrics.Once(rd.ctx, md).Kept
	return !rd.series.changed
}
