// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/receiver/rankeventsreceiver/internal/metadata"
)

// NewFactory returns the factory of the rank_events receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		receiver.WithTraces(createTraces, metadata.TracesStability),
		receiver.WithLogs(createLogs, metadata.LogsStability),
	)
}

// readers are those in use, by configuration: the collector makes one receiver
// per signal, and a ring must be drained once.
var readers hub.Map[*Config, *reader]

func createTraces(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
	r, err := face(set, cfg)
	if err != nil {
		return nil, err
	}
	r.handle.Value.tracesTo(next)
	return r, nil
}

func createLogs(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	r, err := face(set, cfg)
	if err != nil {
		return nil, err
	}
	r.handle.Value.logsTo(next)
	return r, nil
}

func face(set receiver.Settings, cfg component.Config) (*rankReceiver, error) {
	c := cfg.(*Config)
	h, err := readers.Acquire(c, func() (*reader, error) { return newReader(set, c) })
	if err != nil {
		return nil, fmt.Errorf("create reader of rings: %w", err)
	}
	return &rankReceiver{handle: h}, nil
}

// rankReceiver is one signal's face of the reader.
type rankReceiver struct{ handle *hub.Handle[*reader] }

// Start begins to read; the first signal's call does.
func (r *rankReceiver) Start(ctx context.Context, host component.Host) error {
	return r.handle.Value.start(ctx, host)
}

// Shutdown reads what has come, closes all steps and stops; the first signal's
// call does, while what follows every signal still runs.
func (r *rankReceiver) Shutdown(ctx context.Context) error {
	defer r.handle.Release()
	return r.handle.Value.stop(ctx)
}
