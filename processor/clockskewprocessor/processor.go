// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap/skewmap"
	"github.com/lockstep-otel/lockstep/internal/timeline"
	"github.com/lockstep-otel/lockstep/processor/clockskewprocessor/internal/metadata"
)

// clocks is what the processor needs of a timeline.
type clocks interface {
	causality.Timeline
	skewmap.Resolver
	Advance(now time.Time) timeline.Outcome
}

var _ clocks = (*timeline.Timeline)(nil)

// skew is the processor of one pipeline.
type skew struct {
	cfg       *Config
	telemetry *metadata.TelemetryBuilder
	next      consumer.Traces
	now       func() time.Time
	instances *instances
	levels    metric.Registration

	mu     sync.Mutex // guards what follows; not held while spans are passed on
	clocks clocks
	engine *causality.Engine // nil before Start, and where the mode is off
	mapper *skewmap.Mapper
}

func newSkew(cfg *Config, set component.TelemetrySettings, next consumer.Traces) (*skew, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	p := &skew{cfg: cfg, telemetry: telemetry, next: next, now: time.Now}
	p.instances = join(p, set)
	if err := p.observe(set); err != nil {
		p.instances.leave(p)
		return nil, err
	}
	return p, nil
}

// Start implements component.Component.
func (p *skew) Start(_ context.Context, host component.Host) error {
	c, err := p.find(host)
	if err != nil {
		return err
	}
	p.use(c)
	return nil
}

// find returns the configured timeline, or one of the processor's own.
func (p *skew) find(host component.Host) (clocks, error) {
	if p.cfg.Timeline == nil {
		return timeline.New(timeline.Options{MaxClocks: p.cfg.MaxClocks, Slew: p.cfg.SlewLimit / 1e6}), nil
	}
	ext, ok := host.GetExtensions()[*p.cfg.Timeline]
	if !ok {
		return nil, fmt.Errorf("find timeline: no extension %q; want one that is listed under service::extensions", p.cfg.Timeline)
	}
	provider, ok := ext.(timeline.Provider)
	if !ok {
		return nil, fmt.Errorf("find timeline: extension %q is a %T; want one of type timeline", p.cfg.Timeline, ext)
	}
	return observer{provider.Timeline()}, nil
}

// observer is a timeline that several processes may share: what spans show here counts for all of them.
type observer struct{ *timeline.Timeline }

// AddEdge implements causality.Timeline.
func (o observer) AddEdge(e model.ClockEdge) error { return o.Observe(e) }

func (p *skew) use(c clocks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cfg.Mode == ModeOff {
		return
	}
	p.clocks = c
	cfg := p.cfg.engine(p.now)
	if p.cfg.Timeline == nil { // an extension solves for all who feed it
		cfg.Settle = func() { c.Advance(p.now()) }
	}
	p.engine = causality.New(cfg, c)
	p.mapper = skewmap.NewMapper(p.engine, c)
}

// Shutdown implements component.Component.
func (p *skew) Shutdown(context.Context) error {
	p.telemetry.Shutdown()
	p.instances.leave(p)
	return p.levels.Unregister()
}

// Capabilities implements consumer.Traces.
func (p *skew) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// ConsumeTraces implements consumer.Traces.
func (p *skew) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	p.correct(td)
	return p.next.ConsumeTraces(ctx, td)
}

func (p *skew) correct(td ptrace.Traces) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.engine == nil {
		return
	}
	p.mapper.Read(td)
	p.engine.Run(p.mapper.Batch())
	p.mapper.Write(p.cfg.Mode == ModeRealign)
	p.mapper.Forget()
}
