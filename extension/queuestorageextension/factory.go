// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/lockstep-otel/lockstep/extension/queuestorageextension/internal/metadata"
)

// NewFactory returns the factory of the queue_storage extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		func(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
			telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
			if err != nil {
				return nil, fmt.Errorf("make counters: %w", err)
			}
			return &queueStorage{config: cfg.(*Config), set: set, telemetry: telemetry}, nil
		},
		metadata.ExtensionStability,
	)
}
