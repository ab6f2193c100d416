package stragglerconnector

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/stepmap"
	"github.com/lockstep-otel/lockstep/internal/shared"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// hub is what the instances of one configuration have in common.
type hub struct {
	cfg       *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	interval  *shared.Interval

	// Consumers are attached before Start and constant afterwards.
	logs    []consumer.Logs
	metrics []consumer.Metrics
	traces  []consumer.Traces

	mu       sync.Mutex // guards what follows, and keeps output in order
	analysis *stepmap.Analysis
	teller   *stepmap.Teller
	measures *stepmap.Metrics
	own      ownStats

	seen atomic.Pointer[snapshot] // read by telemetry, which must not wait for a consumer
}

// ownStats count what the engine does not see.
type ownStats struct{ steps, findingsLost, storySpansLost int64 }

type snapshot struct {
	engine              straggler.Stats
	own                 ownStats
	unread              int64
	opsHeld, opsDropped int64
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
		analysis:  stepmap.NewAnalysis(cfg.Analysis.Engine(), time.Now),
		teller:    stepmap.NewTeller(cfg.StorySpans, cfg.MaxHeldSpans, time.Now),
		measures:  stepmap.NewMetrics(cfg.MaxSeries),
	}
	h.interval = shared.NewInterval(cfg.FlushInterval, h.tick)
	h.snapshot()
	return h, h.observe()
}

// consume takes the operations among the spans. What the consumers refuse is
// lost and counted: a repetition would be late, so the error tells the sender
// not to repeat.
func (h *hub) consume(ctx context.Context, td ptrace.Traces) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	keep := h.teller.Keep
	if len(h.traces) == 0 {
		keep = nil
	}
	if err := h.send(ctx, h.analysis.Add(td, keep), time.Now()); err != nil {
		return consumererror.NewPermanent(err)
	}
	return nil
}

// tick closes the steps that are overdue and repeats the metrics.
func (h *hub) tick(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cfg.SeriesExpiration > 0 {
		h.measures.Expire(now.Add(-h.cfg.SeriesExpiration))
	}
	ctx := context.Background()
	err := h.send(ctx, h.analysis.Expire(), now)
	// Every step that the engine knows is reported by its deadline and the next tick.
	h.teller.Prune(now.Add(-h.cfg.Analysis.Deadline - 2*h.cfg.FlushInterval))
	if err := errors.Join(err, h.sendMetrics(ctx, now)); err != nil {
		h.logger.Warn("send conclusions on the interval", zap.Error(err))
	}
	h.snapshot()
}

// stop ends the interval and analyses what is open; calls after the first do nothing.
func (h *hub) stop(ctx context.Context) (err error) {
	h.interval.Stop(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		err = h.send(ctx, h.analysis.Flush(), time.Now())
		h.telemetry.Shutdown()
	})
	return err
}

// send gives an outcome to all consumers; one that fails costs the others nothing.
func (h *hub) send(ctx context.Context, out stepmap.Outcome, now time.Time) error {
	defer h.snapshot()
	if len(out.Reports) == 0 && len(out.Changed) == 0 {
		return nil
	}
	h.own.steps += int64(len(out.Reports))
	var errs []error
	for _, rep := range out.Reports {
		h.measures.Record(rep, now)
		errs = append(errs, h.sendStory(ctx, rep))
	}
	errs = append(errs, h.sendFindings(ctx, out), h.sendMetrics(ctx, now))
	return errors.Join(errs...)
}

func (h *hub) sendFindings(ctx context.Context, out stepmap.Outcome) error {
	var errs []error
	for _, next := range h.logs {
		if len(out.Changed) == 0 {
			break
		}
		err := next.ConsumeLogs(ctx, otelmap.FindingsToLogs(out.Changed))
		if err != nil {
			h.own.findingsLost += int64(len(out.Changed))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (h *hub) sendStory(ctx context.Context, rep *straggler.StepReport) error {
	if len(h.traces) == 0 {
		return nil
	}
	story := h.teller.Tell(rep, h.analysis.Standing())
	var errs []error
	for i, next := range h.traces {
		td := story
		if i < len(h.traces)-1 { // the consumer owns what it is given
			td = ptrace.NewTraces()
			story.CopyTo(td)
		}
		spans := td.SpanCount()
		err := next.ConsumeTraces(ctx, td)
		if err != nil {
			h.own.storySpansLost += int64(spans)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// sendMetrics gives out all series. Nothing is lost where a consumer fails:
// they are cumulative, or the last value is repeated.
func (h *hub) sendMetrics(ctx context.Context, now time.Time) error {
	var errs []error
	for _, next := range h.metrics {
		if md := h.measures.Write(now); md.DataPointCount() > 0 {
			errs = append(errs, next.ConsumeMetrics(ctx, md))
		}
	}
	return errors.Join(errs...)
}

func (h *hub) snapshot() {
	engine, unread := h.analysis.Stats()
	h.seen.Store(&snapshot{
		engine: engine, own: h.own, unread: unread,
		opsHeld: int64(h.teller.Held()), opsDropped: h.teller.Dropped(),
	})
}
