// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-otel/lockstep/exporter/partitionedkafkaexporter/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
)

// outcomes are what becomes of the records and items of a signal, and of what is observed of a topic: several exporters
// of a collector write to different ones.
type outcomes struct{ acknowledged, returned, refused, all, topic metric.MeasurementOption }

func outcomesOf(signal, topic string) outcomes {
	of := func(outcome string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attribute.String("signal", signal), attribute.String("outcome", outcome)))
	}
	return outcomes{
		acknowledged: of("acknowledged"), returned: of("returned"), refused: of("refused"),
		all:   metric.WithAttributeSet(attribute.NewSet(attribute.String("signal", signal))),
		topic: metric.WithAttributeSet(attribute.NewSet(attribute.String("signal", signal), attribute.String("topic", topic))),
	}
}

// NewFactory returns the factory of the partitioned Kafka exporter.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(
		metadata.Type,
		func() component.Config { return newDefaultConfig() },
		exporter.WithTraces(newTraces, metadata.TracesStability),
		exporter.WithLogs(newLogs, metadata.LogsStability),
	)
}

func newTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	c := cfg.(*Config)
	s := tracesSignal
	if c.Traces.PartitionBy == byJob {
		s.split = splitTracesByJob
	}
	w, err := newWriter(c, c.Traces, s, set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	traces, err := exporterhelper.NewTraces(ctx, set, cfg, w.write, options(c, w)...)
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it is
	}
	return &endingTraces{traces, w.end}, nil
}

func newLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	c := cfg.(*Config)
	s := logsSignal
	if c.Logs.PartitionBy == byClock {
		s.split = splitLogsByClock
	}
	w, err := newWriter(c, c.Logs, s, set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	logs, err := exporterhelper.NewLogs(ctx, set, cfg, w.write, options(c, w)...)
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it is
	}
	return &endingLogs{logs, w.end}, nil
}

func options[T any](c *Config, w *writer[T]) []exporterhelper.Option {
	return []exporterhelper.Option{
		exporterhelper.WithStart(w.start), exporterhelper.WithShutdown(w.shutdown),
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}),
		exporterhelper.WithTimeout(c.Timeout), exporterhelper.WithQueue(c.Queue), exporterhelper.WithRetry(c.Retry),
	}
}

// endingTraces is an exporter that ends in time, though a broker does not answer.
type endingTraces struct {
	exporter.Traces
	end context.CancelCauseFunc
}

// Shutdown waits for the brokers until ctx is done, or for [deliver.ShutdownLimit].
func (e *endingTraces) Shutdown(ctx context.Context) error { return endInTime(ctx, e.end, e.Traces) }

// endingLogs is [endingTraces] for log records.
type endingLogs struct {
	exporter.Logs
	end context.CancelCauseFunc
}

// Shutdown waits for the brokers until ctx is done, or for [deliver.ShutdownLimit].
func (e *endingLogs) Shutdown(ctx context.Context) error { return endInTime(ctx, e.end, e.Logs) }

func endInTime(ctx context.Context, end context.CancelCauseFunc, of component.Component) error {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, deliver.ShutdownLimit)
		defer cancel()
	}
	ended := context.AfterFunc(ctx, func() { end(errEnded) })
	defer ended()
	return of.Shutdown(ctx) //nolint:wrapcheck // as of the exporter
}
