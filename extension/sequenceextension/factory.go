// SPDX-License-Identifier: Apache-2.0

package sequenceextension

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/lockstep-otel/lockstep/extension/sequenceextension/internal/metadata"
)

// NewFactory returns the factory of the sequence extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		func(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
			return newSequence(cfg.(*Config), set)
		},
		metadata.ExtensionStability,
	)
}
