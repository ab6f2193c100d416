// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	kit "github.com/lockstep-otel/lockstep/internal/component/hub"
)

// face is one instance of the connector: one pair of signals. Every instance of
// one configuration is sent the same spans, so the first alone feeds the hub,
// which serves the consumers of all of them.
type face struct {
	handle *kit.Handle[*hub]
}

// Start implements component.Component.
func (f *face) Start(ctx context.Context, host component.Host) error {
	return f.handle.Value.start(ctx, host)
}

// Capabilities implements consumer.Traces.
func (*face) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: false} }

// ConsumeTraces implements consumer.Traces.
func (f *face) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if !f.handle.First {
		return nil
	}
	return f.handle.Value.consume(ctx, td)
}

// Shutdown flushes with the first instance that stops: the collector stops what
// feeds any instance before, and what any instance feeds after, all of them.
func (f *face) Shutdown(ctx context.Context) error {
	defer f.handle.Release()
	return f.handle.Value.stop(ctx)
}
