// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	kit "github.com/lockstep-otel/lockstep/internal/component/hub"
)

// NewFactory returns the factory of the straggler connector.
func NewFactory() connector.Factory {
	f := &factory{}
	return connector.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		connector.WithTracesToLogs(f.tracesToLogs, metadata.TracesToLogsStability),
		connector.WithTracesToMetrics(f.tracesToMetrics, metadata.TracesToMetricsStability),
		connector.WithTracesToTraces(f.tracesToTraces, metadata.TracesToTracesStability),
	)
}

// factory remembers which configuration has a hub already.
type factory struct {
	hubs kit.Map[*Config, *hub]
}

func (f *factory) tracesToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Traces, error) {
	return f.instance(set, cfg, func(h *hub) { h.out.AddLogs(next) })
}

func (f *factory) tracesToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Traces, error) {
	return f.instance(set, cfg, func(h *hub) { h.out.AddMetrics(next) })
}

func (f *factory) tracesToTraces(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Traces) (connector.Traces, error) {
	return f.instance(set, cfg, func(h *hub) { h.out.AddTraces(next) })
}

func (f *factory) instance(set connector.Settings, cfg component.Config, attach func(*hub)) (connector.Traces, error) {
	c := cfg.(*Config)
	handle, err := f.hubs.Acquire(c, func() (*hub, error) { return newHub(c, set.ID, set.TelemetrySettings) })
	if err != nil {
		return nil, err
	}
	attach(handle.Value)
	handle.Value.attached()
	return &face{handle: handle}, nil
}
