// SPDX-License-Identifier: Apache-2.0

package stepmap

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/straggler"
	"github.com/lockstep-otel/lockstep/internal/straggler/live"
	"github.com/lockstep-otel/lockstep/internal/straggler/stragglertest"
)

// hostile is a whole step of a job whose names are as long as a message allows, and new with each.
func hostile(n int64) ptrace.Traces {
	long := func(what string) string { return fmt.Sprint(what, n, strings.Repeat("x", 100_000)) }
	rank := model.Rank{JobID: "job", Incarnation: "i", Rank: n % 4}
	td := otelmap.OpsToTraces(&rank, stragglertest.Ops(n, 10))
	rs := td.ResourceSpans().At(0)
	for _, name := range []string{semconv.ServiceName, semconv.JobID, semconv.JobIncarnation, semconv.HostName, semconv.ClockID} {
		rs.Resource().Attributes().PutStr(name, long(name))
	}
	rs.Resource().Attributes().PutInt(semconv.WorldSize, 1)
	for _, s := range rs.ScopeSpans().At(0).Spans().All() {
		s.SetName(long("span"))
		s.Attributes().PutStr(semconv.OpKey, long("key"))
		if _, ok := s.Attributes().Get(semconv.CommSize); ok {
			s.Attributes().PutInt(semconv.CommSize, 1) // the step is complete
		}
	}
	return td
}

// Texts of 100 kB reach no engine and no metric as a whole, and a job beside them is judged as ever.
func TestAnalysis_HostileTexts_AreBounded(t *testing.T) {
	const limit = 2 << 20
	cfg := straggler.NewDefaultConfig()
	cfg.MaxMemory = limit
	a := live.NewAnalysis(cfg, stragglertest.Now)
	measures := live.NewMeasures(1000, 100)
	var problems otelmap.Problems
	add := func(td ptrace.Traces, step int64) {
		for _, rep := range a.Add(otelmap.ReadOps(td, &problems)).Reports {
			measures.Record(rep, time.Unix(step, 0))
		}
	}
	n := int64(0)
	for step := range int64(12) {
		for r := range int64(4) {
			rank, compute := stragglertest.Rank(r), 10+r
			if r == 2 {
				compute = 30
			}
			add(otelmap.OpsToTraces(&rank, stragglertest.Ops(step, compute)), step)
		}
		for range 8 {
			add(hostile(n), step)
			n++
			require.LessOrEqual(t, a.Bytes(), int64(limit))
			require.Zero(t, problems.Count())
		}
	}
	assert.Positive(t, problems.TextsCut())
	require.Len(t, a.Standing(), 1)
	assert.Equal(t, model.Some(int64(2)), a.Standing()[0].Rank)
	labels := 0
	for _, m := range measures.All() {
		for p := range m.Points() {
			for _, a := range p.Attrs() {
				labels++
				require.LessOrEqual(t, len(a.Text()), cut.MaxLabel, m.Name)
			}
		}
	}
	assert.Greater(t, labels, 100, "the hostile job was measured, too")
}

// A finding names an operation as it is cut; its spans bear the whole name.
func TestAnnotate_LongName_IsFound(t *testing.T) {
	name := strings.Repeat("k", 5000)
	rank := model.Rank{JobID: "job", Incarnation: "i", Rank: 2}
	td := otelmap.OpsToTraces(&rank, stragglertest.Ops(1, 10))
	span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	span.SetName(name)
	Annotate(td, nil, []model.Finding{{
		Kind: model.FindingStraggler, Incarnation: "i", ID: "f", Class: model.ClassCompute, Rank: model.Some(int64(2)), Op: cut.Bytes(name, cut.MaxName),
	}}, false)
	class, ok := span.Attributes().Get(semconv.StragglerClass)
	require.True(t, ok)
	assert.Equal(t, model.ClassCompute, class.Str())
	assert.Equal(t, name, span.Name(), "what passes through is not rewritten")
}
