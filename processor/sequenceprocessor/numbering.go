// SPDX-License-Identifier: Apache-2.0

package sequenceprocessor

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/otelmap/sequencemap"
	"github.com/lockstep-otel/lockstep/internal/sequence"
	"github.com/lockstep-otel/lockstep/processor/sequenceprocessor/internal/metadata"
)

// numbering numbers the spans of one pipeline.
type numbering struct {
	component.StartFunc
	next      consumer.Traces
	telemetry *metadata.TelemetryBuilder

	mu       sync.Mutex
	numberer *sequence.Numberer
}

func newNumbering(cfg *Config, t *metadata.TelemetryBuilder, next consumer.Traces) (*numbering, error) {
	prefix := strconv.FormatUint(rand.Uint64(), 36) //nolint:gosec // it is to be unique, not secret
	p := &numbering{next: next, telemetry: t, numberer: sequence.NewNumberer(prefix, cfg.MaxJobs)}
	of := func(value func(sequence.NumbererStats) int64) func() int64 {
		return func() int64 {
			p.mu.Lock()
			defer p.mu.Unlock()
			return value(p.numberer.Stats())
		}
	}
	return p, hub.Observe(
		hub.Counter{Register: t.RegisterProcessorSequenceSpansNumberedCallback, Value: of(func(s sequence.NumbererStats) int64 { return s.Numbered })},
		hub.Counter{Register: t.RegisterProcessorSequenceSpansVoidCallback, Value: of(func(s sequence.NumbererStats) int64 { return s.Void })},
		hub.Counter{Register: t.RegisterProcessorSequenceStreamsForgottenCallback, Value: of(func(s sequence.NumbererStats) int64 { return s.Forgotten })},
	)
}

// Capabilities implements consumer.Traces.
func (*numbering) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// ConsumeTraces implements consumer.Traces. Where the next component refuses the spans, their numbers become void: the
// sender sends them again, with others, or counts them as lost.
func (p *numbering) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	p.mu.Lock()
	given := sequencemap.Number(td, p.numberer)
	p.mu.Unlock()
	err := p.next.ConsumeTraces(ctx, td)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, of := range given {
			p.numberer.Refuse(of)
		}
	}
	return err //nolint:wrapcheck // the sender's
}

// Shutdown implements component.Component.
func (p *numbering) Shutdown(context.Context) error {
	p.telemetry.Shutdown()
	return nil
}
