// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/lockstep-otel/lockstep/connector/findingsconnector/internal/metadata"
	kit "github.com/lockstep-otel/lockstep/internal/component/hub"
)

// NewFactory returns the factory of the findings connector.
func NewFactory() connector.Factory {
	f := &factory{}
	return connector.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		connector.WithLogsToLogs(f.logsToLogs, metadata.LogsToLogsStability),
		connector.WithLogsToMetrics(f.logsToMetrics, metadata.LogsToMetricsStability),
		connector.WithLogsToTraces(f.logsToTraces, metadata.LogsToTracesStability),
	)
}

// factory remembers which configuration has a hub already.
type factory struct {
	hubs kit.Map[*Config, *hub]
}

func (f *factory) logsToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Logs, error) {
	return f.instance(set, cfg, func(h *hub) { h.out.AddLogs(next) })
}

func (f *factory) logsToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Logs, error) {
	return f.instance(set, cfg, func(h *hub) { h.out.AddMetrics(next) })
}

func (f *factory) logsToTraces(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Traces) (connector.Logs, error) {
	return f.instance(set, cfg, func(h *hub) { h.out.AddTraces(next) })
}

func (f *factory) instance(set connector.Settings, cfg component.Config, attach func(*hub)) (connector.Logs, error) {
	c := cfg.(*Config)
	handle, err := f.hubs.Acquire(c, func() (*hub, error) { return newHub(c, set.ID, set.TelemetrySettings) })
	if err != nil {
		return nil, err
	}
	attach(handle.Value)
	return &face{handle: handle}, nil
}
