// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
)

// NewFactory returns the factory of the straggler connector.
func NewFactory() connector.Factory {
	c := hub.NewConnectors(newEngine)
	return connector.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		connector.WithTracesToLogs(c.TracesToLogs, metadata.TracesToLogsStability),
		connector.WithTracesToMetrics(c.TracesToMetrics, metadata.TracesToMetricsStability),
		connector.WithTracesToTraces(c.TracesToTraces, metadata.TracesToTracesStability),
	)
}
