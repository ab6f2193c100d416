// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/lockstep-otel/lockstep/connector/desyncconnector/internal/metadata"
	kit "github.com/lockstep-otel/lockstep/internal/component/hub"
)

// NewFactory returns the factory of the desync connector.
func NewFactory() connector.Factory {
	f := &factory{}
	return connector.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		connector.WithTracesToLogs(f.tracesToLogs, metadata.TracesToLogsStability),
		connector.WithTracesToMetrics(f.tracesToMetrics, metadata.TracesToMetricsStability),
		connector.WithLogsToLogs(f.logsToLogs, metadata.LogsToLogsStability),
		connector.WithLogsToMetrics(f.logsToMetrics, metadata.LogsToMetricsStability),
	)
}

// factory remembers which configuration has a hub already.
type factory struct {
	hubs kit.Map[*Config, *hub]
}

func (f *factory) tracesToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Traces, error) {
	return f.instance(set, cfg, func(h *hub) *face { return h.toLogs(&h.spans, next) })
}

func (f *factory) tracesToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Traces, error) {
	return f.instance(set, cfg, func(h *hub) *face { return h.toMetrics(&h.spans, next) })
}

func (f *factory) logsToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Logs, error) {
	return f.instance(set, cfg, func(h *hub) *face { return h.toLogs(&h.records, next) })
}

func (f *factory) logsToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Logs, error) {
	return f.instance(set, cfg, func(h *hub) *face { return h.toMetrics(&h.records, next) })
}

func (f *factory) instance(set connector.Settings, cfg component.Config, attach func(*hub) *face) (*face, error) {
	c := cfg.(*Config)
	handle, err := f.hubs.Acquire(c, func() (*hub, error) { return newHub(c, set.ID, set.TelemetrySettings) })
	if err != nil {
		return nil, err
	}
	made := attach(handle.Value)
	made.handle = handle
	return made, nil
}
