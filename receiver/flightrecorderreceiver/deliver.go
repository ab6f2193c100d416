// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/receiver/flightrecorderreceiver/internal/metadata"
)

// delivery delivers what the collector has read. The consumers are set before it is used; then one
// goroutine uses it.
type delivery struct {
	*deliver.Receiver
	cfg       *Config
	telemetry *metadata.TelemetryBuilder
	logs      *deliver.Sender[plog.Logs] // nil where no pipeline takes them
	traces    *deliver.Sender[ptrace.Traces]
	metrics   *deliver.Sender[pmetric.Metrics]
	opens     frwatch.Opens

	//nolint:containedctx // a poll's calls have no context of their own
	ctx context.Context
}

func newDelivery(set receiver.Settings, cfg *Config, telemetry *metadata.TelemetryBuilder) (*delivery, error) {
	to, err := deliver.NewReceiver(set, deliver.ReceiverConfig{
		Transport: "file", Format: "flight_recorder", Retry: cfg.RetryOnFailure, Retried: telemetry.ReceiverFlightRecorderDeliveryRetries.Add,
	})
	if err != nil {
		return nil, err
	}
	return &delivery{Receiver: to, cfg: cfg, telemetry: telemetry}, nil
}

func (d *delivery) logsTo(next consumer.Logs) {
	d.logs = d.Logs(next, &deliver.Counts{What: "Events", Dropped: d.telemetry.ReceiverFlightRecorderEventsDropped.Add})
}

func (d *delivery) tracesTo(next consumer.Traces) {
	d.traces = d.Traces(next, &deliver.Counts{
		What: "Operations", Emitted: d.telemetry.ReceiverFlightRecorderOperationsEmitted.Add, Dropped: d.telemetry.ReceiverFlightRecorderOperationsDropped.Add,
	})
}

func (d *delivery) metricsTo(next consumer.Metrics) { d.metrics = d.Metrics(next) }

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
	return d.logs.Send(d.ctx, n, func() plog.Logs {
		ld := plog.NewLogs()
		build(ld)
		observed(ld, pcommon.NewTimestampFromTime(time.Now()))
		return ld
	}).Err == nil
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
	for part := range slices.Chunk(ops, d.cfg.BatchOps) {
		d.traces.Send(d.ctx, len(part), func() ptrace.Traces { return otelmap.OpsToTraces(rank, part) }, zap.Int64("rank", rank.Rank))
	}
}

// sendMetrics sends the series that changed. Refused, they are sent with the next poll: they
// only grow.
func (d *delivery) sendMetrics(r *recorded, now time.Time) {
	if d.metrics == nil || !r.changed {
		return
	}
	md := pmetric.NewMetrics()
	r.write(md, now)
	r.changed = d.metrics.Once(d.ctx, md).Kept
}
