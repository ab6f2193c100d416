// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/receiver/torchtracereceiver/internal/metadata"
)

// NewFactory returns the factory of the torch_trace receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		receiver.WithTraces(createTraces, metadata.TracesStability),
	)
}

func createTraces(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
	return newReceiver(set, cfg.(*Config), next)
}
