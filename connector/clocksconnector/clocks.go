// SPDX-License-Identifier: Apache-2.0

package clocksconnector

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/clocksconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// clocks feeds a timeline, and reports what the timeline concludes.
type clocks struct {
	cfg *Config
	log *zap.Logger

	// The timeline is made with the connector, or found at Start where it is an extension.
	timeline *timeline.Timeline
	feed     *timeline.Feed
	measures *measures

	counts                                     hub.Counts
	edges, models, foreign, refused, overflows atomic.Int64
	// why is the first event that was refused since the last tick.
	why atomic.Pointer[error]
}

func newEngine(cfg *Config, set connector.Settings) (*hub.Engine, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	c := &clocks{cfg: cfg, log: set.Logger, measures: newMeasures(cfg.MaxSeries)}
	if cfg.Timeline == nil {
		c.use(timeline.New(cfg.options()))
	}
	return &hub.Engine{
		Settings: hub.Settings{Interval: cfg.SolveInterval, FlushInterval: cfg.FlushInterval},
		Logs:     c.read, Start: c.start, Tick: c.tick, Flush: c.flush, Metrics: c.metrics,
		Stop:   func() { c.close(); telemetry.Shutdown() },
		Counts: &c.counts,
	}, c.observe(telemetry)
}

func (c *clocks) observe(t *metadata.TelemetryBuilder) error {
	return hub.Observe(
		hub.Counter{Register: t.RegisterConnectorClocksEdgesCallback, Value: c.edges.Load},
		hub.Counter{Register: t.RegisterConnectorClocksModelsCallback, Value: c.models.Load},
		hub.Counter{Register: t.RegisterConnectorClocksForeignRecordsCallback, Value: c.foreign.Load},
		hub.Counter{Register: t.RegisterConnectorClocksRefusedCallback, Value: c.refused.Load},
		hub.Counter{Register: t.RegisterConnectorClocksLostCallback, Value: c.counts.EventsLost.Load},
		hub.Counter{Register: t.RegisterConnectorClocksFindingsOverflowedCallback, Value: c.overflows.Load},
	)
}

func (c *clocks) use(t *timeline.Timeline) { c.timeline, c.feed = t, t.Feed() }

// start finds the timeline.
func (c *clocks) start(_ context.Context, host component.Host, _ hub.Outputs) error {
	if c.timeline != nil {
		return nil
	}
	ext, ok := host.GetExtensions()[*c.cfg.Timeline]
	if !ok {
		return fmt.Errorf("find timeline: got no extension %q; want one that is listed under service::extensions", c.cfg.Timeline)
	}
	p, ok := ext.(timeline.Provider)
	if !ok {
		return fmt.Errorf("find timeline: got extension %q, which holds none; want one of type timeline", c.cfg.Timeline)
	}
	c.use(p.Timeline())
	return nil
}

func (c *clocks) close() {
	if c.feed != nil {
		c.feed.Close()
	}
}

// tick advances the timeline, unless an extension does, and returns new models and findings.
func (c *clocks) tick(now time.Time) hub.Output {
	if why := c.why.Swap(nil); why != nil {
		c.log.Warn("leave out clock events that cannot be used; the first since the last interval", zap.Error(*why))
	}
	if c.cfg.Timeline == nil {
		c.timeline.Advance(now)
	}
	return c.take(now)
}

func (c *clocks) flush(now time.Time) hub.Output {
	if c.timeline == nil {
		return hub.Output{}
	}
	c.timeline.Advance(now)
	return c.take(now)
}

// take returns what is new.
func (c *clocks) take(now time.Time) hub.Output {
	out := c.feed.Take()
	for i := range out.Findings {
		out.Findings[i].Host = c.timeline.NameOf(out.Findings[i].Host)
	}
	c.overflows.Store(c.timeline.Counters().FindingsOverflowed)
	c.measures.add(out.Models, now)
	records := make([]hub.Record, len(out.Models), len(out.Models)+len(out.Edges))
	for i := range out.Models {
		m := out.Models[i] // one that is refused holds no other
		records[i] = hub.Record{Key: m.Clock, Bytes: modelBytes + 2*len(m.Clock), Write: func(lr plog.LogRecord) { clockmap.ModelToLog(&m, lr) }}
	}
	for i := range out.Edges {
		e := out.Edges[i]
		records = append(records, hub.Record{
			Key: fmt.Sprintf("%s\x00%s\x00%s\x00%t", e.Src, e.Dst, e.Source, e.Prompt), Bytes: modelBytes + 3*(len(e.Src)+len(e.Dst)),
			Write: func(lr plog.LogRecord) { clockmap.EdgeToLog(&e, lr) },
		})
	}
	return hub.Output{Findings: out.Findings, Records: records}
}

// modelBytes is what a model takes beside its name.
const modelBytes = 256

// metrics returns all series.
func (c *clocks) metrics(now time.Time) pmetric.Metrics {
	if c.cfg.SeriesExpiration > 0 {
		c.measures.expire(now.Add(-c.cfg.SeriesExpiration))
	}
	md := pmetric.NewMetrics()
	otelmap.WriteMetrics(md, now, c.measures.all()...)
	return md
}

// refuse counts an event that cannot be used.
func (c *clocks) refuse(err error) {
	if err != nil {
		c.refused.Add(1)
		c.why.CompareAndSwap(nil, &err)
	}
}
