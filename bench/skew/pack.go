// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// exportEvery is how often hosts export what has ended, as SDKs do by the batch.
const exportEvery = 200 * ms

// batches are the spans as a collector gets them: of all hosts, as they end.
func (w *world) batches() []ptrace.Traces {
	return w.pack(func(e *event) int64 { return e.end / exportEvery })
}

// whole are the spans as a backend shows them: trace by trace.
func (w *world) whole() []ptrace.Traces {
	return w.pack(func(e *event) int64 { return int64(e.trace) })
}

// pack groups the spans, and orders them by host and by end in each group.
func (w *world) pack(group func(*event) int64) []ptrace.Traces {
	order := make([]int, len(w.events))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &w.events[a], &w.events[b]
		return cmp.Or(cmp.Compare(group(x), group(y)), cmp.Compare(x.host, y.host), cmp.Compare(x.end, y.end), cmp.Compare(a, b))
	})
	var out []ptrace.Traces
	var spans ptrace.SpanSlice
	for n, i := range order {
		e := &w.events[i]
		fresh := n == 0 || group(e) != group(&w.events[order[n-1]])
		if fresh {
			out = append(out, ptrace.NewTraces())
		}
		if fresh || e.host != w.events[order[n-1]].host {
			rs := out[len(out)-1].ResourceSpans().AppendEmpty()
			resource(rs.Resource().Attributes(), e.host)
			spans = rs.ScopeSpans().AppendEmpty().Spans()
		}
		w.span(spans.AppendEmpty(), i)
	}
	return out
}

func resource(m pcommon.Map, host int) {
	m.PutStr("service.name", fmt.Sprintf("service-%d", host))
	m.PutStr("service.instance.id", fmt.Sprintf("service-%d-0", host))
	m.PutStr("host.id", fmt.Sprintf("host-%d", host))
	m.PutStr("host.name", fmt.Sprintf("node-%d", host))
}

func (w *world) span(s ptrace.Span, i int) {
	e := &w.events[i]
	clock := &w.clock[e.host]
	s.SetTraceID(traceID(e.trace))
	s.SetSpanID(spanID(i))
	if e.parent >= 0 {
		s.SetParentSpanID(spanID(e.parent))
	}
	s.SetKind(e.kind)
	s.SetName(e.what)
	s.SetStartTimestamp(pcommon.Timestamp(clock.reads(e.start)))
	s.SetEndTimestamp(pcommon.Timestamp(clock.reads(e.end)))
	if e.failed {
		s.Status().SetCode(ptrace.StatusCodeError)
	}
	m := s.Attributes()
	switch e.what {
	case "rpc":
		m.PutStr("rpc.system", "grpc")
		m.PutStr("rpc.service", "shop.Cart")
		m.PutStr("rpc.method", "Get")
	case "http":
		m.PutStr("http.request.method", "GET")
		m.PutStr("url.path", "/cart")
		m.PutInt("http.response.status_code", 200)
	case "messaging":
		m.PutStr("messaging.system", "kafka")
		m.PutStr("messaging.destination.name", "orders")
		if e.kind == ptrace.SpanKindProducer {
			m.PutStr("messaging.operation.type", "send")
		} else {
			m.PutStr("messaging.operation.type", "process")
		}
	}
}

func traceID(trace int) (id pcommon.TraceID) {
	binary.BigEndian.PutUint64(id[:], 0x70ca11ab1e)
	binary.BigEndian.PutUint64(id[8:], uint64(trace)+1)
	return id
}

func spanID(event int) (id pcommon.SpanID) {
	binary.BigEndian.PutUint64(id[:], uint64(event)+1)
	return id
}

// eventOf is the event of a span.
func eventOf(s ptrace.Span) int {
	id := s.SpanID()
	return int(binary.BigEndian.Uint64(id[:])) - 1
}

// each calls f with all spans.
func each(batches []ptrace.Traces, f func(ptrace.Span)) {
	for _, td := range batches {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					f(s)
				}
			}
		}
	}
}

func clone(batches []ptrace.Traces) []ptrace.Traces {
	out := make([]ptrace.Traces, len(batches))
	for i, td := range batches {
		out[i] = ptrace.NewTraces()
		td.CopyTo(out[i])
	}
	return out
}
