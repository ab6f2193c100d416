// SPDX-License-Identifier: Apache-2.0

package skewmap

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	sc "github.com/lockstep-otel/lockstep/internal/semconv"
)

// What names a meeting or a job is kept: it is cut as otelmap cuts it.
func TestRead_LongTexts_AreCut(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	td := ptrace.NewTraces()
	for _, end := range []string{"a", "b"} {
		rs := td.ResourceSpans().AppendEmpty()
		for name, v := range map[string]any{sc.ClockID: "c", sc.JobID: long + end, sc.JobIncarnation: long + end} {
			require.NoError(t, rs.Resource().Attributes().PutEmpty(name).FromRaw(v))
		}
		rs.Resource().Attributes().PutInt(sc.Rank, 1)
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetStartTimestamp(1)
		s.SetEndTimestamp(2)
		for name, v := range map[string]any{
			sc.OpKind: "collective", sc.CommID: long + end, sc.CommDigest: long + end,
			sc.CollectiveName: model.AllReduce, sc.CollectiveSeq: int64(1), sc.CollectiveSeqScope: string(model.ScopeCommFunc),
		} {
			require.NoError(t, s.Attributes().PutEmpty(name).FromRaw(v))
		}
	}
	e := causality.New(causality.Config{MaxSpans: 10, MaxClocks: 10, MaxJobs: 10, Window: time.Second, HealthWindow: time.Second, Now: time.Now}, &fakeClocks{})
	m := NewMapper(e, &fakeClocks{})
	m.Read(td)
	require.Len(t, m.Batch().Spans, 2)
	a, b := m.Batch().Spans[0], m.Batch().Spans[1]
	require.NotNil(t, a.Meet)
	for _, text := range []string{a.Meet.Key.Comm, a.Meet.Key.Incarnation, a.Meet.Digest, a.Meet.Job, a.Job.Name} {
		assert.LessOrEqual(t, len(text), cut.MaxName)
	}
	assert.NotEqual(t, a.Meet.Key.Comm, b.Meet.Key.Comm)
	assert.NotSame(t, a.Job, b.Job)
}

// Looking at a span takes time once for each of its attributes, not for each pair of them.
func TestRead_SpanOfManyAttributes_TakesNoLongerThanReading(t *testing.T) {
	many := make(map[string]any, 200_000)
	for i := range 200_000 {
		many[fmt.Sprint("a", i)] = int64(i)
	}
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	require.NoError(t, rs.Resource().Attributes().FromRaw(many))
	s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	require.NoError(t, s.Attributes().FromRaw(many))
	s.SetStartTimestamp(1)
	s.SetEndTimestamp(2)
	e := causality.New(causality.Config{MaxSpans: 10, MaxClocks: 10, MaxJobs: 10, Window: time.Second, HealthWindow: time.Second, Now: time.Now}, &fakeClocks{})
	m := NewMapper(e, &fakeClocks{})
	began := time.Now()
	m.Read(td)
	e.Run(m.Batch())
	m.Write(true)
	var p otelmap.Problems
	otelmap.ReadOps(td, &p)
	assert.Less(t, time.Since(began), 5*time.Second, "twenty thousand million comparisons take longer")
}

// A header may have several values, and a status may be what no program writes.
func TestMentions_And_Status_OfNestedValues(t *testing.T) {
	s := ptrace.NewSpan()
	values := s.Attributes().PutEmptySlice(sc.HTTPContentType)
	values.AppendEmpty().SetStr("text/event-stream; charset=utf-8")
	var n note
	var op model.Op
	assert.Equal(t, causality.Streaming, scan(s, &n, &op))
	s.Attributes().Clear()
	s.Attributes().PutEmptyMap(sc.RPCStatus).PutStr("code", "OK")
	assert.Equal(t, causality.Failed, scan(s, &n, &op))
	s.Attributes().PutInt(sc.RPCStatus, 0)
	assert.Zero(t, scan(s, &n, &op))
}
