// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/epochconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/epoch/logline"
	"github.com/lockstep-otel/lockstep/internal/epoch/replica"
	"github.com/lockstep-otel/lockstep/internal/epoch/resume"
	"github.com/lockstep-otel/lockstep/internal/epoch/watch"
	fleet "github.com/lockstep-otel/lockstep/internal/fleet/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
	"github.com/lockstep-otel/lockstep/internal/rankstate"
)

// watches feeds five watches from one stream of records, and reports what they conclude.
type watches struct {
	cfg *Config
	log *zap.Logger

	lock     sync.Mutex // guards the watches
	saves    *watch.Watch
	fleet    *fleet.Watch
	resume   *resume.Watch
	replicas *replica.Watch
	lines    *logline.Watch
	measures *measures

	reading sync.Mutex // guards what states are read with; taken before lock
	states  rankstate.Decoder

	counts          hub.Counts
	foreign, unread atomic.Int64
	why             atomic.Pointer[error] // the first that could not be read since the last tick
	seen            atomic.Pointer[seen]
}

// seen are the counters of the watches as of the last use.
type seen struct {
	saves  watch.Stats
	fleet  fleet.Stats
	ranks  resume.Stats
	prints replica.Stats
	lines  logline.Stats
}

func newWatches(cfg *Config, log *zap.Logger) *watches {
	return &watches{
		cfg: cfg, log: log, measures: newMeasures(cfg.MaxSeries),
		saves: watch.New(cfg.watch()), fleet: fleet.New(cfg.fleet()),
		resume: resume.NewWatch(cfg.resume()), replicas: replica.NewWatch(cfg.replicas()), lines: logline.New(cfg.lines()),
	}
}

// inboxShare is the part of max_memory_mib that may wait for the watches.
const inboxShare = 8

func newEngine(cfg *Config, set connector.Settings) (*hub.Engine, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	w := newWatches(cfg, set.Logger)
	w.publish() // before telemetry reads it
	return &hub.Engine{
		Settings: hub.Settings{
			Interval: cfg.CheckInterval, FlushInterval: cfg.FlushInterval, RepeatInterval: cfg.RepeatInterval,
			InboxBytes: cfg.maxBytes() / inboxShare, Storage: cfg.StorageID,
		},
		Logs: w.read, Tick: w.tick, Flush: w.conclude, Open: w.open, Metrics: w.metrics,
		Seen: w.publish, Stop: telemetry.Shutdown, Lock: &w.lock,
		States: map[string]hub.State{
			"saves": w.saves, "fleet": w.fleet, "resume": w.resume, "replicas": w.replicas, "log_lines": w.lines,
		},
		Counts: &w.counts, StorageFailures: telemetry.ConnectorEpochStorageFailures,
	}, w.observe(telemetry)
}

func (w *watches) tick(now time.Time) hub.Output {
	if why := w.why.Swap(nil); why != nil {
		w.log.Warn("leave out observations that cannot be read; the first since the last interval", zap.Error(*why))
	}
	return w.conclude(now)
}

// conclude returns what has changed.
func (w *watches) conclude(now time.Time) hub.Output {
	return hub.Output{
		Findings: slices.Concat(w.saves.Tick(now), w.fleet.Tick(now), w.resume.Tick(now), w.lines.Tick(now), w.replicas.Tick(now)),
		Spans:    w.spans(w.saves.Spans()),
	}
}

func (w *watches) open(now time.Time) []model.Finding {
	return slices.Concat(w.saves.Standing(now), w.fleet.Standing(now), w.resume.Standing(now), w.replicas.Standing(now), w.lines.Standing(now))
}

func (w *watches) metrics(now time.Time) pmetric.Metrics {
	w.measures.set(&sums{
		jobs: w.saves.Jobs(), mixed: w.fleet.Mixed(), counts: w.fleet.Counts(now), resumes: w.resume.Mixed(), replicas: w.replicas.Mixed(),
	}, now)
	md := pmetric.NewMetrics()
	otelmap.WriteMetrics(md, now, w.measures.all()...)
	return md
}

// spanBytes is about what a span of a save takes.
const spanBytes = 512

// spans makes spans of saves that became complete.
func (w *watches) spans(of []watch.Span) []hub.Spans {
	all := make([]hub.Spans, len(of))
	for i := range of {
		s := &of[i]
		save := &epochmap.Save{
			JobID: s.Job, JobName: w.saves.NameOf(s.Job), Generation: s.Generation, Epoch: s.Save,
			Start: s.Start, End: s.End, FromFiles: s.FromFiles, Domains: s.Domains, Last: s.Last, Confirmed: s.Confirmed,
		}
		all[i] = hub.Spans{
			Key:   fmt.Sprintf("%s/%s/%d", s.Job, s.Generation, s.Save),
			Bytes: spanBytes, Write: func(td ptrace.Traces) { epochmap.AppendSave(save, td) },
		}
	}
	return all
}

func (w *watches) publish() {
	w.seen.Store(&seen{w.saves.Stats(), w.fleet.Stats(), w.resume.Stats(), w.replicas.Stats(), w.lines.Stats()})
}
