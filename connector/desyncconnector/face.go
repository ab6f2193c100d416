// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	kit "github.com/lockstep-otel/lockstep/internal/component/hub"
)

// face is one instance of the connector: one pair of signals. The instances that take one
// signal are sent the same data, so the first of them alone feeds the hub. Those that give out
// one signal serve the same pipelines, so that the hub gives to one of them.
type face struct {
	handle *kit.Handle[*hub]
	first  bool
	leave  func(context.Context) error
	left   sync.Once
}

// Start implements component.Component.
func (f *face) Start(ctx context.Context, host component.Host) error {
	return f.handle.Value.start(ctx, host)
}

// Capabilities implements consumer.Traces and consumer.Logs.
func (*face) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: false} }

// ConsumeTraces implements consumer.Traces. It never fails: what cannot be used is counted,
// and would not be usable another time.
func (f *face) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	if f.first {
		f.handle.Value.takeSpans(td)
	}
	return nil
}

// ConsumeLogs implements consumer.Logs. It never fails, as ConsumeTraces.
func (f *face) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	if f.first {
		f.handle.Value.takeRecords(ld)
	}
	return nil
}

// Shutdown gives out what is left with the last instance that gives out its signal: what feeds
// that one has stopped, and what all of them feed has not.
func (f *face) Shutdown(ctx context.Context) (err error) {
	f.left.Do(func() {
		err = f.leave(ctx)
		f.handle.Release()
	})
	return err
}
