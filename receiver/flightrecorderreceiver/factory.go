// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/receiver/flightrecorderreceiver/internal/metadata"
)

// NewFactory returns the factory of the flight_recorder receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		receiver.WithLogs(createLogs, metadata.LogsStability),
		receiver.WithTraces(createTraces, metadata.TracesStability),
		receiver.WithMetrics(createMetrics, metadata.MetricsStability),
	)
}

// collectors are those in use, by configuration: the collector makes one receiver per signal, and
// a dump must be read once.
var collectors hub.Map[*Config, *dumpCollector]

func createLogs(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	return face(set, cfg, func(d *delivery) { d.logsTo(next) })
}

func createTraces(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
	return face(set, cfg, func(d *delivery) { d.tracesTo(next) })
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	return face(set, cfg, func(d *delivery) { d.metricsTo(next) })
}

func face(set receiver.Settings, cfg component.Config, attach func(*delivery)) (*dumpReceiver, error) {
	c := cfg.(*Config)
	h, err := collectors.Acquire(c, func() (*dumpCollector, error) { return newCollector(set, c) })
	if err != nil {
		return nil, fmt.Errorf("create reader of dumps: %w", err)
	}
	attach(h.Value.out)
	return &dumpReceiver{handle: h}, nil
}

// dumpReceiver is one signal's face of the collector.
type dumpReceiver struct{ handle *hub.Handle[*dumpCollector] }

// Start begins to watch; the first signal's call does.
func (r *dumpReceiver) Start(ctx context.Context, host component.Host) error {
	return r.handle.Value.begin(ctx, host)
}

// Shutdown hands on what has come and stops; the first signal's call does, while what
// follows every signal still runs.
func (r *dumpReceiver) Shutdown(ctx context.Context) error {
	err := r.handle.Value.end(ctx)
	r.handle.Release()
	return err
}
