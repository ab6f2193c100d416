// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/lockstep-otel/lockstep/extension/queuestorageextension/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
)

// NewFactory returns the factory of the queue_storage extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		func(ctx context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
			telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
			if err != nil {
				return nil, fmt.Errorf("make counters: %w", err)
			}
			f := newFaults(set.Logger)
			q := &queueStorage{config: cfg.(*Config), set: set, telemetry: telemetry, faults: f, looking: hub.NewInterval(lookEvery, f.look)}
			// Now, since other extensions may start before this one, and open their files.
			return q, q.checkFiles(ctx)
		},
		metadata.ExtensionStability,
	)
}
