// SPDX-License-Identifier: Apache-2.0

package jobsextension

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/lockstep-otel/lockstep/extension/jobsextension/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/jobs"
)

// Config configures the jobs extension, which has no settings.
type Config struct{ _ struct{} }

// NewFactory returns the factory of the jobs extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(
		metadata.Type,
		func() component.Config { return &Config{} },
		func(context.Context, extension.Settings, component.Config) (extension.Extension, error) {
			return &registry{}, nil
		},
		metadata.ExtensionStability,
	)
}

// registry is the service of one configuration.
type registry struct {
	component.StartFunc
	component.ShutdownFunc
	jobs.Registry
}
