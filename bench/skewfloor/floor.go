// SPDX-License-Identifier: Apache-2.0

// Package skewfloor writes on spans what clock_skew wrote on the same spans, knowing
// it all: what pdata itself costs, which benchmarks put beside what clock_skew costs.
//
// It goes through the spans, shifts their times and those of their events, makes room for
// the attributes at once and to the number, and puts them: pdata looks for each key among
// those that are there, and allocates each value. Texts are there already. It reads no
// attribute, and what it writes it reads from memory one after the other.
package skewfloor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Floor is what came to spans, in their order.
type Floor struct {
	spans []span
	attrs []attr
}

type span struct {
	by    pcommon.Timestamp // modulo 2^64
	attrs int
}

type attr struct {
	key  string
	kind pcommon.ValueType
	text string
	i    int64
	d    float64
	b    bool
}

// Record notes what came to the spans of before in after, which are the same spans in
// the same order, with attributes added behind those that they had. It forgets what it
// noted before.
func (f *Floor) Record(before, after ptrace.Traces) {
	f.spans, f.attrs = f.spans[:0], f.attrs[:0]
	var had []int
	var start []pcommon.Timestamp
	each(before, func(s ptrace.Span) {
		had = append(had, s.Attributes().Len())
		start = append(start, s.StartTimestamp())
	})
	n := 0
	each(after, func(s ptrace.Span) {
		first, at := len(f.attrs), 0
		for k, v := range s.Attributes().All() {
			if at++; at > had[n] {
				f.attrs = append(f.attrs, attrOf(k, v))
			}
		}
		f.spans = append(f.spans, span{s.StartTimestamp() - start[n], len(f.attrs) - first})
		n++
	})
}

func attrOf(key string, v pcommon.Value) attr {
	a := attr{key: key, kind: v.Type()}
	switch a.kind {
	case pcommon.ValueTypeStr:
		a.text = v.Str()
	case pcommon.ValueTypeInt:
		a.i = v.Int()
	case pcommon.ValueTypeDouble:
		a.d = v.Double()
	case pcommon.ValueTypeBool:
		a.b = v.Bool()
	}
	return a
}

// Write puts it on spans as those of before were.
func (f *Floor) Write(td ptrace.Traces) {
	n, from := 0, 0
	each(td, func(s ptrace.Span) {
		c := &f.spans[n]
		n++
		if c.by != 0 {
			move(s, c.by)
		}
		m := s.Attributes()
		if c.attrs > 0 {
			m.EnsureCapacity(m.Len() + c.attrs)
		}
		for i := from; i < from+c.attrs; i++ {
			f.attrs[i].put(m)
		}
		from += c.attrs
	})
}

// Attributes is how many attributes were added.
func (f *Floor) Attributes() int { return len(f.attrs) }

func (a *attr) put(m pcommon.Map) {
	switch a.kind {
	case pcommon.ValueTypeStr:
		m.PutStr(a.key, a.text)
	case pcommon.ValueTypeInt:
		m.PutInt(a.key, a.i)
	case pcommon.ValueTypeDouble:
		m.PutDouble(a.key, a.d)
	case pcommon.ValueTypeBool:
		m.PutBool(a.key, a.b)
	}
}

func move(s ptrace.Span, by pcommon.Timestamp) {
	s.SetStartTimestamp(s.StartTimestamp() + by)
	s.SetEndTimestamp(s.EndTimestamp() + by)
	events := s.Events()
	for i := range events.Len() {
		e := events.At(i)
		e.SetTimestamp(e.Timestamp() + by)
	}
}

func each(td ptrace.Traces, f func(ptrace.Span)) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			spans := ss.Spans()
			for i := range spans.Len() {
				f(spans.At(i))
			}
		}
	}
}
