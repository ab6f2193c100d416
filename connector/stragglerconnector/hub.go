// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/model"
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
	measured time.Time // when metrics were sent last
	repeated time.Time // when the standing findings were sent last
	own      ownStats
	said     straggler.Stats // losses that the log has told of

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
		measures:  stepmap.NewMetrics(cfg.MaxSeries, cfg.MaxOperations),
	}
	h.interval = shared.NewInterval(cfg.FlushInterval, h.tick)
	h.snapshot()
	return h, h.observe()
}

// attached has reports hold what the consumers are told of: stories tell of meetings, and
// metrics of durations.
func (h *hub) attached() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.analysis.Report(len(h.traces) > 0, len(h.metrics) > 0)
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
	if err := errors.Join(err, h.repeat(ctx, now), h.sendMetrics(ctx, now)); err != nil {
		h.logger.Warn("send conclusions on the interval", zap.Error(err))
	}
	h.warnOfLosses()
	h.snapshot()
}

// stop ends the interval and analyses what is open; calls after the first do nothing.
func (h *hub) stop(ctx context.Context) (err error) {
	h.interval.Stop(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		now := time.Now()
		err = errors.Join(h.send(ctx, h.analysis.Flush(), now), h.sendMetrics(ctx, now))
		h.warnOfLosses()
		h.telemetry.Shutdown()
	})
	return err
}

// warnOfLosses says in the log what limits and deadlines have cost since it was
// last said: a conclusion drawn from a part must not pass for one from the whole.
func (h *hub) warnOfLosses() {
	engine, _ := h.analysis.Stats()
	said := &h.said
	for _, loss := range []struct {
		now, before int64
		what        string
	}{
		{engine.LateOps, said.LateOps, "operations came after their step had been analysed; raise deadline where ranks deliver far apart, and look whether several processes say that they are one rank"},
		{engine.OpsDropped, said.OpsDropped, "operations beyond max_ops_per_rank_step were left out"},
		{engine.StepsEvicted, said.StepsEvicted, "steps were analysed before they were complete, because of max_open_steps or max_open_ops"},
		{engine.RanksRefused, said.RanksRefused, "batches of ranks beyond max_ranks were left out"},
		{engine.WorldsCapped, said.WorldsCapped, "batches stated a world size beyond max_ranks"},
		{engine.JobsEvicted, said.JobsEvicted, "jobs were given up, because of max_jobs"},
		{engine.OpsWithoutStep, said.OpsWithoutStep, "operations belong to no step"},
		{engine.OpsWithoutRank, said.OpsWithoutRank, "operations belong to no rank"},
		{engine.OpsUnsound, said.OpsUnsound, "operations end before they start, or last longer than a day, and were left out"},
		{engine.OpsOfTwins, said.OpsOfTwins, "operations came from a second process that says it is a rank which another has, and were left out; give each job its own lockstep.job.id"},
		{engine.OpsMiscounted, said.OpsMiscounted, "collectives have other numbers on one rank than on the others; does its recording begin later, or does a rank skip one?"},
		{engine.LaunchesContradicted, said.LaunchesContradicted, "steps of ranks have operations that begin before their launch, and are judged without launches; are the clocks of host and device converted alike?"},
		{engine.HostsContradicted, said.HostsContradicted, "steps of ranks have operations that begin before them or were launched outside of them, and are judged without what their host's clock stamped; does another clock stamp host than device?"},
		{engine.StepsOffUnit, said.StepsOffUnit, "steps of ranks lie before 1990 or after 2100, or last less than a microsecond; want stamps in nanoseconds since 1970: are they microseconds or milliseconds?"},
		{engine.WorldsContradicted, said.WorldsContradicted, "batches state another world size than others do, or fewer ranks than there are; set it to how many ranks the job has"},
		{engine.StepsForgotten, said.StepsForgotten, "steps left the window before their time, because of max_window_members"},
		{engine.PlacesOverflowed, said.PlacesOverflowed, "operations share one key, since there are too many distinct ones; is a number or an address part of their names?"},
		{engine.ConclusionsDropped, said.ConclusionsDropped, "places stood out beside too many others, and were not looked into"},
	} {
		if n := loss.now - loss.before; n > 0 {
			h.logger.Warn("Straggler analysis lacks data: "+loss.what, zap.Int64("count", n))
		}
	}
	h.said = engine
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
	if len(out.Changed) > 0 {
		errs = append(errs, h.sendFindings(ctx, slices.Concat(out.Standing, out.Changed)))
	}
	// A step of 16,384 ranks is 100,000 data points: not after every step.
	if now.Sub(h.measured) >= h.cfg.FlushInterval {
		errs = append(errs, h.sendMetrics(ctx, now))
	}
	return errors.Join(errs...)
}

// repeat sends the findings that stand, so that those who keep them know.
func (h *hub) repeat(ctx context.Context, now time.Time) error {
	standing := h.analysis.Standing()
	if len(standing) == 0 || now.Sub(h.repeated) < h.cfg.RepeatInterval {
		return nil
	}
	h.repeated = now
	return h.sendFindings(ctx, standing)
}

func (h *hub) sendFindings(ctx context.Context, findings []model.Finding) error {
	var errs []error
	for _, next := range h.logs {
		err := next.ConsumeLogs(ctx, otelmap.FindingsToLogs(findings))
		if err != nil {
			h.own.findingsLost += int64(len(findings))
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
	h.measured = now
	if len(h.metrics) == 0 {
		return nil
	}
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
