// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/receiver/ncclinspectorreceiver/internal/metadata"
)

// NewFactory returns the factory of the nccl_inspector receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		receiver.WithTraces(createTraces, metadata.TracesStability),
		receiver.WithMetrics(createMetrics, metadata.MetricsStability),
	)
}

// readers are those in use, by configuration: the collector makes one receiver per
// signal, and a line must be read once.
var readers hub.Map[*Config, *reader]

func createTraces(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
	r, err := face(set, cfg)
	if err != nil {
		return nil, err
	}
	r.handle.Value.tracesTo(next)
	return r, nil
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	r, err := face(set, cfg)
	if err != nil {
		return nil, err
	}
	r.handle.Value.metrics = r.handle.Value.out.Metrics(next)
	return r, nil
}

func face(set receiver.Settings, cfg component.Config) (*inspectorReceiver, error) {
	c := cfg.(*Config)
	h, err := readers.Acquire(c, func() (*reader, error) { return newReader(set, c) })
	if err != nil {
		return nil, fmt.Errorf("create reader of logs: %w", err)
	}
	return &inspectorReceiver{handle: h}, nil
}

// inspectorReceiver is one signal's face of the reader.
type inspectorReceiver struct{ handle *hub.Handle[*reader] }

// Start begins to read; the first signal's call does.
func (r *inspectorReceiver) Start(ctx context.Context, host component.Host) error {
	return r.handle.Value.begin(ctx, host)
}

// Shutdown hands on what has come and stops; the first signal's call does, while what
// follows every signal still runs.
func (r *inspectorReceiver) Shutdown(ctx context.Context) error {
	err := r.handle.Value.end(ctx)
	r.handle.Release()
	return err
}
