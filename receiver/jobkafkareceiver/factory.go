// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/receiver/jobkafkareceiver/internal/metadata"
)

// NewFactory returns the factory of the job Kafka receiver.
func NewFactory() receiver.Factory {
	f := &factory{}
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		receiver.WithTraces(f.traces, metadata.TracesStability),
		receiver.WithLogs(f.logs, metadata.LogsStability),
	)
}

// factory makes one member of the consumer group for each configuration: spans and log records of a job go to
// the same collector.
type factory struct{ members hub.Map[*Config, *member] }

func (f *factory) traces(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
	return f.instance(set, cfg, func(m *member) { m.toTraces(next) })
}

func (f *factory) logs(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	return f.instance(set, cfg, func(m *member) { m.toLogs(next) })
}

func (f *factory) instance(set receiver.Settings, cfg component.Config, attach func(*member)) (*instance, error) {
	handle, err := f.members.Acquire(cfg.(*Config), func() (*member, error) { return newMember(cfg.(*Config), set) })
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it is
	}
	attach(handle.Value)
	return &instance{handle}, nil
}

// instance is the receiver of one signal.
type instance struct{ handle *hub.Handle[*member] }

// Start implements component.Component.
func (i *instance) Start(_ context.Context, host component.Host) error {
	return i.handle.Value.start(host)
}

// Shutdown implements component.Component.
func (i *instance) Shutdown(ctx context.Context) error {
	err := i.handle.Value.shutdown(ctx)
	i.handle.Release()
	return err
}
