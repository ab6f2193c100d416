// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/receiver/flightrecorderreceiver/internal/metadata"
)

// format is the name of what is received in the collector's own telemetry.
const format = "flight_recorder"

// delivery hands on what the hub has read. The consumers are set before it is used; then one
// goroutine uses it.
type delivery struct {
	cfg       *Config
	log       *zap.Logger
	telemetry *metadata.TelemetryBuilder
	obs       *receiverhelper.ObsReport
	gate      *deliver.Gate
	logs      consumer.Logs // nil where no pipeline takes them
	traces    consumer.Traces
	metrics   consumer.Metrics
	opens     frwatch.Opens

	//nolint:containedctx // a poll's calls have no context of their own
	ctx  context.Context
	last bool // what is refused now is not offered again
}

// incident hands on the states of ranks, what they have open, and who is absent, of whom of
// says the job.
func (d *delivery) incident(of *model.Rank, in *frwatch.Incident) {
	if d.logs == nil {
		return
	}
	now := time.Now()
	for part := range slices.Chunk(in.States, d.cfg.BatchStates) {
		if d.events(len(part), func(ld plog.Logs) {
			for i := range part {
				otelmap.AppendRankState(ld, &part[i])
			}
		}) {
			d.telemetry.ReceiverFlightRecorderStatesEmitted.Add(d.ctx, int64(len(part)))
		}
	}
	for part := range slices.Chunk(in.Absent, d.cfg.BatchStates) {
		if d.events(len(part), func(ld plog.Logs) {
			for _, a := range part {
				a.Time = now.UnixNano()
				otelmap.AppendAbsence(ld, of, &a)
			}
		}) {
			d.telemetry.ReceiverFlightRecorderAbsencesEmitted.Add(d.ctx, int64(len(part)))
		}
	}
	for i := range in.States {
		d.open(&in.States[i], in.Began, now)
	}
}

// open hands on the operations that a rank has open.
func (d *delivery) open(s *model.RankState, began, now time.Time) {
	at := began.UnixNano()
	if s.Time > 0 {
		at = s.Time
	}
	open, omitted := frwatch.Open(s, min(at, now.UnixNano()), d.cfg.StallAfter, d.cfg.MaxOpenEvents)
	if omitted > 0 {
		d.telemetry.ReceiverFlightRecorderOpenEventsOmitted.Add(d.ctx, omitted)
	}
	forgotten := d.opens.Forgotten
	open = d.opens.Tell(now, s, open)
	if n := d.opens.Forgotten - forgotten; n > 0 {
		d.telemetry.ReceiverFlightRecorderOpenEventsForgotten.Add(d.ctx, n)
	}
	if len(open) > 0 && !d.events(len(open), func(ld plog.Logs) { otelmap.AppendOpen(ld, &s.Rank, open) }) {
		d.opens.Refused(s, open)
	}
}

// events hands on a batch of events, and reports whether it was taken.
func (d *delivery) events(n int, build func(plog.Logs)) bool {
	ctx := d.obs.StartLogsOp(d.ctx)
	left, err := deliver.Logs(ctx, d.retry(), d.logs, n, func() plog.Logs {
		ld := plog.NewLogs()
		build(ld)
		observed(ld, pcommon.NewTimestampFromTime(time.Now()))
		return ld
	})
	d.obs.EndLogsOp(ctx, format, n, err)
	if err != nil {
		d.telemetry.ReceiverFlightRecorderEventsDropped.Add(d.ctx, int64(left))
		d.logRefusal("Events refused by the next component", err, zap.Int("events", left))
	}
	return err == nil
}

// logRefusal logs a refusal. What a closed gate refuses is logged once, at the end.
func (d *delivery) logRefusal(message string, err error, fields ...zap.Field) {
	if !errors.Is(err, deliver.ErrClosed) {
		d.log.Error(message, append(fields, zap.Error(err))...)
	}
}

// observed stamps the events that do not say when they happened.
func observed(ld plog.Logs, now pcommon.Timestamp) {
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if lr.ObservedTimestamp() == 0 {
					lr.SetObservedTimestamp(now)
				}
			}
		}
	}
}

// ops hands on operations of one rank.
func (d *delivery) ops(rank *model.Rank, ops []model.Op) {
	if d.traces == nil {
		return
	}
	for part := range slices.Chunk(ops, d.cfg.BatchOps) {
		ctx := d.obs.StartTracesOp(d.ctx)
		left, err := deliver.Traces(ctx, d.retry(), d.traces, len(part), func() ptrace.Traces { return otelmap.OpsToTraces(rank, part) })
		d.obs.EndTracesOp(ctx, format, len(part), err)
		d.telemetry.ReceiverFlightRecorderOperationsEmitted.Add(d.ctx, int64(len(part)-left))
		if err != nil {
			d.telemetry.ReceiverFlightRecorderOperationsDropped.Add(d.ctx, int64(left))
			d.logRefusal("Operations refused by the next component", err, zap.Int64("rank", rank.Rank), zap.Int("operations", left))
		}
	}
}

func (d *delivery) retry() deliver.Retry {
	return deliver.Retry{Config: d.cfg.RetryOnFailure, Once: d.last, Retried: func(ctx context.Context) {
		d.telemetry.ReceiverFlightRecorderDeliveryRetries.Add(ctx, 1)
	}}
}

// sendMetrics sends the series that changed. Refused, they are sent with the next poll: they
// only grow.
func (d *delivery) sendMetrics(r *recorded, now time.Time) {
	if d.metrics == nil || !r.changed {
		return
	}
	md := pmetric.NewMetrics()
	r.write(md, now)
	points := md.DataPointCount()
	ctx := d.obs.StartMetricsOp(d.ctx)
	err := d.metrics.ConsumeMetrics(ctx, md)
	d.obs.EndMetricsOp(ctx, format, points, err)
	if err != nil {
		d.log.Warn("Metrics refused by the next component", zap.Error(err))
		return
	}
	r.changed = false
}
