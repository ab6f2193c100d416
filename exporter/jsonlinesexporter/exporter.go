// SPDX-License-Identifier: Apache-2.0

package jsonlinesexporter

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/exporter/jsonlinesexporter/internal/metadata"
)

// writer writes the requests of all signals of one configuration to its file, which is open from
// the first start to the last shutdown.
type writer struct {
	config *Config
	set    component.TelemetrySettings
	meter  *metadata.TelemetryBuilder

	mu    sync.Mutex
	users int
	file  *lineFile
}

func newWriter(c *Config, set component.TelemetrySettings) (*writer, error) {
	meter, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, fmt.Errorf("make counters: %w", err)
	}
	return &writer{config: c, set: set, meter: meter}, nil
}

func (w *writer) start(ctx context.Context, _ component.Host) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users > 0 {
		w.users++
		return nil
	}
	file, err := openLineFile(w.config, func(reason string) {
		w.set.Logger.Warn("A line of the file is cut; the next begins on its own", zap.String("path", w.config.Path), zap.String("reason", reason))
		w.meter.ExporterJSONLinesCutLines.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason)))
	})
	if err != nil {
		return err
	}
	w.users, w.file = 1, file
	return nil
}

func (w *writer) shutdown(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users == 0 {
		return nil // was never started
	}
	if w.users--; w.users > 0 {
		return nil
	}
	return w.file.close()
}

func (w *writer) traces(ctx context.Context, td ptrace.Traces) error {
	bounded, cut := cutNested(td, ptrace.NewTraces, eachOfTraces)
	line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(bounded)
	return w.write(ctx, line, cut, err)
}

func (w *writer) metrics(ctx context.Context, md pmetric.Metrics) error {
	bounded, cut := cutNested(md, pmetric.NewMetrics, eachOfMetrics)
	line, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(bounded)
	return w.write(ctx, line, cut, err)
}

func (w *writer) logs(ctx context.Context, ld plog.Logs) error {
	bounded, cut := cutNested(ld, plog.NewLogs, eachOfLogs)
	line, err := (&plog.JSONMarshaler{}).MarshalLogs(bounded)
	return w.write(ctx, line, cut, err)
}

// write appends a line, of which so many values were cut.
func (w *writer) write(ctx context.Context, line []byte, cut int64, err error) error {
	if err != nil {
		return fmt.Errorf("encode line: %w", err)
	}
	if err := w.file.write(line); err != nil {
		return err
	}
	if cut > 0 {
		w.meter.ExporterJSONLinesCutValues.Add(ctx, cut)
	}
	return nil
}
