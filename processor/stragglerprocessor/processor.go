// SPDX-License-Identifier: Apache-2.0

package stragglerprocessor

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

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/stepmap"
	"github.com/lockstep-otel/lockstep/internal/straggler"
	"github.com/lockstep-otel/lockstep/internal/straggler/live"
	"github.com/lockstep-otel/lockstep/processor/stragglerprocessor/internal/metadata"
)

// annotating is the processor of one pipeline.
type annotating struct {
	cfg       *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	next      consumer.Traces
	interval  *hub.Interval

	// Spans that no caller waits for go through the gate.
	gate  *deliver.Gate
	gated consumer.Traces

	mu       sync.Mutex // guards what follows; not held while spans are passed on
	analysis *live.Analysis
	held     *holder // nil where spans are passed on in the same call
	steps    int64   // that were analysed
	unread   int64   // spans and attributes
	textsCut int64

	spansLost atomic.Int64

	seen atomic.Pointer[snapshot] // read by telemetry, which must not wait for an analysis
}

type snapshot struct {
	engine      straggler.Stats
	steps       int64
	unread      int64
	textsCut    int64
	bytes       int64
	held        int64
	unannotated int64
}

// expireEvery is how often deadlines are checked where nothing is held: then
// they only free memory.
const expireEvery = 10 * time.Second

func newAnnotating(cfg *Config, set component.TelemetrySettings, next consumer.Traces) (*annotating, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	p := &annotating{
		cfg:       cfg,
		logger:    set.Logger,
		telemetry: telemetry,
		next:      next,
		gate:      deliver.NewInnerGate(set.Logger),
		analysis:  live.NewAnalysis(cfg.Analysis.Engine(), time.Now),
	}
	p.gated = p.gate.Traces(next)
	every := expireEvery
	if cfg.Hold.HasValue() {
		every = cfg.Hold.Get().FlushInterval
		p.held = newHolder(cfg.Hold.Get().MaxSpans, time.Now)
	}
	p.interval = hub.NewInterval(every, p.tick)
	p.snapshot()
	return p, p.observe()
}

// Start implements component.Component.
func (p *annotating) Start(context.Context, component.Host) error {
	p.interval.Start()
	return nil
}

// Capabilities implements consumer.Traces.
func (*annotating) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// ConsumeTraces annotates the spans of steps that are complete now and passes
// them on. Spans that are held, or that came before their step was complete
// where none are held, are not among them.
func (p *annotating) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	p.take(td)
	if p.held == nil {
		return p.next.ConsumeTraces(ctx, td)
	}
	if err := p.pass(ctx, p.next, td); err != nil {
		return consumererror.NewPermanent(err) // the rest of the batch is held already
	}
	return nil
}

// take leaves in td only the data that the processor passes on now.
func (p *annotating) take(td ptrace.Traces) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var problems otelmap.Problems
	out := p.analysis.Add(otelmap.ReadOps(td, &problems))
	p.unread += problems.Count()
	p.textsCut += problems.TextsCut()
	if p.held == nil {
		p.annotate(out, td)
		return
	}
	p.held.take(td)
	p.release(out, td)
}

// Shutdown passes on everything held, annotated as far as possible.
func (p *annotating) Shutdown(ctx context.Context) (err error) {
	last, stopped := p.gate.Stop(ctx)
	p.interval.Stop(func() {
		err = p.pass(last, p.gated, p.flush())
		p.telemetry.Shutdown()
	})
	return errors.Join(err, stopped())
}

func (p *annotating) flush() ptrace.Traces {
	p.mu.Lock()
	defer p.mu.Unlock()
	td := ptrace.NewTraces()
	out := p.analysis.Flush()
	if p.held != nil {
		p.held.releaseAll(td)
		p.release(out, td)
	}
	return td
}

// tick passes on what has waited long enough. The gate cancels what takes too long at the end.
func (p *annotating) tick(now time.Time) {
	if err := p.pass(context.Background(), p.gated, p.expire(now)); err != nil {
		p.logger.Warn("pass on held spans", zap.Error(err))
	}
}

func (p *annotating) expire(now time.Time) ptrace.Traces {
	p.mu.Lock()
	defer p.mu.Unlock()
	td := ptrace.NewTraces()
	out := p.analysis.Expire()
	if p.held == nil {
		p.steps += int64(len(out.Reports))
		p.snapshot()
		return td
	}
	// Every step that the engine knows is reported by its deadline and the next tick.
	p.held.prune(now.Add(-p.cfg.Analysis.Deadline-2*p.cfg.Hold.Get().FlushInterval), td)
	p.release(out, td)
	return td
}

// release adds the held spans of the reported steps to td, and annotates.
func (p *annotating) release(out live.Outcome, td ptrace.Traces) {
	for _, rep := range out.Reports {
		p.held.release(rep, td)
	}
	p.held.shrink(td)
	p.annotate(out, td)
}

// pass gives td to the consumer in pieces, as it may hold all that was held. What
// the consumer refuses is lost, and only that. The caller does not hold the lock.
func (p *annotating) pass(ctx context.Context, next consumer.Traces, td ptrace.Traces) error {
	var errs []error
	for piece := range otelmap.Pieces(td, otelmap.MaxPieceSpans) {
		spans := piece.SpanCount() // the consumer owns what it is given
		if err := next.ConsumeTraces(ctx, piece); err != nil {
			p.spansLost.Add(int64(spans))
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (p *annotating) annotate(out live.Outcome, td ptrace.Traces) {
	p.steps += int64(len(out.Reports))
	// Of a step that is not complete, findings of former steps say something all the same.
	if standing := p.analysis.Standing(); len(out.Reports) > 0 || len(standing) > 0 {
		stepmap.Annotate(td, out.Reports, standing, p.cfg.Histograms)
	}
	p.snapshot()
}

func (p *annotating) snapshot() {
	s := &snapshot{engine: p.analysis.Stats(), steps: p.steps, unread: p.unread, textsCut: p.textsCut, bytes: p.analysis.Bytes()}
	if p.held != nil {
		s.held, s.unannotated = int64(p.held.spans), p.held.unannotated
	}
	p.seen.Store(s)
}
