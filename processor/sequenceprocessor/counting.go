// SPDX-License-Identifier: Apache-2.0

package sequenceprocessor

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/component/ledger"
	"github.com/lockstep-otel/lockstep/internal/otelmap/sequencemap"
	"github.com/lockstep-otel/lockstep/processor/sequenceprocessor/internal/metadata"
)

// counting gives the numbers of the spans of one pipeline to the extension.
type counting struct {
	cfg       *Config
	next      consumer.Traces
	telemetry *metadata.TelemetryBuilder
	ledger    ledger.Service
	unread    atomic.Int64
}

func newCounting(cfg *Config, t *metadata.TelemetryBuilder, next consumer.Traces) (*counting, error) {
	p := &counting{cfg: cfg, next: next, telemetry: t}
	return p, hub.Observe(hub.Counter{Register: t.RegisterProcessorSequenceUnreadCallback, Value: p.unread.Load})
}

// Start implements component.Component.
func (p *counting) Start(_ context.Context, host component.Host) (err error) {
	p.ledger, err = ledger.Find(host, *p.cfg.SequenceID)
	return err //nolint:wrapcheck // says what it is
}

// Capabilities implements consumer.Traces.
func (*counting) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeTraces implements consumer.Traces. That spans arrived is stored once the next component has accepted them or an
// analysis has used them, and before their sender learns it: whatever the sender does not send again is stored.
func (p *counting) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	all, unread := sequencemap.Read(td) // before the spans belong to others
	p.unread.Add(int64(unread))
	if len(all) == 0 {
		return p.next.ConsumeTraces(ctx, td) //nolint:wrapcheck // the sender's
	}
	return ledger.Pass(ctx, p.ledger, all, func(ctx context.Context) error { //nolint:wrapcheck // the sender's
		return p.next.ConsumeTraces(ctx, td) //nolint:wrapcheck // the sender's
	})
}

// Shutdown implements component.Component.
func (p *counting) Shutdown(context.Context) error {
	p.telemetry.Shutdown()
	return nil
}
