// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"context"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// deliver hands a trace on, one batch per step, and returns the number of
// operations that were accepted.
func (rd *reader) deliver(ctx context.Context, rank *model.Rank, trace *kineto.Trace) int {
	accepted, rest := 0, 0 // rest is not delivered: the receiver stops
	var batch []model.Op
	for op := range trace.Ops() {
		if rd.closes(batch, &op) {
			accepted += rd.emit(ctx, rank, batch)
			batch = batch[:0]
		}
		if ctx.Err() != nil {
			rest++
			continue
		}
		batch = append(batch, op)
	}
	if rest > 0 {
		rest += len(batch)
		rd.telemetry.ReceiverTorchTraceOperationsDropped.Add(ctx, int64(rest))
		rd.log.Warn("Stopped in the middle of a trace", zap.Int64("rank", rank.Rank), zap.Int("operations_not_delivered", rest))
		return accepted
	}
	return accepted + rd.emit(ctx, rank, batch)
}

// closes reports whether op belongs to another batch than those before it. The
// step's own operation is the last of its step; analyses take it as the end.
func (rd *reader) closes(batch []model.Op, op *model.Op) bool {
	if len(batch) == 0 {
		return false
	}
	last := &batch[len(batch)-1]
	return last.Kind == model.KindStep || last.Step != op.Step || len(batch) >= rd.cfg.BatchOps
}

// emit hands one batch on and returns how many of its operations were accepted.
func (rd *reader) emit(ctx context.Context, rank *model.Rank, ops []model.Op) int {
	if len(ops) == 0 {
		return 0
	}
	return len(ops) - rd.next.Send(ctx, len(ops), func() ptrace.Traces { return otelmap.OpsToTraces(rank, ops) },
		zap.Int64("rank", rank.Rank), zap.Int64("step", ops[0].Step.Or(-1))).Left
}
