// SPDX-License-Identifier: Apache-2.0

package clocksconnector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/clocksconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	kit "github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// hub is what the instances of one configuration have in common.
type hub struct {
	cfg       *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder

	// Consumers are attached before Start and constant afterwards.
	gate    *deliver.Gate
	logs    []consumer.Logs
	metrics []consumer.Metrics

	// The timeline is made with the hub, or found at Start where it is an extension.
	begin    sync.Once
	beginErr error
	timeline *timeline.Timeline
	feed     *timeline.Feed

	own ownStats
	// why is the first event that was refused since the last tick.
	why atomic.Pointer[error]

	// What follows is the interval's.
	series  *measures
	flushed time.Time

	interval *kit.Interval
}

// ownStats count what the timeline does not see.
type ownStats struct{ edges, models, foreign, refused, lost, overflowed atomic.Int64 }

func newHub(cfg *Config, set component.TelemetrySettings) (*hub, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	h := &hub{cfg: cfg, logger: set.Logger, telemetry: telemetry, gate: deliver.NewGate(set.Logger), series: newMeasures(cfg.MaxSeries)}
	h.interval = kit.NewInterval(cfg.SolveInterval, h.tick)
	if cfg.Timeline == nil {
		h.use(timeline.New(cfg.options()))
	}
	return h, h.observe()
}

func (h *hub) use(t *timeline.Timeline) { h.timeline, h.feed = t, t.Feed() }

// start finds the timeline, and begins to solve.
func (h *hub) start(host component.Host) error {
	h.begin.Do(func() {
		if h.beginErr = h.find(host); h.beginErr == nil {
			h.interval.Start()
		}
	})
	return h.beginErr
}

func (h *hub) find(host component.Host) error {
	if h.timeline != nil {
		return nil
	}
	ext, ok := host.GetExtensions()[*h.cfg.Timeline]
	if !ok {
		return fmt.Errorf("find timeline: got no extension %q; want one that is listed under service::extensions", h.cfg.Timeline)
	}
	p, ok := ext.(timeline.Provider)
	if !ok {
		return fmt.Errorf("find timeline: got extension %q, which holds none; want one of type timeline", h.cfg.Timeline)
	}
	h.use(p.Timeline())
	return nil
}

// tick advances the timeline, unless an extension does, and sends new models and findings. When the
// connector stops, the gate cancels a send that takes too long.
func (h *hub) tick(now time.Time) {
	if why := h.why.Swap(nil); why != nil {
		h.logger.Warn("leave out clock events that cannot be used; the first since the last interval", zap.Error(*why))
	}
	if err := h.give(h.gate.Early(), now, false); err != nil {
		h.logger.Warn("send clock models on the interval", zap.Error(err))
	}
}

// stop ends the interval and gives out what is left; calls after the first do nothing.
func (h *hub) stop(ctx context.Context) (err error) {
	last, stopped := h.gate.Stop(ctx)
	h.interval.Stop(func() {
		if h.timeline != nil {
			err = h.give(last, time.Now(), true)
			h.feed.Close()
		}
		h.telemetry.Shutdown()
	})
	return errors.Join(err, stopped())
}

// give sends what is new to all consumers; one that fails costs the others nothing.
func (h *hub) give(ctx context.Context, now time.Time, last bool) error {
	if h.cfg.Timeline == nil || last {
		h.timeline.Advance(now)
	}
	out := h.feed.Take()
	for i := range out.Findings {
		out.Findings[i].Host = h.timeline.NameOf(out.Findings[i].Host)
	}
	h.own.overflowed.Store(h.timeline.Counters().FindingsOverflowed)
	var errs []error
	if n := len(out.Models) + len(out.Findings); n > 0 {
		for _, next := range h.logs {
			if err := next.ConsumeLogs(ctx, events(&out)); err != nil {
				h.own.lost.Add(int64(n))
				errs = append(errs, err)
			}
		}
	}
	h.series.add(out.Models, now)
	if last || now.Sub(h.flushed) >= h.cfg.FlushInterval {
		h.flushed = now
		errs = append(errs, h.sendMetrics(ctx, now))
	}
	return errors.Join(errs...)
}

// sendMetrics gives out all series.
func (h *hub) sendMetrics(ctx context.Context, now time.Time) error {
	if h.cfg.SeriesExpiration > 0 {
		h.series.expire(now.Add(-h.cfg.SeriesExpiration))
	}
	var errs []error
	for _, next := range h.metrics {
		md := pmetric.NewMetrics()
		otelmap.WriteMetrics(md, now, h.series.all()...)
		if md.MetricCount() > 0 {
			errs = append(errs, next.ConsumeMetrics(ctx, md))
		}
	}
	return errors.Join(errs...)
}
