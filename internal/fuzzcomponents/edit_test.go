// SPDX-License-Identifier: Apache-2.0

package fuzzcomponents

import (
	"bytes"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func otelTime(now time.Time, ms int) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(now.Add(time.Duration(ms) * time.Millisecond))
}

// batch is the traces and logs that are sent together.
type batch struct {
	td ptrace.Traces
	ld plog.Logs
}

func newBatch(step int64, now time.Time) *batch {
	return &batch{td: spans(step, now), ld: records(step, now)}
}

// span returns a scope of the batch and the place of one of its spans; false where it has none.
func (b *batch) span(s *source) (ptrace.ResourceSpans, ptrace.SpanSlice, int, bool) {
	rs, ok := at(s, b.td.ResourceSpans())
	if !ok {
		return rs, ptrace.SpanSlice{}, 0, false
	}
	ss, ok := at(s, rs.ScopeSpans())
	if !ok || ss.Spans().Len() == 0 {
		return rs, ptrace.SpanSlice{}, 0, false
	}
	return rs, ss.Spans(), s.below(ss.Spans().Len()), true
}

func (b *batch) record(s *source) (plog.ResourceLogs, plog.LogRecordSlice, int, bool) {
	rl, ok := at(s, b.ld.ResourceLogs())
	if !ok {
		return rl, plog.LogRecordSlice{}, 0, false
	}
	sl, ok := at(s, rl.ScopeLogs())
	if !ok || sl.LogRecords().Len() == 0 {
		return rl, plog.LogRecordSlice{}, 0, false
	}
	return rl, sl.LogRecords(), s.below(sl.LogRecords().Len()), true
}

func at[T any](s *source, from interface {
	Len() int
	At(int) T
},
) (found T, ok bool) {
	if from.Len() == 0 {
		return found, false
	}
	return from.At(s.below(from.Len())), true
}

// most items that a batch grows to.
const most = 200

// edit changes one thing of the batch.
func (b *batch) edit(s *source, now time.Time) {
	if s.byte()&1 == 0 {
		b.editSpans(s, now)
	} else {
		b.editRecords(s, now)
	}
}

func (b *batch) editSpans(s *source, now time.Time) {
	rs, list, i, ok := b.span(s)
	if !ok {
		b.td = spans(0, now)
		return
	}
	span := list.At(i)
	switch s.below(12) {
	case 0, 1:
		attribute(s, span.Attributes())
	case 2:
		attribute(s, rs.Resource().Attributes())
	case 3:
		span.SetStartTimestamp(s.stamp(now))
	case 4:
		span.SetEndTimestamp(s.stamp(now))
	case 5:
		spanIDs(s, span)
	case 6:
		span.SetName(pick(s, texts))
		span.SetKind(ptrace.SpanKind(int8(s.byte())))
	case 7:
		if list.Len() < most {
			span.CopyTo(list.AppendEmpty())
		}
	case 8:
		n := 0
		list.RemoveIf(func(ptrace.Span) bool { n++; return n-1 == i })
	case 9:
		l := span.Links().AppendEmpty()
		l.SetTraceID([16]byte{s.byte()})
		attribute(s, l.Attributes())
		span.Events().AppendEmpty().SetTimestamp(s.stamp(now))
	case 10:
		b.td = editTraces(s, b.td)
	case 11:
		if b.td.ResourceSpans().Len() < most/8 {
			rs.CopyTo(b.td.ResourceSpans().AppendEmpty())
		}
	}
}

func (b *batch) editRecords(s *source, now time.Time) {
	rl, list, i, ok := b.record(s)
	if !ok {
		b.ld = records(0, now)
		return
	}
	record := list.At(i)
	switch s.below(10) {
	case 0, 1, 2:
		attribute(s, record.Attributes())
	case 3:
		attribute(s, rl.Resource().Attributes())
	case 4:
		record.SetTimestamp(s.stamp(now))
		record.SetObservedTimestamp(s.stamp(now))
	case 5:
		record.SetEventName(pick(s, events))
		record.SetSeverityNumber(plog.SeverityNumber(int8(s.byte())))
	case 6:
		s.value(record.Body(), deepest)
	case 7:
		if list.Len() < most {
			record.CopyTo(list.AppendEmpty())
		}
	case 8:
		n := 0
		list.RemoveIf(func(plog.LogRecord) bool { n++; return n-1 == i })
	case 9:
		b.ld = editLogs(s, b.ld)
	}
}

// attribute changes an attribute that is there, removes one, or adds one.
func attribute(s *source, m pcommon.Map) {
	switch how := s.below(4); {
	case how == 3 || m.Len() == 0:
		s.value(m.PutEmpty(pick(s, names())), deepest)
	default:
		i, n := s.below(m.Len()), 0
		for name, v := range m.All() {
			if n++; n-1 < i {
				continue
			}
			if how == 2 {
				m.Remove(name)
			} else {
				s.value(v, deepest)
			}
			return
		}
	}
}

func spanIDs(s *source, span ptrace.Span) {
	switch s.below(4) {
	case 0:
		span.SetTraceID(pcommon.TraceID{})
	case 1:
		span.SetSpanID(pcommon.SpanID{})
	case 2:
		span.SetParentSpanID(span.SpanID())
	case 3:
		span.SetTraceID([16]byte{1, s.byte()})
		span.SetSpanID([8]byte{s.byte()})
		span.SetParentSpanID([8]byte{s.byte()})
	}
}

// rename gives one attribute the name of another: names that occur twice.
func rename(s *source, text []byte) []byte {
	from, to := `"key":"`+pick(s, names())+`"`, `"key":"`+pick(s, names())+`"`
	return bytes.Replace(text, []byte(from), []byte(to), 1+s.below(4))
}

// corrupt overwrites, cuts out or inserts some bytes.
func corrupt(s *source, wire []byte) []byte {
	for range 1 + s.below(4) {
		if len(wire) == 0 {
			return s.take(64)
		}
		i := s.below(min(len(wire), 1<<16))
		switch s.below(3) {
		case 0:
			wire[i] = s.byte()
		case 1:
			wire = append(wire[:i], wire[min(i+s.below(16), len(wire)):]...)
		case 2:
			wire = append(wire[:i:i], append(s.take(s.below(16)), wire[i:]...)...)
		}
	}
	return wire
}

// editTraces changes the batch as it is on the wire. It returns the batch unchanged if the result cannot be
// decoded.
func editTraces(s *source, td ptrace.Traces) ptrace.Traces {
	var changed ptrace.Traces
	var err error
	if s.byte()&1 == 0 {
		text, _ := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
		changed, err = (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(rename(s, text))
	} else {
		wire, _ := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		changed, err = (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(corrupt(s, wire))
	}
	if err != nil {
		return td
	}
	return changed
}

func editLogs(s *source, ld plog.Logs) plog.Logs {
	var changed plog.Logs
	var err error
	if s.byte()&1 == 0 {
		text, _ := (&plog.JSONMarshaler{}).MarshalLogs(ld)
		changed, err = (&plog.JSONUnmarshaler{}).UnmarshalLogs(rename(s, text))
	} else {
		wire, _ := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
		changed, err = (&plog.ProtoUnmarshaler{}).UnmarshalLogs(corrupt(s, wire))
	}
	if err != nil {
		return ld
	}
	return changed
}
