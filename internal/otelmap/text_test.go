// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// longest returns the longest text anywhere in a value.
func longest(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Struct:
		for i := range v.NumField() {
			n = max(n, longest(v.Field(i)))
		}
	case reflect.Interface:
		return longest(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			n = max(n, longest(v.Index(i)))
		}
	}
	return n
}

// lengthen puts text on each attribute of the table that is a text.
func lengthen[T any](t *table[T], m pcommon.Map, text string) (names int) {
	for i := range t.fields {
		probe := pcommon.NewValueStr("x")
		var v T
		if t.fields[i].get(&v, probe) != mistyped {
			m.PutStr(t.fields[i].name, text)
			names++
		}
	}
	return names
}

func TestReadOps_LongTexts_AreCutAndCounted(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	cuts := lengthen(rankFields, rs.Resource().Attributes(), long)
	rs.Resource().Attributes().PutInt(semconv.Rank, 3)
	for _, end := range []string{"a", "b"} {
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetName(long + end)
		cuts += 1 + lengthen(opFields, s.Attributes(), long+end)
		s.Attributes().PutStr(semconv.OpKind, string(model.KindCollective))
		cuts--
	}
	var p Problems
	ranks := ReadOps(td, &p)
	require.Len(t, ranks, 1)
	require.Len(t, ranks[0].Ops, 2)
	a, b := &ranks[0].Ops[0], &ranks[0].Ops[1]
	assert.LessOrEqual(t, len(a.Stack), cut.MaxLong)
	assert.Greater(t, len(a.Stack), cut.MaxName, "a stack trace is read as a whole")
	a.Stack, b.Stack = "", ""
	assert.Equal(t, cut.MaxName, longest(reflect.ValueOf(ranks)))
	assert.NotEqual(t, a.Name, b.Name, "texts that differ stay different")
	assert.NotEqual(t, a.Key, b.Key)
	assert.Equal(t, int64(cuts), p.TextsCut())
	assert.Zero(t, p.Count(), "what was cut was read")
	require.NotEmpty(t, p.List())
	assert.Less(t, longest(reflect.ValueOf(p.List())), 512)
}

// A receiver and a collector behind it must give an operation one id, although one of them
// saw the whole name.
func TestReadOps_LongKey_KeepsItsSpan(t *testing.T) {
	r := model.Rank{JobID: "j", Incarnation: strings.Repeat("i", 2000), Rank: 1}
	op := model.Op{Kind: model.KindCompute, Name: strings.Repeat("k", 5000), Step: model.Some(int64(1)), End: 1}
	td := OpsToTraces(&r, []model.Op{op})
	s := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	ranks := ReadOps(td, nil)
	ref := ranks[0].Rank.Ref(&ranks[0].Ops[0])
	assert.Equal(t, s.SpanID(), pcommon.SpanID(ref.Span))
	assert.Equal(t, s.TraceID(), pcommon.TraceID(ref.Trace))
	assert.LessOrEqual(t, len(s.Name()), cut.MaxName)
}

func TestFinding_LongTexts_AreCutBothWays(t *testing.T) {
	lr := plog.NewLogRecord()
	lr.SetEventName(semconv.EventFinding)
	lengthen(findingFields, lr.Attributes(), strings.Repeat("x", 100_000))
	f, ok := LogToFinding(lr, nil)
	require.True(t, ok)
	assert.Equal(t, cut.MaxLong, longest(reflect.ValueOf(f)))
	f.Evidence, f.Action, f.Stack = nil, "", ""
	assert.Equal(t, cut.MaxName, longest(reflect.ValueOf(f)))

	f.Op = strings.Repeat("x", 100_000)
	out := plog.NewLogRecord()
	FindingToLog(&f, out)
	v, _ := out.Attributes().Get(semconv.FindingOp)
	assert.Len(t, v.Str(), cut.MaxName)
}

// A value in a problem is shown; one that holds a million others must not be rendered for it.
func TestShown_NestedValue_IsNotRendered(t *testing.T) {
	v := pcommon.NewValueMap()
	for m, i := v.Map(), 0; i < 1000; i++ {
		m.PutStr("text", "x")
		m = m.PutEmptyMap("nested")
	}
	assert.Equal(t, `Map ""`, shown(v))
	assert.Less(t, testing.AllocsPerRun(10, func() { shown(v) }), 10.0)
}
