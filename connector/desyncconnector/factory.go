// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"

	"github.com/lockstep-otel/lockstep/connector/desyncconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
)

// NewFactory returns the factory of the desync connector.
func NewFactory() connector.Factory {
	c := hub.NewConnectors(newEngine)
	return connector.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		connector.WithTracesToLogs(c.TracesToLogs, metadata.TracesToLogsStability),
		connector.WithTracesToMetrics(c.TracesToMetrics, metadata.TracesToMetricsStability),
		connector.WithLogsToLogs(c.LogsToLogs, metadata.LogsToLogsStability),
		connector.WithLogsToMetrics(c.LogsToMetrics, metadata.LogsToMetricsStability),
	)
}
