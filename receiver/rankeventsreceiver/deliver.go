// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"slices"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// adder is the Add of a counter.
type adder = deliver.Adder

func add(to adder, rd *reader, n int64) {
	if n > 0 {
		to(rd.ctx, n)
	}
}

func (rd *reader) tracesTo(next consumer.Traces) {
	rd.traces = rd.out.Traces(next, &deliver.Counts{
		What: "Operations", Keeps: rd.leaveToNext,
		Emitted: rd.telemetry.ReceiverRankEventsOperationsEmitted.Add, Dropped: rd.telemetry.ReceiverRankEventsOperationsDropped.Add,
	})
}

func (rd *reader) logsTo(next consumer.Logs) {
	rd.logs = rd.out.Logs(next, &deliver.Counts{
		What: "Events of open operations and states", Keeps: rd.leaveToNext, Dropped: rd.telemetry.ReceiverRankEventsEventsDropped.Add,
	})
}

// deliver hands a batch on. It is called while a ring is read: as long as the
// next component refuses, the ring holds what comes.
func (rd *reader) deliver(t *tracked, b *rankevents.Batch) {
	// First, since who hangs is told of even where operations are refused for long.
	t.stalled = t.stalled || slices.ContainsFunc(b.Open, func(o model.OpenOp) bool { return o.Status == model.StatusOpen })
	rd.sendLogs(b, len(b.Open), func(ld plog.Logs) { otelmap.AppendOpen(ld, &b.Rank, b.Open) })
	rd.sendLogs(b, len(b.States), func(ld plog.Logs) {
		for i := range b.States {
			b.States[i].Name = t.path
			otelmap.AppendRankState(ld, &b.States[i])
		}
	})
	rd.sendLogs(b, len(b.Members), func(ld plog.Logs) {
		for i := range b.Members {
			otelmap.AppendRankMembers(ld, &b.Members[i])
		}
	})
	rd.sendLogs(b, len(b.Resumes), func(ld plog.Logs) {
		for i := range b.Resumes {
			resumemap.Append(ld, &b.Resumes[i])
		}
	})
	rd.sendLogs(b, len(b.Fingerprints), func(ld plog.Logs) { resumemap.AppendFingerprints(ld, &b.Rank, b.Fingerprints) })
	rd.sendLogs(b, len(b.Missing), func(ld plog.Logs) { otelmap.AppendMissing(ld, &b.Rank, b.Missing) })
	rd.traces.Send(rd.ctx, len(b.Ops), func() ptrace.Traces { return toTraces(b, rd.cfg.RequestSpans) }, rankField(b))
	t.undelivered, rd.left = t.undelivered || rd.left, false
}

// sendLogs hands on n events, which write makes anew for each attempt.
func (rd *reader) sendLogs(b *rankevents.Batch, n int, write func(plog.Logs)) {
	rd.logs.Send(rd.ctx, n, func() plog.Logs {
		ld := plog.NewLogs()
		write(ld)
		return ld
	}, rankField(b))
}

func rankField(b *rankevents.Batch) zap.Field { return zap.Int64("rank", b.Rank.Rank) }

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
