// SPDX-License-Identifier: Apache-2.0

package ncclrasreceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/receiver/ncclrasreceiver/internal/metadata"
)

// NewFactory returns the factory of the nccl_ras receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		receiver.WithLogs(createLogs, metadata.LogsStability),
		receiver.WithMetrics(createMetrics, metadata.MetricsStability),
	)
}

// pollers are those in use, by configuration: the collector makes one receiver per signal,
// and a job is asked once.
var pollers hub.Map[*Config, *poller]

func createLogs(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	f, err := newFace(set, cfg)
	if err != nil {
		return nil, err
	}
	f.handle.Value.logsTo(next)
	return f, nil
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	f, err := newFace(set, cfg)
	if err != nil {
		return nil, err
	}
	f.handle.Value.metrics = f.handle.Value.out.Metrics(next)
	return f, nil
}

func newFace(set receiver.Settings, cfg component.Config) (*face, error) {
	c := cfg.(*Config)
	h, err := pollers.Acquire(c, func() (*poller, error) { return newPoller(set, c) })
	if err != nil {
		return nil, fmt.Errorf("create poller: %w", err)
	}
	return &face{handle: h}, nil
}

// face is one signal's face of the poller.
type face struct{ handle *hub.Handle[*poller] }

// Start begins to ask; the first signal's call does.
func (f *face) Start(context.Context, component.Host) error {
	f.handle.Value.interval.Start()
	return nil
}

// Shutdown stops asking; the first signal's call does.
func (f *face) Shutdown(ctx context.Context) error {
	defer f.handle.Release()
	return f.handle.Value.stop(ctx)
}
