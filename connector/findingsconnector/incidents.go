// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/connector/findingsconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/incident"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/series"
)

// incidents joins the findings of all analyses, and reports each change once.
type incidents struct {
	cfg    *Config
	engine *incident.Engine
	series *series.Metric
	opened bool  // the last use of the engine opened a finding
	cut    int64 // findings of which something was cut

	counts                 hub.Counts
	foreign, badAttributes atomic.Int64
	seen                   atomic.Pointer[seen] // read by telemetry
}

type seen struct {
	engine incident.Stats
	cut    int64
	open   int
}

// keyOpened is where findings that are new are kept.
const keyOpened = "opened"

func newEngine(cfg *Config, set connector.Settings) (*hub.Engine, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	c := &incidents{cfg: cfg, engine: incident.NewEngine(cfg.engine()), series: newCounts(cfg.MaxSeries)}
	c.publish() // before telemetry reads it
	return &hub.Engine{
		Settings: hub.Settings{Interval: cfg.FlushInterval, FlushInterval: cfg.FlushInterval, Storage: cfg.StorageID, Jobs: cfg.JobsID, Wait: true},
		Logs:     c.read, Flush: c.flush, Forget: c.engine.Forget, Collects: true, Metrics: c.metrics, Seen: c.publish, Stop: telemetry.Shutdown,
		Tick:   func(now time.Time) hub.Output { return c.output(c.engine.Tick(now), now) },
		States: map[string]hub.State{"findings": c.engine, keyOpened: c.engine.Opened()},
		Save:   c.save, Sent: c.sent,
		Counts: &c.counts, StorageFailures: telemetry.ConnectorFindingsStorageFailures,
	}, c.observe(telemetry)
}

func (c *incidents) observe(t *metadata.TelemetryBuilder) error {
	of := func(value func(*seen) int64) func() int64 {
		return func() int64 { return value(c.seen.Load()) }
	}
	return hub.Observe(
		hub.Counter{Register: t.RegisterConnectorFindingsReceivedCallback, Value: of(func(s *seen) int64 { return s.engine.Received })},
		hub.Counter{Register: t.RegisterConnectorFindingsDuplicatesCallback, Value: of(func(s *seen) int64 { return s.engine.Duplicates })},
		hub.Counter{Register: t.RegisterConnectorFindingsLateCallback, Value: of(func(s *seen) int64 { return s.engine.Late })},
		hub.Counter{Register: t.RegisterConnectorFindingsEvictedCallback, Value: of(func(s *seen) int64 { return s.engine.Evicted })},
		hub.Counter{Register: t.RegisterConnectorFindingsCutCallback, Value: of(func(s *seen) int64 { return s.cut })},
		hub.Counter{Register: t.RegisterConnectorFindingsForgottenCallback, Value: of(func(s *seen) int64 { return s.engine.Forgotten })},
		hub.Counter{Register: t.RegisterConnectorFindingsWithoutIDCallback, Value: of(func(s *seen) int64 { return s.engine.WithoutID })},
		hub.Counter{Register: t.RegisterConnectorFindingsForeignRecordsCallback, Value: c.foreign.Load},
		hub.Counter{Register: t.RegisterConnectorFindingsBadAttributesCallback, Value: c.badAttributes.Load},
		hub.Counter{Register: t.RegisterConnectorFindingsLostCallback, Value: func() int64 { return c.counts.EventsLost.Load() + c.counts.SpansLost.Load() }},
		hub.Counter{Register: t.RegisterConnectorFindingsOpenCallback, Value: of(func(s *seen) int64 { return int64(s.open) })},
	)
}

func (c *incidents) publish() {
	c.seen.Store(&seen{engine: c.engine.Stats(), cut: c.cut, open: c.engine.Open()})
}

// received is a finding, and whether reading it has cut something.
type received struct {
	finding model.Finding
	cut     bool
}

// read reads the findings among the records.
func (c *incidents) read(ld plog.Logs) hub.Input {
	var problems otelmap.Problems
	var findings []received
	size := 0
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				before := problems.TextsCut()
				f, ok := otelmap.LogToFinding(lr, &problems)
				if !ok {
					c.foreign.Add(1)
					continue
				}
				findings, size = append(findings, received{f, problems.TextsCut() > before}), size+f.Bytes()
			}
		}
	}
	c.badAttributes.Add(problems.Count())
	if len(findings) == 0 {
		return hub.Input{}
	}
	return hub.Input{Bytes: size, Apply: func(now time.Time) hub.Output { return c.output(c.add(findings, now), now) }}
}

func (c *incidents) add(findings []received, now time.Time) (events []incident.Event) {
	for _, f := range findings {
		cut := c.engine.Stats().Cut
		events = append(events, c.engine.Add(f.finding, now)...)
		if f.cut || c.engine.Stats().Cut > cut {
			c.cut++
		}
	}
	return events
}

// output reports each event, and the span of each finding that closed.
func (c *incidents) output(events []incident.Event, now time.Time) hub.Output {
	count(c.series, events, now)
	c.opened = slices.ContainsFunc(events, func(ev incident.Event) bool { return ev.New && ev.Finding.ID != "" })
	findings, closed := split(events)
	return hub.Output{Findings: findings, FindingSpans: closed, Measured: len(events) > 0}
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

// flush closes all findings; those that are kept for the next start stay open, and their spans are written
// as they are.
func (c *incidents) flush(now time.Time) hub.Output {
	if c.cfg.StorageID == nil {
		return c.output(c.engine.Flush(), now)
	}
	return hub.Output{FindingSpans: c.engine.Spans()}
}

func (c *incidents) metrics(now time.Time) pmetric.Metrics {
	if c.cfg.SeriesExpiration > 0 {
		c.series.Expire(now.Add(-c.cfg.SeriesExpiration))
	}
	md := pmetric.NewMetrics()
	otelmap.WriteMetrics(md, now, c.series)
	return md
}

// save keeps a new finding before it is sent, so that no restart reports it as new again.
func (c *incidents) save(ctx context.Context, states *hub.States, _ *hub.Output) {
	if c.opened {
		states.SaveOne(ctx, keyOpened)
	}
}

// sent keeps the rest behind the delivery: where a kill comes between, it is received and reported once more.
func (*incidents) sent(ctx context.Context, states *hub.States, out *hub.Output) {
	if len(out.Findings) > 0 {
		states.SaveSoon(ctx)
	}
}
