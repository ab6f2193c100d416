// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/epochconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	kit "github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/epoch/logline"
	"github.com/lockstep-otel/lockstep/internal/epoch/replica"
	"github.com/lockstep-otel/lockstep/internal/epoch/resume"
	"github.com/lockstep-otel/lockstep/internal/epoch/watch"
	fleet "github.com/lockstep-otel/lockstep/internal/fleet/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/versionmap"
	"github.com/lockstep-otel/lockstep/internal/rankstate"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// hub is what the instances of one configuration have in common.
type hub struct {
	cfg       *Config
	id        component.ID
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	interval  *kit.Interval
	begin     sync.Once
	kept      *kit.States

	// Consumers are attached before Start and constant afterwards.
	gate    *deliver.Gate
	logs    []consumer.Logs
	metrics []consumer.Metrics
	traces  []consumer.Traces

	watching sync.Mutex // guards the watches and what they read with; nobody is called with it
	watch    *watch.Watch
	fleet    *fleet.Watch
	resume   *resume.Watch
	lines    *logline.Watch
	replicas *replica.Watch
	states   rankstate.Decoder

	// What follows is the interval's.
	series            *measures
	flushed, repeated time.Time
	ended             []model.Finding // of which a consumer refused to hear that they are closed
	endedBytes        int
	owed              bool // a consumer refused an open finding, which was not sent again since

	foreign, unread, refused atomic.Int64
	spansRefused             atomic.Int64
	why                      atomic.Pointer[error] // the first that could not be read since the last tick
	seen                     atomic.Pointer[seen]
}

// seen are the counters of the watches as of the last look.
type seen struct {
	saves  watch.Stats
	fleet  fleet.Stats
	ranks  resume.Stats
	prints replica.Stats
	lines  logline.Stats
}

func newHub(cfg *Config, id component.ID, set component.TelemetrySettings) (*hub, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	h := &hub{
		cfg: cfg, id: id, logger: set.Logger, telemetry: telemetry, gate: deliver.NewGate(set.Logger), series: newMeasures(cfg.MaxSeries),
		watch: watch.New(cfg.watch()), fleet: fleet.New(cfg.fleet()),
		resume: resume.NewWatch(cfg.resume()), replicas: replica.NewWatch(cfg.replicas()), lines: logline.New(cfg.lines()),
	}
	h.seen.Store(&seen{})
	h.interval = kit.NewInterval(cfg.CheckInterval, h.tick)
	return h, h.observe()
}

// start takes what was kept and begins the interval; calls after the first do nothing.
func (h *hub) start(ctx context.Context, host component.Host) (err error) {
	h.begin.Do(func() {
		if err = h.restore(ctx, host); err == nil {
			h.interval.Start()
		}
	})
	return err
}

// consume takes the observations among the records.
func (h *hub) consume(ld plog.Logs) {
	now := time.Now()
	h.watching.Lock()
	defer h.watching.Unlock()
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				ok, err := h.take(rl.Resource(), lr, now)
				switch {
				case err != nil:
					h.unread.Add(1)
					h.why.CompareAndSwap(nil, &err)
				case !ok:
					h.foreign.Add(1)
				}
			}
		}
	}
}

// take takes what a record tells of saves, of versions, of who computes with whom, or of what mixed;
// false where it tells of none.
func (h *hub) take(of pcommon.Resource, lr plog.LogRecord, now time.Time) (bool, error) {
	switch lr.EventName() {
	case semconv.EventEpochObservation:
		o, ok, err := epochmap.LogToObservation(of, lr)
		if !ok || err != nil {
			return ok, err
		}
		h.watch.Observe(&o, now)
		if v, ok := of.Attributes().Get(semconv.ServiceName); ok {
			h.watch.Name(cut.Text(o.JobID, cut.MaxName), cut.Text(v.AsString(), cut.MaxName))
		}
	case semconv.EventHostFact:
		o, ok, err := versionmap.LogToVersion(of, lr)
		if !ok || err != nil {
			return ok, err
		}
		h.fleet.Observe(&o, now)
	case semconv.EventRankState, semconv.EventRankMembers:
		return true, h.takeState(of, lr, now)
	case semconv.EventRankResumed:
		return true, h.takeResume(of, lr, now)
	case semconv.EventRankFingerprint:
		return true, h.takeFingerprint(of, lr, now)
	default:
		return h.takeLine(of, lr, now), nil
	}
	return true, nil
}

// takeState takes who a rank computes with. Of one that was heard of just now nothing is read.
func (h *hub) takeState(of pcommon.Resource, lr plog.LogRecord, now time.Time) error {
	var problems otelmap.Problems
	if source, ok := lr.Attributes().Get(semconv.RankStateSource); ok {
		r, known := otelmap.ResourceToRank(of, &problems)
		if known && h.fleet.Knows(&r, model.StateSource(source.AsString()), now) {
			return nil
		}
		problems = otelmap.Problems{} // they are met again
	}
	if s, ok := otelmap.LogToRankMembers(of, lr, &h.states, &problems); ok {
		h.fleet.AddState(&s, now)
		return nil
	}
	if list := problems.List(); len(list) > 0 {
		return errors.New(list[0].What)
	}
	return nil
}

// tick gives out what has changed. The gate cancels what takes too long at the end.
func (h *hub) tick(now time.Time) {
	if why := h.why.Swap(nil); why != nil {
		h.logger.Warn("leave out observations that cannot be read; the first since the last interval", zap.Error(*why))
	}
	if err := h.give(h.gate.Early(), now, false); err != nil {
		h.logger.Warn("send findings on the interval", zap.Error(err))
	}
}

// stop ends the interval and gives out what is left; calls after the first do nothing.
func (h *hub) stop(ctx context.Context) (err error) {
	last, stopped := h.gate.Stop(ctx)
	h.interval.Stop(func() {
		err = errors.Join(h.give(last, time.Now(), true), h.kept.Close(ctx))
		h.telemetry.Shutdown()
	})
	return errors.Join(err, stopped())
}

// give judges, and sends what is to be said to all consumers; one that fails costs the others
// nothing.
func (h *hub) give(ctx context.Context, now time.Time, last bool) error {
	flush := last || now.Sub(h.flushed) >= h.cfg.FlushInterval
	changed, standing, sums, saves := h.judge(now, flush, last && h.owed)
	if len(changed) > 0 || flush && !last { // before the findings are sent: none is sent that a restart does not know
		h.kept.Save(ctx)
	}
	changed = append(changed, h.ended...)
	h.ended, h.endedBytes = nil, 0
	var errs []error
	if len(standing) > 0 {
		h.owed = false
	}
	for _, findings := range [][]model.Finding{changed, standing} {
		errs = append(errs, h.sendFindings(ctx, findings))
	}
	if flush {
		h.flushed = now
		h.series.set(&sums, now)
		for _, next := range h.metrics {
			md := pmetric.NewMetrics()
			otelmap.WriteMetrics(md, now, h.series.all()...)
			if md.MetricCount() > 0 {
				errs = append(errs, next.ConsumeMetrics(ctx, md))
			}
		}
	}
	return errors.Join(append(errs, h.sendSaves(ctx, saves))...)
}

// judge asks the watches, and holds them for no longer; what stands is asked for in its turn, or where
// all is wanted.
func (h *hub) judge(now time.Time, flush, all bool) (changed, standing []model.Finding, sums sums, saves ptrace.Traces) {
	h.watching.Lock()
	defer h.watching.Unlock()
	changed = slices.Concat(h.watch.Tick(now), h.fleet.Tick(now), h.resume.Tick(now), h.lines.Tick(now), h.replicas.Tick(now))
	if flush {
		sums.jobs, sums.mixed, sums.counts = h.watch.Jobs(), h.fleet.Mixed(), h.fleet.Counts(now)
		sums.resumes, sums.replicas = h.resume.Mixed(), h.replicas.Mixed()
	}
	if all || now.Sub(h.repeated) >= h.cfg.RepeatInterval {
		h.repeated = now
		standing = slices.Concat(h.watch.Standing(now), h.fleet.Standing(now), h.resume.Standing(now), h.replicas.Standing(now), h.lines.Standing(now))
	}
	h.seen.Store(&seen{h.watch.Stats(), h.fleet.Stats(), h.resume.Stats(), h.replicas.Stats(), h.lines.Stats()})
	return changed, standing, sums, h.saves(h.watch.Spans())
}

// maxEnded and maxEndedBytes bound the closed findings that wait to be sent again.
const (
	maxEnded      = 1024
	maxEndedBytes = 16 << 20
)

// sendFindings gives findings out. What is refused is counted, and told again: what stands with the
// next repetition or at the end, what is closed with the next look.
func (h *hub) sendFindings(ctx context.Context, findings []model.Finding) error {
	if len(findings) == 0 {
		return nil
	}
	var errs []error
	for _, next := range h.logs {
		err := next.ConsumeLogs(ctx, otelmap.FindingsToLogs(findings))
		if err == nil {
			continue
		}
		errs = append(errs, err)
		h.refused.Add(int64(len(findings)))
		for i := range findings {
			switch bytes := findings[i].Bytes(); {
			case findings[i].Status != model.StatusClosed:
				h.owed = true
			case len(h.ended) < maxEnded && h.endedBytes+bytes <= maxEndedBytes:
				h.ended, h.endedBytes = append(h.ended, findings[i]), h.endedBytes+bytes
			}
		}
	}
	return errors.Join(errs...)
}
