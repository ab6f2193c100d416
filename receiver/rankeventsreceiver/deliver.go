// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// format is the name of what is received in the collector's own telemetry.
const format = "lockstep_ring"

// adder is the Add of a counter.
type adder = func(context.Context, int64, ...metric.AddOption)

func add(to adder, rd *reader, n int64) {
	if n > 0 {
		to(rd.ctx, n)
	}
}

// deliver hands a batch on. It is called while a ring is read: as long as the
// next component refuses, the ring holds what comes.
func (rd *reader) deliver(t *tracked, b *rankevents.Batch) {
	// First, since who hangs is told of even where operations are refused for long.
	t.stalled = t.stalled || slices.ContainsFunc(b.Open, func(o model.OpenOp) bool { return o.Status == model.StatusOpen })
	if rd.logs != nil && len(b.Open) > 0 {
		rd.deliverLogs(b, len(b.Open), func(ld plog.Logs) { otelmap.AppendOpen(ld, &b.Rank, b.Open) })
	}
	if rd.logs != nil && len(b.States) > 0 {
		rd.deliverLogs(b, len(b.States), func(ld plog.Logs) {
			for i := range b.States {
				b.States[i].Name = t.path
				otelmap.AppendRankState(ld, &b.States[i])
			}
		})
	}
	if rd.logs != nil && len(b.Members) > 0 {
		rd.deliverLogs(b, len(b.Members), func(ld plog.Logs) {
			for i := range b.Members {
				otelmap.AppendRankMembers(ld, &b.Members[i])
			}
		})
	}
	if rd.logs != nil && len(b.Resumes) > 0 {
		rd.deliverLogs(b, len(b.Resumes), func(ld plog.Logs) {
			for i := range b.Resumes {
				resumemap.Append(ld, &b.Resumes[i])
			}
		})
	}
	if rd.logs != nil && len(b.Fingerprints) > 0 {
		rd.deliverLogs(b, len(b.Fingerprints), func(ld plog.Logs) { resumemap.AppendFingerprints(ld, &b.Rank, b.Fingerprints) })
	}
	if rd.logs != nil && len(b.Missing) > 0 {
		rd.deliverLogs(b, len(b.Missing), func(ld plog.Logs) { otelmap.AppendMissing(ld, &b.Rank, b.Missing) })
	}
	if rd.traces != nil && len(b.Ops) > 0 {
		rd.deliverOps(b)
	}
	t.undelivered, rd.left = t.undelivered || rd.left, false
}

func (rd *reader) deliverOps(b *rankevents.Batch) {
	ctx := rd.obs.StartTracesOp(rd.ctx)
	left, err := deliver.Traces(ctx, rd.retry(), rd.traces, len(b.Ops), func() ptrace.Traces { return toTraces(b, rd.cfg.RequestSpans) })
	rd.obs.EndTracesOp(ctx, format, len(b.Ops), err)
	add(rd.telemetry.ReceiverRankEventsOperationsEmitted.Add, rd, int64(len(b.Ops)-left))
	if err != nil && !rd.leaveToNext() {
		add(rd.telemetry.ReceiverRankEventsOperationsDropped.Add, rd, int64(left))
		rd.logRefusal("Operations refused by the next component", &b.Rank, left, err)
	}
}

// deliverLogs hands on n events, which write makes anew for each attempt.
func (rd *reader) deliverLogs(b *rankevents.Batch, n int, write func(plog.Logs)) {
	ctx := rd.obs.StartLogsOp(rd.ctx)
	left, err := deliver.Logs(ctx, rd.retry(), rd.logs, n, func() plog.Logs {
		ld := plog.NewLogs()
		write(ld)
		return ld
	})
	rd.obs.EndLogsOp(ctx, format, n, err)
	if err != nil && !rd.leaveToNext() {
		add(rd.telemetry.ReceiverRankEventsEventsDropped.Add, rd, int64(left))
		rd.logRefusal("Events of open operations and states refused by the next component", &b.Rank, left, err)
	}
}

// logRefusal logs a refusal. What a closed gate refuses is logged once, at the end.
func (rd *reader) logRefusal(message string, of *model.Rank, left int, err error) {
	if !errors.Is(err, deliver.ErrClosed) {
		rd.log.Error(message, zap.Int64("rank", of.Rank), zap.Int("items", left), zap.Error(err))
	}
}

func (rd *reader) retry() deliver.Retry {
	return deliver.Retry{Config: rd.cfg.RetryOnFailure, Once: rd.stopping, Retried: func(ctx context.Context) {
		rd.telemetry.ReceiverRankEventsDeliveryRetries.Add(ctx, 1)
	}}
}

// toTraces maps a batch.
func toTraces(b *rankevents.Batch, requests bool) ptrace.Traces {
	td := otelmap.OpsToTraces(&b.Rank, b.Ops)
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	next := 0
	for i := range b.Ops {
		if b.Ops[i].Kind != model.KindStep || next >= len(b.Summaries) {
			continue
		}
		writeSummary(&b.Summaries[next], spans.At(i))
		next++
		if requests {
			otelmap.AppendRequestSpans(spans, &b.Rank, &b.Ops[i])
		}
	}
	return td
}

func writeSummary(s *rankevents.Summary, span ptrace.Span) {
	sum := otelmap.Summary{
		Compute: s.Compute, ComputeOverlapped: s.ComputeOverlapped, Transfer: s.Transfer, Copy: s.Copy,
		LaunchIdle: s.LaunchIdle, DependencyIdle: s.DependencyIdle,
		Ops: s.Ops, Collectives: s.Collectives, Histograms: otelmap.MarshalHistograms(histograms(s)),
	}
	otelmap.WriteSummary(&sum, span)
	own := otelmap.OwnSummary{
		Lost: s.Lost, Bytes: s.Bytes, Inferred: s.Unmeasured,
		WaitGPU: s.Waits[0], WaitPeer: s.Waits[1], WaitWire: s.Waits[2], WaitFlush: s.Waits[3],
		Links: marshalLinks(s.Links),
	}
	otelmap.WriteOwnSummary(&own, span.Attributes())
}

func histograms(s *rankevents.Summary) map[string]*stats.Histogram {
	out := make(map[string]*stats.Histogram, len(s.Histograms))
	for _, h := range s.Histograms {
		out[h.Key] = h.Histogram()
	}
	return out
}
