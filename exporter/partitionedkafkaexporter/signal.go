// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// signal is what differs between spans and log records.
type signal[T any] struct {
	name      string // of the signal, as contrib's header has it
	item      string // what one is called in messages
	split     func(T, int32) []part[T]
	marshal   func(T) ([]byte, error)
	unmarshal func([]byte) (T, error)
	size      func(T) int // of what marshal returns
	count     func(T) int
	// halve moves the second half of the items to other data, and returns them.
	halve func(T) T
	// join moves the data of one to the other.
	join  func(from, to T)
	empty func() T
	// part is an error of which only some data are to be sent again.
	part func(error, T) error
}

var (
	traceMarshaler ptrace.ProtoMarshaler
	logMarshaler   plog.ProtoMarshaler
)

var tracesSignal = signal[ptrace.Traces]{
	name: "traces", item: "span", split: splitByRendezvous, marshal: traceMarshaler.MarshalTraces,
	unmarshal: (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces, size: traceMarshaler.TracesSize,
	count: ptrace.Traces.SpanCount, halve: halveTraces, empty: ptrace.NewTraces, part: consumererror.NewTraces,
	join: func(from, to ptrace.Traces) { from.ResourceSpans().MoveAndAppendTo(to.ResourceSpans()) },
}

var logsSignal = signal[plog.Logs]{
	name: "logs", item: "log record", split: splitLogsByJob, marshal: logMarshaler.MarshalLogs,
	unmarshal: (&plog.ProtoUnmarshaler{}).UnmarshalLogs, size: logMarshaler.LogsSize,
	count: plog.Logs.LogRecordCount, halve: halveLogs, empty: plog.NewLogs, part: consumererror.NewLogs,
	join: func(from, to plog.Logs) { from.ResourceLogs().MoveAndAppendTo(to.ResourceLogs()) },
}

func halveTraces(td ptrace.Traces) ptrace.Traces {
	keep := td.SpanCount() / 2
	rest := ptrace.NewTraces()
	for _, rs := range td.ResourceSpans().All() {
		var to ptrace.ResourceSpans
		begun := false
		for _, ss := range rs.ScopeSpans().All() {
			n := ss.Spans().Len()
			if keep >= n {
				keep -= n
				continue
			}
			if !begun {
				to, begun = rest.ResourceSpans().AppendEmpty(), true
				rs.Resource().CopyTo(to.Resource())
				to.SetSchemaUrl(rs.SchemaUrl())
			}
			scope := to.ScopeSpans().AppendEmpty()
			ss.Scope().CopyTo(scope.Scope())
			scope.SetSchemaUrl(ss.SchemaUrl())
			seen := 0
			ss.Spans().RemoveIf(func(s ptrace.Span) bool {
				if seen++; seen <= keep {
					return false
				}
				s.MoveTo(scope.Spans().AppendEmpty())
				return true
			})
			keep = 0
		}
		rs.ScopeSpans().RemoveIf(func(ss ptrace.ScopeSpans) bool { return ss.Spans().Len() == 0 })
	}
	td.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool { return rs.ScopeSpans().Len() == 0 })
	return rest
}

func halveLogs(ld plog.Logs) plog.Logs {
	keep := ld.LogRecordCount() / 2
	rest := plog.NewLogs()
	for _, rl := range ld.ResourceLogs().All() {
		var to plog.ResourceLogs
		begun := false
		for _, sl := range rl.ScopeLogs().All() {
			n := sl.LogRecords().Len()
			if keep >= n {
				keep -= n
				continue
			}
			if !begun {
				to, begun = rest.ResourceLogs().AppendEmpty(), true
				rl.Resource().CopyTo(to.Resource())
				to.SetSchemaUrl(rl.SchemaUrl())
			}
			scope := to.ScopeLogs().AppendEmpty()
			sl.Scope().CopyTo(scope.Scope())
			scope.SetSchemaUrl(sl.SchemaUrl())
			seen := 0
			sl.LogRecords().RemoveIf(func(lr plog.LogRecord) bool {
				if seen++; seen <= keep {
					return false
				}
				lr.MoveTo(scope.LogRecords().AppendEmpty())
				return true
			})
			keep = 0
		}
		rl.ScopeLogs().RemoveIf(func(sl plog.ScopeLogs) bool { return sl.LogRecords().Len() == 0 })
	}
	ld.ResourceLogs().RemoveIf(func(rl plog.ResourceLogs) bool { return rl.ScopeLogs().Len() == 0 })
	return rest
}
