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
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	kit "github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/stepmap"
	"github.com/lockstep-otel/lockstep/internal/straggler"
	"github.com/lockstep-otel/lockstep/internal/straggler/live"
	"github.com/lockstep-otel/lockstep/internal/straggler/steptrace"
)

// hub is what the instances of one configuration have in common.
type hub struct {
	cfg       *Config
	id        component.ID
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	interval  *kit.Interval
	begin     sync.Once

	// Outlets are attached before Start and constant afterwards.
	out *deliver.Outlets

	mu       sync.Mutex // guards what follows, and keeps output in order; no consumer is called with it
	analysis *live.Analysis
	held     *steptrace.Holder
	measures *live.Measures
	measured time.Time       // when metrics were sent last
	repeated time.Time       // when the standing findings were sent last
	steps    int64           // that were analysed
	said     straggler.Stats // losses that the log has told of
	kept     *kit.States     // nil: nothing is kept
	unread   int64           // spans and attributes
	textsCut int64

	findingsLost, storySpansLost atomic.Int64

	seen atomic.Pointer[snapshot] // read by telemetry, which must not wait for an analysis
}

// maxWaiting is how many bytes of findings or spans wait for a consumer that does not return.
const maxWaiting = 16 << 20

type snapshot struct {
	engine              straggler.Stats
	steps               int64
	unread, textsCut    int64
	bytes               int64
	opsHeld, opsDropped int64
}

func newHub(cfg *Config, id component.ID, set component.TelemetrySettings) (*hub, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	h := &hub{
		cfg:       cfg,
		id:        id,
		logger:    set.Logger,
		telemetry: telemetry,
		out:       deliver.NewOutlets(set.Logger, maxWaiting),
		analysis:  live.NewAnalysis(cfg.Analysis.Engine(), time.Now),
		held:      steptrace.NewHolder(cfg.StorySpans, cfg.MaxHeldSpans, time.Now),
		measures:  live.NewMeasures(cfg.MaxSeries, cfg.MaxOperations),
	}
	h.interval = kit.NewInterval(cfg.FlushInterval, h.tick)
	h.snapshot()
	return h, h.observe()
}

// start takes the findings that the run before kept, and begins the interval; calls after the first do nothing.
func (h *hub) start(ctx context.Context, host component.Host) (err error) {
	h.begin.Do(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		at := kit.Storage{Extension: h.cfg.StorageID, Kind: component.KindConnector, Component: h.id}
		// The hub holds its mutex whenever it saves.
		h.kept, err = kit.OpenStates(ctx, host, at, kit.Unlocked{}, map[string]kit.State{"findings": h.analysis}, h.storageFailed)
		if err == nil {
			h.interval.Start()
		}
	})
	return err
}

func (h *hub) storageFailed(err error) {
	h.telemetry.ConnectorStragglerStorageFailures.Add(context.Background(), 1)
	h.logger.Warn("Storage of findings fails", zap.Error(err))
}

// attached has reports hold what the consumers are told of: step traces of meetings, and
// metrics of durations.
func (h *hub) attached() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.analysis.Report(h.out.HasTraces(), h.out.HasMetrics())
}

// consume takes the operations among the spans. What the consumers refuse is lost and counted: a
// repetition would be late, so the error tells the sender not to repeat. What a consumer that is
// stuck refuses later is only counted.
func (h *hub) consume(ctx context.Context, td ptrace.Traces) error {
	if err := h.take(td).Wait(ctx); err != nil {
		return consumererror.NewPermanent(err)
	}
	return nil
}

func (h *hub) take(td ptrace.Traces) deliver.Sent {
	h.mu.Lock()
	defer h.mu.Unlock()
	var problems otelmap.Problems
	ranks := otelmap.ReadOps(td, &problems)
	h.unread += problems.Count()
	h.textsCut += problems.TextsCut()
	if h.out.HasTraces() {
		for i := range ranks {
			h.held.Keep(&ranks[i].Rank, ranks[i].Ops)
		}
	}
	out := h.analysis.Add(ranks)
	if len(out.Changed) > 0 {
		h.kept.Save(context.Background())
	}
	return h.send(out, time.Now())
}

// tick closes the steps that are overdue and repeats the metrics.
func (h *hub) tick(now time.Time) {
	if err := h.expire(now).Wait(context.Background()); err != nil {
		h.logger.Warn("send conclusions on the interval", zap.Error(err))
	}
}

func (h *hub) expire(now time.Time) deliver.Sent {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cfg.SeriesExpiration > 0 {
		h.measures.Expire(now.Add(-h.cfg.SeriesExpiration))
	}
	out := h.analysis.Expire()
	h.kept.Save(context.Background())
	all := h.send(out, now)
	// Every step that the engine knows is reported by its deadline and the next tick.
	h.held.Prune(now.Add(-h.cfg.Analysis.Deadline - 2*h.cfg.FlushInterval))
	all = append(append(all, h.repeat(now)...), h.sendMetrics(now)...)
	h.warnOfLosses()
	h.snapshot()
	return all
}

// stop ends the interval and analyses what is open; calls after the first do nothing.
func (h *hub) stop(ctx context.Context) (err error) {
	last, stopped := h.out.Stop(ctx)
	h.interval.Stop(func() {
		err = errors.Join(h.flush().Wait(last), h.leave(ctx))
	})
	err = errors.Join(err, stopped())
	h.telemetry.Shutdown()
	return err
}

func (h *hub) flush() deliver.Sent {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	out := h.analysis.Flush()
	h.kept.Save(context.Background())
	all := h.send(out, now)
	all = append(all, h.sendMetrics(now)...)
	h.warnOfLosses()
	return all
}

func (h *hub) leave(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.kept
	h.kept = nil // what comes later is not kept
	return kept.Close(ctx)
}

// warnOfLosses says in the log what limits and deadlines have cost since it was
// last said: a conclusion drawn from a part must not pass for one from the whole.
func (h *hub) warnOfLosses() {
	engine := h.analysis.Stats()
	said := &h.said
	for _, loss := range []struct {
		now, before int64
		what        string
	}{
		{engine.LateOps, said.LateOps, "operations came after their step had been analysed; raise deadline where ranks deliver far apart, and look whether several processes say that they are one rank"},
		{engine.OpsDropped, said.OpsDropped, "operations beyond max_ops_per_rank_step were left out"},
		{engine.StepsEvicted, said.StepsEvicted, "steps were analysed before they were complete, because of max_open_steps, max_open_ops or max_memory_mib"},
		{engine.RanksRefused, said.RanksRefused, "batches of ranks beyond max_ranks were left out"},
		{engine.WorldsCapped, said.WorldsCapped, "batches stated a world size beyond max_ranks"},
		{engine.JobsEvicted, said.JobsEvicted, "jobs were given up, because of max_jobs or max_memory_mib"},
		{engine.OpsWithoutStep, said.OpsWithoutStep, "operations belong to no step"},
		{engine.OpsWithoutRank, said.OpsWithoutRank, "operations belong to no rank"},
		{engine.OpsUnsound, said.OpsUnsound, "operations end before they start, or last longer than a day, and were left out"},
		{engine.OpsOfTwins, said.OpsOfTwins, "operations came from a second process that says it is a rank which another has, and were left out; give each job its own lockstep.job.id"},
		{engine.OpsMiscounted, said.OpsMiscounted, "collectives have other numbers on one rank than on the others; does its recording begin later, or does a rank skip one?"},
		{engine.LaunchesContradicted, said.LaunchesContradicted, "steps of ranks have operations that begin before their launch, and are judged without launches; are the clocks of host and device converted alike?"},
		{engine.HostsContradicted, said.HostsContradicted, "steps of ranks have operations that begin before them or were launched outside of them, and are judged without what their host's clock stamped; does another clock stamp host than device?"},
		{engine.StepsOffUnit, said.StepsOffUnit, "steps of ranks lie before 1990 or after 2100, or last less than a microsecond; want stamps in nanoseconds since 1970: are they microseconds or milliseconds?"},
		{engine.WorldsContradicted, said.WorldsContradicted, "batches state another world size than others do, or fewer ranks than there are; set it to how many ranks the job has"},
		{engine.StepsForgotten, said.StepsForgotten, "steps left the window before their time, because of max_window_members or max_memory_mib"},
		{engine.PlacesOverflowed, said.PlacesOverflowed, "operations share one key, since there are too many distinct ones; is a number or an address part of their names?"},
		{engine.FindingsWithheld, said.FindingsWithheld, "findings were not opened, since too many are open"},
		{engine.ConclusionsDropped, said.ConclusionsDropped, "places stood out beside too many others, and were not looked into"},
	} {
		if n := loss.now - loss.before; n > 0 {
			h.logger.Warn("Straggler analysis lacks data: "+loss.what, zap.Int64("count", n))
		}
	}
	h.said = engine
}

// send puts an outcome to all consumers; the caller holds the lock.
func (h *hub) send(out live.Outcome, now time.Time) (all deliver.Sent) {
	defer h.snapshot()
	if len(out.Reports) == 0 && len(out.Changed) == 0 {
		return nil
	}
	h.steps += int64(len(out.Reports))
	for _, rep := range out.Reports {
		h.measures.Record(rep, now)
		all = append(all, h.sendStepTrace(rep)...)
	}
	if len(out.Changed) > 0 {
		all = append(all, h.sendFindings(slices.Concat(out.Standing, out.Changed))...)
	}
	// A step of 16,384 ranks is 100,000 data points: not after every step.
	if now.Sub(h.measured) >= h.cfg.FlushInterval {
		all = append(all, h.sendMetrics(now)...)
	}
	return all
}

// repeat sends the findings that stand, so that those who keep them know.
func (h *hub) repeat(now time.Time) deliver.Sent {
	standing := h.analysis.Standing()
	if len(standing) == 0 || now.Sub(h.repeated) < h.cfg.RepeatInterval {
		return nil
	}
	h.repeated = now
	return h.sendFindings(standing)
}

func (h *hub) sendFindings(findings []model.Finding) deliver.Sent {
	return h.out.PutLogs(otelmap.FindingsToLogs(findings), func(lost int) { h.findingsLost.Add(int64(lost)) })
}

func (h *hub) sendStepTrace(rep *straggler.StepReport) deliver.Sent {
	if !h.out.HasTraces() {
		return nil
	}
	findings := h.analysis.Standing()
	trace := stepmap.TraceOf(rep, findings, h.held.Take(rep, findings))
	return h.out.PutTraces(trace, func(lost int) { h.storySpansLost.Add(int64(lost)) })
}

// sendMetrics sends all series. Nothing is lost where a consumer fails: they are cumulative, or the
// last value is repeated.
func (h *hub) sendMetrics(now time.Time) deliver.Sent {
	h.measured = now
	return h.out.PutMetrics(func() pmetric.Metrics {
		md := pmetric.NewMetrics()
		otelmap.WriteMetrics(md, now, h.measures.All()...)
		return md
	})
}

func (h *hub) snapshot() {
	h.seen.Store(&snapshot{
		engine: h.analysis.Stats(), steps: h.steps, unread: h.unread, textsCut: h.textsCut, bytes: h.analysis.Bytes(),
		opsHeld: int64(h.held.Held()), opsDropped: h.held.Dropped(),
	})
}
