package desyncconnector

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/desyncconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/desync/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/shared"
)

// hub is what the instances of one configuration have in common.
type hub struct {
	cfg       *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	interval  *shared.Interval

	// Instances that take a signal; constant after the first Start.
	spans, records int

	mu       sync.Mutex // guards what follows, and keeps events in order on their way out
	logs     outlet[consumer.Logs]
	metrics  outlet[consumer.Metrics]
	watch    *watch.Watch
	states   otelmap.StateReader
	series   *series
	own      ownStats
	flushed  time.Time // when metrics were sent last
	repeated time.Time // when standing findings were

	seen atomic.Pointer[snapshot] // read by telemetry, which must not wait for a consumer
}

// outlet is where one signal goes: next, as long as any instance is open.
type outlet[C any] struct {
	next C
	open int
}

// ownStats count what the watch does not see.
type ownStats struct{ foreign, unread, lost int64 }

type snapshot struct {
	watch watch.Stats
	own   ownStats
}

func newHub(cfg *Config, set component.TelemetrySettings) (*hub, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	h := &hub{
		cfg: cfg, logger: set.Logger, telemetry: telemetry, watch: watch.New(cfg.watch()), series: newSeries(cfg.MaxSeries),
	}
	h.interval = shared.NewInterval(cfg.CheckInterval, h.tick)
	h.snapshot()
	return h, h.observe()
}

func (h *hub) toLogs(feeds *int, next consumer.Logs) *face {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logs.next = next
	h.logs.open++
	*feeds++
	return &face{first: *feeds == 1, leave: h.leaveLogs}
}

func (h *hub) toMetrics(feeds *int, next consumer.Metrics) *face {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.metrics.next = next
	h.metrics.open++
	*feeds++
	return &face{first: *feeds == 1, leave: h.leaveMetrics}
}

// tick looks whether something stands for too long, and gives out what has changed.
func (h *hub) tick(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx := context.Background()
	changed := h.watch.Tick(now)
	err := h.sendFindings(ctx, changed)
	if now.Sub(h.repeated) >= h.cfg.RepeatInterval {
		h.repeated = now
		err = errors.Join(err, h.sendFindings(ctx, h.watch.Standing()))
	}
	if len(changed) > 0 || now.Sub(h.flushed) >= h.cfg.FlushInterval {
		err = errors.Join(err, h.sendMetrics(ctx, now))
	}
	if err != nil {
		h.logger.Warn("send what hangs on the interval", zap.Error(err))
	}
	h.snapshot()
}

// leaveLogs gives out, with the last instance that can, what is to be said.
func (h *hub) leaveLogs(ctx context.Context) (err error) {
	h.mu.Lock()
	if h.logs.open--; h.logs.open == 0 {
		err = h.sendFindings(ctx, h.watch.Flush(time.Now()))
		h.snapshot()
	}
	h.mu.Unlock()
	h.end()
	return err
}

func (h *hub) leaveMetrics(ctx context.Context) (err error) {
	h.mu.Lock()
	if h.metrics.open == 1 {
		err = h.sendMetrics(ctx, time.Now())
	}
	h.metrics.open--
	h.mu.Unlock()
	h.end()
	return err
}

// end stops the interval once nothing goes out any more.
func (h *hub) end() {
	h.mu.Lock()
	last := h.logs.open == 0 && h.metrics.open == 0
	h.mu.Unlock()
	if last {
		h.interval.Stop(h.telemetry.Shutdown)
	}
}

// sendFindings gives findings out. What the consumer refuses is lost and counted: what stands
// is repeated.
func (h *hub) sendFindings(ctx context.Context, findings []model.Finding) error {
	if len(findings) == 0 || h.logs.next == nil {
		return nil
	}
	err := h.logs.next.ConsumeLogs(ctx, otelmap.FindingsToLogs(findings))
	if err != nil {
		h.own.lost += int64(len(findings))
	}
	return err
}

// sendMetrics gives out all series; a value that is lost is repeated.
func (h *hub) sendMetrics(ctx context.Context, now time.Time) error {
	h.flushed = now
	if h.metrics.open == 0 {
		return nil
	}
	h.series.set(h.watch, now)
	md := pmetric.NewMetrics()
	otelmap.WriteMetrics(md, now, h.series.all()...)
	if md.MetricCount() == 0 {
		return nil
	}
	return h.metrics.next.ConsumeMetrics(ctx, md)
}

func (h *hub) snapshot() { h.seen.Store(&snapshot{watch: h.watch.Stats(), own: h.own}) }
