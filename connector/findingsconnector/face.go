// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	kit "github.com/lockstep-otel/lockstep/internal/component/hub"
)

// face is one instance of the connector: one pair of signals. Every instance of
// one configuration is sent the same records, so the first alone feeds the hub,
// which serves the consumers of all of them.
type face struct {
	handle *kit.Handle[*hub]
}

// Start implements component.Component.
func (f *face) Start(ctx context.Context, host component.Host) error {
	return f.handle.Value.start(ctx, host)
}

// Capabilities implements consumer.Logs.
func (*face) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: false} }

// ConsumeLogs implements consumer.Logs.
func (f *face) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	if !f.handle.First {
		return nil
	}
	return f.handle.Value.consume(ctx, ld)
}

// Shutdown flushes with the first instance that stops: the collector stops what
// feeds any instance before, and what any instance feeds after, all of them.
func (f *face) Shutdown(ctx context.Context) error {
	defer f.handle.Release()
	return f.handle.Value.stop(ctx)
}
