// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/receiver/owdprobereceiver/internal/metadata"
)

// NewFactory returns the factory of the owd_probe receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		receiver.WithLogs(createLogs, metadata.LogsStability),
		receiver.WithMetrics(createMetrics, metadata.MetricsStability),
	)
}

// probers are those in use, by configuration: the collector makes one receiver per
// signal, and a host has one node of the mesh.
var probers hub.Map[*Config, *prober]

func createLogs(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	r, err := newFace(set, cfg)
	if err != nil {
		return nil, err
	}
	r.handle.Value.out.logsTo(next)
	return r, nil
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	r, err := newFace(set, cfg)
	if err != nil {
		return nil, err
	}
	r.handle.Value.out.metricsTo(next)
	return r, nil
}

func newFace(set receiver.Settings, cfg component.Config) (*face, error) {
	c := cfg.(*Config)
	h, err := probers.Acquire(c, func() (*prober, error) { return newProber(set, c) })
	if err != nil {
		return nil, fmt.Errorf("create prober: %w", err)
	}
	return &face{handle: h}, nil
}

// face is one signal's face of the prober.
type face struct{ handle *hub.Handle[*prober] }

// Start begins to probe; the first signal's call does.
func (f *face) Start(_ context.Context, host component.Host) error {
	return f.handle.Value.begin(host)
}

// Shutdown stops probing and sends what there is; the first signal's call does,
// while what follows every signal still runs.
func (f *face) Shutdown(ctx context.Context) error {
	defer f.handle.Release()
	return f.handle.Value.end(ctx)
}
