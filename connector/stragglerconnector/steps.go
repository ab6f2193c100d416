// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/stepmap"
	"github.com/lockstep-otel/lockstep/internal/straggler"
	"github.com/lockstep-otel/lockstep/internal/straggler/live"
	"github.com/lockstep-otel/lockstep/internal/straggler/steptrace"
)

// steps feeds the analysis of steps, and reports findings, measures and step traces.
type steps struct {
	cfg      *Config
	log      *zap.Logger
	to       hub.Outputs
	analysis *live.Analysis
	held     *steptrace.Holder
	measures *live.Measures
	measured time.Time // when metrics were made last
	analysed int64     // steps
	logged   straggler.Stats
	ledger   *joined // nil: no extension is configured
	ticked   time.Time
	// suspended: what is open may be read again, and is not concluded from time or at the end.
	suspended bool

	counts           hub.Counts
	unread, textsCut atomic.Int64 // unread are spans and attributes
	seen             atomic.Pointer[seen]
}

type seen struct {
	engine              straggler.Stats
	analysed            int64
	bytes               int64
	opsHeld, opsDropped int64
}

func newSteps(cfg *Config, log *zap.Logger) *steps {
	return &steps{
		cfg: cfg, log: log,
		analysis: live.NewAnalysis(cfg.Analysis.Engine(), time.Now),
		held:     steptrace.NewHolder(cfg.StorySpans, cfg.MaxHeldSpans, time.Now),
		measures: live.NewMeasures(cfg.MaxSeries, cfg.MaxOperations),
	}
}

func newEngine(cfg *Config, set connector.Settings) (*hub.Engine, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	s := newSteps(cfg, set.Logger)
	s.publish() // before telemetry reads it
	return &hub.Engine{
		Settings: hub.Settings{
			Interval: cfg.FlushInterval, FlushInterval: cfg.FlushInterval, RepeatInterval: cfg.RepeatInterval,
			InboxBytes: inboxBytes(cfg), Storage: cfg.StorageID, Jobs: cfg.JobsID, Wait: true,
		},
		Traces: s.read, Start: s.start, Forget: s.analysis.Forget, Suspend: s.suspend, Tick: s.tick, Flush: s.flush, Metrics: s.metrics, Seen: s.publish, Stop: func() { s.ledger.leave(); telemetry.Shutdown() },
		Used:   deliver.Used, // whatever becomes of the step traces, the spans are not lost
		Open:   func(time.Time) []model.Finding { return s.analysis.Standing() },
		States: map[string]hub.State{"findings": s.analysis},
		Counts: &s.counts, StorageFailures: telemetry.ConnectorStragglerStorageFailures,
	}, s.observe(telemetry)
}

// The part of max_memory_mib that may wait for the analysis, and the least, which has room for some batches of a
// large job.
const (
	inboxShare = 8
	leastInbox = 16 << 20
)

func inboxBytes(cfg *Config) int {
	return max(leastInbox, int(cfg.Analysis.Engine().MaxMemory/inboxShare))
}

// start has reports hold what the outputs need: rendezvous for step traces, and durations for metrics.
func (s *steps) start(_ context.Context, host component.Host, to hub.Outputs) error {
	s.to = to
	if s.cfg.SequenceID != nil {
		var err error
		if s.ledger, err = join(host, *s.cfg.SequenceID); err != nil {
			return err
		}
		s.analysis.Ask(s.ledger.begin)
	}
	s.analysis.Report(to.Traces, to.Metrics)
	return nil
}

// read reads the operations among the spans.
func (s *steps) read(td ptrace.Traces) hub.Input {
	var problems otelmap.Problems
	ranks, size := otelmap.ReadOps(td, &problems), 0
	s.unread.Add(problems.Count())
	s.textsCut.Add(problems.TextsCut())
	if len(ranks) == 0 {
		return hub.Input{}
	}
	for i := range ranks {
		size += ranks[i].Bytes()
	}
	return hub.Input{Bytes: size, Apply: func(now time.Time) hub.Output { return s.add(ranks, now) }}
}

func (s *steps) add(ranks []model.RankOps, now time.Time) hub.Output {
	if s.to.Traces {
		for i := range ranks {
			s.held.Keep(&ranks[i].Rank, ranks[i].Ops)
		}
	}
	return s.output(s.analysis.Add(ranks), now)
}

// tick closes the steps that are overdue.
func (s *steps) tick(now time.Time) hub.Output {
	before := s.ticked
	s.ticked = now
	if s.suspended {
		return hub.Output{}
	}
	if !before.IsZero() && now.Sub(before) > s.cfg.FlushInterval+pauseSlack {
		s.touch()
	}
	out := s.output(s.analysis.Expire(), now)
	// Every step that the engine knows is reported by its deadline and the next tick.
	s.held.Prune(now.Add(-s.cfg.Analysis.Deadline - 2*s.cfg.FlushInterval))
	s.logLosses()
	out.Records = s.ledger.losses(now)
	return out
}

// pauseSlack is for how long a tick may be late. Later, this process was stopped, as by SIGSTOP, or a large step was
// analysed: nothing could come meanwhile.
const pauseSlack = 5 * time.Second

// suspend stops the deadlines of open steps, or begins them anew.
func (s *steps) suspend(suspended bool) {
	if s.suspended && !suspended {
		s.touch()
	}
	s.suspended = suspended
}

// touch begins the deadlines of open steps anew.
func (s *steps) touch() {
	s.analysis.Touch()
	s.held.Touch()
}

func (s *steps) flush(now time.Time) hub.Output {
	if s.suspended {
		return hub.Output{}
	}
	out := s.output(s.analysis.Flush(), now)
	s.logLosses()
	out.Records = s.ledger.losses(now)
	return out
}

// output reports what came of steps.
func (s *steps) output(of live.Outcome, now time.Time) (out hub.Output) {
	s.analysed += int64(len(of.Reports))
	for _, rep := range of.Reports {
		if rep.Lacks.Why == "" {
			s.measures.Record(rep, now)
		}
		if s.to.Traces {
			findings := s.analysis.Standing()
			out.StepTraces = append(out.StepTraces, stepmap.TraceOf(rep, findings, s.held.Take(rep, findings)))
		}
	}
	if len(of.Changed) > 0 {
		out.Findings = slices.Concat(of.Standing, of.Changed)
	}
	out.Settled = s.ledger.end(of.Reports)
	// A step of 16,384 ranks is 100,000 data points: not after every step.
	out.Measured = len(of.Reports)+len(of.Changed) > 0 && now.Sub(s.measured) >= s.cfg.FlushInterval
	return out
}

func (s *steps) metrics(now time.Time) pmetric.Metrics {
	s.measured = now
	if s.cfg.SeriesExpiration > 0 {
		s.measures.Expire(now.Add(-s.cfg.SeriesExpiration))
	}
	md := pmetric.NewMetrics()
	otelmap.WriteMetrics(md, now, s.measures.All()...)
	return md
}

// logLosses logs what limits and deadlines have cost since the last time.
func (s *steps) logLosses() {
	now := s.analysis.Stats()
	for _, l := range live.Losses(&now, &s.logged) {
		s.log.Warn("Straggler analysis lacks data: "+l.What, zap.Int64("count", l.Count))
	}
	s.logged = now
}

func (s *steps) publish() {
	s.seen.Store(&seen{
		engine: s.analysis.Stats(), analysed: s.analysed, bytes: s.analysis.Bytes(),
		opsHeld: int64(s.held.Held()), opsDropped: s.held.Dropped(),
	})
}
