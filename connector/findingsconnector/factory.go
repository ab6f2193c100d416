// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"

	"github.com/lockstep-otel/lockstep/connector/findingsconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
)

// NewFactory returns the factory of the findings connector.
func NewFactory() connector.Factory {
	c := hub.NewConnectors(newEngine)
	return connector.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		connector.WithLogsToLogs(c.LogsToLogs, metadata.LogsToLogsStability),
		connector.WithLogsToMetrics(c.LogsToMetrics, metadata.LogsToMetricsStability),
		connector.WithLogsToTraces(c.LogsToTraces, metadata.LogsToTracesStability),
	)
}
