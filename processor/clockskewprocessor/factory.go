// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"

	"github.com/lockstep-otel/lockstep/processor/clockskewprocessor/internal/metadata"
)

// NewFactory returns the factory of the clock skew processor.
func NewFactory() processor.Factory {
	return processor.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		processor.WithTraces(newTraces, metadata.TracesStability),
	)
}

func newTraces(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	return newSkew(cfg.(*Config), set.TelemetrySettings, next)
}
