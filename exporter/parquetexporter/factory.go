// SPDX-License-Identifier: Apache-2.0

package parquetexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/lockstep-otel/lockstep/exporter/parquetexporter/internal/metadata"
)

// NewFactory returns the factory of the parquet exporter.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		exporter.WithTraces(newTraces, metadata.TracesStability),
	)
}

func newTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	c := cfg.(*Config)
	w, err := newWriter(c, set)
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewTraces(ctx, set, cfg, w.traces,
		exporterhelper.WithStart(w.start), exporterhelper.WithShutdown(w.shutdown),
		// A request waits for the thread, or for the disk, and not for a peer.
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}),
		exporterhelper.WithQueue(c.Queue), exporterhelper.WithRetry(c.Retry))
}
