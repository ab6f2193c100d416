// SPDX-License-Identifier: Apache-2.0

package reportexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/lockstep-otel/lockstep/exporter/reportexporter/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Sink gets each revision of each finding, one at a time, and must not block.
type Sink func(model.Finding)

// Option changes the exporters of a factory.
type Option func(*factory)

// WithSink is for a program that embeds a collector and shows findings itself. An exporter for whose id
// sink returns a Sink gives it the findings, and writes nothing. For a nil Sink the exporter writes.
func WithSink(sink func(component.ID) Sink) Option {
	return func(f *factory) { f.sink = sink }
}

// NewFactory returns the factory of the report exporter.
func NewFactory(options ...Option) exporter.Factory {
	f := &factory{sink: func(component.ID) Sink { return nil }}
	for _, o := range options {
		o(f)
	}
	return exporter.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		exporter.WithLogs(f.logs, metadata.LogsStability),
	)
}

type factory struct {
	sink func(component.ID) Sink
}

func (f *factory) logs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	r, err := newReporter(cfg.(*Config), set.TelemetrySettings, f.sink(set.ID))
	if err != nil {
		return nil, err
	}
	return r.exporter(ctx, set)
}

func (r *reporter) exporter(ctx context.Context, set exporter.Settings) (exporter.Logs, error) {
	options := []exporterhelper.Option{
		exporterhelper.WithStart(r.start), exporterhelper.WithShutdown(r.shutdown),
		// Text is written at once, or waits for the disk or its reader.
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}),
	}
	if r.sink == nil { // which does not block
		options = append(options, exporterhelper.WithQueue(r.config.Queue), exporterhelper.WithRetry(r.config.Retry))
	}
	logs, err := exporterhelper.NewLogs(ctx, set, r.config, r.logs, options...)
	if err != nil {
		return nil, err
	}
	return &ending{Logs: logs, reporter: r}, nil
}

// ending is an exporter that ends in time, though its reader does not read.
type ending struct {
	exporter.Logs
	reporter *reporter
}

// Shutdown waits for the reader until ctx is done, or for [deliver.ShutdownLimit].
func (e *ending) Shutdown(ctx context.Context) error {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, deliver.ShutdownLimit)
		defer cancel()
	}
	ended := context.AfterFunc(ctx, func() { e.reporter.end(errEnded) })
	defer ended()
	return e.Logs.Shutdown(ctx)
}
