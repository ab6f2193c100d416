// SPDX-License-Identifier: Apache-2.0

package jsonlinesexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/lockstep-otel/lockstep/exporter/jsonlinesexporter/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
)

// NewFactory returns the factory of the json_lines exporter.
func NewFactory() exporter.Factory {
	f := &factory{}
	return exporter.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		exporter.WithTraces(f.traces, metadata.TracesStability),
		exporter.WithMetrics(f.metrics, metadata.MetricsStability),
		exporter.WithLogs(f.logs, metadata.LogsStability),
	)
}

// factory remembers which configuration has a writer already.
type factory struct {
	writers hub.Map[*Config, *writer]
}

func (f *factory) traces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	w, options, err := f.writer(set, cfg)
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewTraces(ctx, set, cfg, w.traces, options...)
}

func (f *factory) metrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	w, options, err := f.writer(set, cfg)
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewMetrics(ctx, set, cfg, w.metrics, options...)
}

func (f *factory) logs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	w, options, err := f.writer(set, cfg)
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewLogs(ctx, set, cfg, w.logs, options...)
}

// writer returns that of a configuration, and what an exporter of one signal does with it.
func (f *factory) writer(set exporter.Settings, cfg component.Config) (*writer, []exporterhelper.Option, error) {
	c := cfg.(*Config)
	handle, err := f.writers.Acquire(c, func() (*writer, error) { return newWriter(c, set.TelemetrySettings) })
	if err != nil {
		return nil, nil, err
	}
	w := handle.Value
	return w, []exporterhelper.Option{
		exporterhelper.WithStart(w.start),
		exporterhelper.WithShutdown(func(ctx context.Context) error {
			defer handle.Release()
			return w.shutdown(ctx)
		}),
		// A file is written at once, or waits for the disk and not for us.
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}),
	}, nil
}
