// SPDX-License-Identifier: Apache-2.0

package sequenceprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"

	"github.com/lockstep-otel/lockstep/processor/sequenceprocessor/internal/metadata"
)

// NewFactory returns the factory of the sequence processor.
func NewFactory() processor.Factory {
	return processor.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		processor.WithTraces(newTraces, metadata.TracesStability),
	)
}

func newTraces(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	if of := cfg.(*Config); of.Mode == ModeCount {
		return newCounting(of, telemetry, next)
	}
	return newNumbering(cfg.(*Config), telemetry, next)
}
