// SPDX-License-Identifier: Apache-2.0

package fleetversionreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/receiver/fleetversionreceiver/internal/metadata"
)

// NewFactory returns the factory of the fleet_version receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		receiver.WithLogs(createLogs, metadata.LogsStability),
	)
}

func createLogs(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	return newLooker(set, cfg.(*Config), next)
}
