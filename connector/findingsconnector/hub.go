// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/findingsconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/incident"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/shared"
)

// hub is what the instances of one configuration have in common.
type hub struct {
	cfg       *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder

	// Consumers are attached before Start and constant afterwards.
	logs    []consumer.Logs
	metrics []consumer.Metrics
	traces  []consumer.Traces

	mu     sync.Mutex // guards what follows, and keeps events in order on their way out
	engine *incident.Engine
	counts *otelmap.Metric
	own    ownStats

	seen atomic.Pointer[snapshot] // read by telemetry, which must not wait for a consumer

	interval *shared.Interval
}

// ownStats count what the engine does not see.
type ownStats struct{ foreign, badAttributes, lost int64 }

type snapshot struct {
	engine incident.Stats
	own    ownStats
	open   int
}

func newHub(cfg *Config, set component.TelemetrySettings) (*hub, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	h := &hub{
		cfg:       cfg,
		logger:    set.Logger,
		telemetry: telemetry,
		engine:    incident.NewEngine(cfg.engine()),
		counts:    newCounts(cfg.MaxSeries),
	}
	h.interval = shared.NewInterval(cfg.FlushInterval, h.tick)
	h.snapshot()
	return h, h.observe()
}

// tick repeats the metrics and closes what has ended.
func (h *hub) tick(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cfg.SeriesExpiration > 0 {
		h.counts.Expire(now.Add(-h.cfg.SeriesExpiration))
	}
	ctx := context.Background()
	if err := errors.Join(h.send(ctx, h.engine.Tick(now), now), h.sendMetrics(ctx, now)); err != nil {
		h.logger.Warn("send findings on the interval", zap.Error(err))
	}
}

// stop ends the interval and closes all findings; calls after the first do nothing.
func (h *hub) stop(ctx context.Context) (err error) {
	h.interval.Stop(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		err = h.send(ctx, h.engine.Flush(), time.Now())
		h.telemetry.Shutdown()
	})
	return err
}

// consume takes the findings among the records. What the consumers refuse is
// lost and counted: a repetition would be taken for a duplicate, so the error
// tells the sender not to repeat.
func (h *hub) consume(ctx context.Context, ld plog.Logs) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	var problems otelmap.Problems
	var events []incident.Event
	for _, f := range h.findings(ld, &problems) {
		events = append(events, h.engine.Add(f, now)...)
	}
	h.own.badAttributes += problems.Count()
	if err := h.send(ctx, events, now); err != nil {
		return consumererror.NewPermanent(err)
	}
	return nil
}

func (h *hub) findings(ld plog.Logs, problems *otelmap.Problems) []model.Finding {
	var findings []model.Finding
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if f, ok := otelmap.LogToFinding(lr, problems); ok {
					findings = append(findings, f)
				} else {
					h.own.foreign++
				}
			}
		}
	}
	return findings
}

// send gives events to all consumers; one that fails costs the others nothing.
func (h *hub) send(ctx context.Context, events []incident.Event, now time.Time) error {
	defer h.snapshot()
	if len(events) == 0 {
		return nil
	}
	all, closed := split(events)
	var errs []error
	for _, next := range h.logs {
		errs = append(errs, h.lost(len(all), next.ConsumeLogs(ctx, otelmap.FindingsToLogs(all))))
	}
	for _, next := range h.traces {
		if len(closed) > 0 {
			errs = append(errs, h.lost(len(closed), next.ConsumeTraces(ctx, otelmap.FindingsToTraces(closed))))
		}
	}
	count(h.counts, events, now)
	errs = append(errs, h.sendMetrics(ctx, now))
	return errors.Join(errs...)
}

func (h *hub) lost(n int, err error) error {
	if err != nil {
		h.own.lost += int64(n)
	}
	return err
}

// sendMetrics gives out all series. Nothing is lost where a consumer fails:
// they are cumulative.
func (h *hub) sendMetrics(ctx context.Context, now time.Time) error {
	var errs []error
	for _, next := range h.metrics {
		md := pmetric.NewMetrics()
		otelmap.WriteMetrics(md, now, h.counts)
		if md.MetricCount() > 0 {
			errs = append(errs, next.ConsumeMetrics(ctx, md))
		}
	}
	return errors.Join(errs...)
}

func split(events []incident.Event) (all, closed []model.Finding) {
	for i := range events {
		all = append(all, events[i].Finding)
		if events[i].Closed {
			closed = append(closed, events[i].Finding)
		}
	}
	return all, closed
}

func (h *hub) snapshot() {
	h.seen.Store(&snapshot{engine: h.engine.Stats(), own: h.own, open: h.engine.Open()})
}
