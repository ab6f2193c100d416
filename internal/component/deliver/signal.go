// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
)

// signal is what differs between the signals.
type signal[T any] struct {
	name    string
	consume func(context.Context, T) error
	count   func(T) int
	clone   func(T) T
	refused func(error) (T, bool) // the data of a partial error

	// start and end report a delivery in the collector's own telemetry.
	start func(context.Context) context.Context
	end   func(ctx context.Context, format string, items int, err error)
}

func tracesTo(next consumer.Traces, obs *receiverhelper.ObsReport) signal[ptrace.Traces] {
	return signal[ptrace.Traces]{
		name: "spans", consume: next.ConsumeTraces, count: ptrace.Traces.SpanCount, start: obs.StartTracesOp, end: obs.EndTracesOp,
		refused: func(err error) (ptrace.Traces, bool) {
			e, ok := err.(consumererror.Traces) //nolint:errorlint // one error of a chain is looked at
			if !ok {
				return ptrace.Traces{}, false
			}
			return e.Data(), true
		},
		clone: func(td ptrace.Traces) ptrace.Traces {
			out := ptrace.NewTraces()
			td.CopyTo(out)
			return out
		},
	}
}

func logsTo(next consumer.Logs, obs *receiverhelper.ObsReport) signal[plog.Logs] {
	return signal[plog.Logs]{
		name: "log records", consume: next.ConsumeLogs, count: plog.Logs.LogRecordCount, start: obs.StartLogsOp, end: obs.EndLogsOp,
		refused: refusedLogs,
		clone: func(ld plog.Logs) plog.Logs {
			out := plog.NewLogs()
			ld.CopyTo(out)
			return out
		},
	}
}

func refusedLogs(err error) (plog.Logs, bool) {
	e, ok := err.(consumererror.Logs) //nolint:errorlint // one error of a chain is looked at
	if !ok {
		return plog.Logs{}, false
	}
	return e.Data(), true
}

func metricsTo(next consumer.Metrics, obs *receiverhelper.ObsReport) signal[pmetric.Metrics] {
	return signal[pmetric.Metrics]{
		name: "data points", consume: next.ConsumeMetrics, count: pmetric.Metrics.DataPointCount, start: obs.StartMetricsOp, end: obs.EndMetricsOp,
		refused: func(err error) (pmetric.Metrics, bool) {
			e, ok := err.(consumererror.Metrics) //nolint:errorlint // one error of a chain is looked at
			if !ok {
				return pmetric.Metrics{}, false
			}
			return e.Data(), true
		},
		clone: func(md pmetric.Metrics) pmetric.Metrics {
			out := pmetric.NewMetrics()
			md.CopyTo(out)
			return out
		},
	}
}
