// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// Every counter that the README's table of bad input names is there.
func TestBadInputIsCounted(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	docs, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(readme), "\n## Bad input\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile(`(?m)^\|.*\|$`).FindAllString(section, -1)
	require.Greater(t, len(rows), 10)
	counter := regexp.MustCompile("`([a-z_]+)`")
	for _, row := range rows[2:] {
		cells := strings.Split(row, "|")
		names := counter.FindAllStringSubmatch(cells[3], -1)
		require.NotEmpty(t, names, row)
		for _, name := range names {
			assert.Contains(t, string(docs), "### otelcol_connector_straggler_"+name[1]+"\n")
		}
	}
}

// Each fault is counted where the README says, and hides no straggler beside it.
func TestBadInputCostsNothingElse(t *testing.T) {
	const day = 24 * 3600 * 1000 * ms
	span := func(change func(ptrace.ResourceSpans, ptrace.Span)) func(int64) ptrace.Traces {
		return func(n int64) ptrace.Traces {
			td := step(n, true)[0]
			rs := td.ResourceSpans().At(0)
			rs.ScopeSpans().At(0).Spans().RemoveIf(func(s ptrace.Span) bool { return s.Name() != "gemm" })
			s := rs.ScopeSpans().At(0).Spans().At(0)
			s.Attributes().PutStr("lockstep.op.key", "bad")
			change(rs, s)
			return td
		}
	}
	for name, tc := range map[string]struct {
		bad  func(step int64) ptrace.Traces
		want string // counter
	}{
		"no rank":                 {span(func(rs ptrace.ResourceSpans, _ ptrace.Span) { rs.Resource().Attributes().Remove("lockstep.rank") }), "unread"},
		"rank below 0":            {span(func(rs ptrace.ResourceSpans, _ ptrace.Span) { rs.Resource().Attributes().PutInt("lockstep.rank", -7) }), "unread"},
		"no step":                 {span(func(_ ptrace.ResourceSpans, s ptrace.Span) { s.Attributes().Remove("lockstep.step") }), "ops_without_step"},
		"an end before the start": {span(func(_ ptrace.ResourceSpans, s ptrace.Span) { s.SetEndTimestamp(s.StartTimestamp() - 1) }), "unread"},
		"a day and more": {span(func(_ ptrace.ResourceSpans, s ptrace.Span) {
			s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(2*day))
		}), "ops_unsound"},
		"again": {func(n int64) ptrace.Traces {
			td := step(n, true)[0]
			td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().RemoveIf(func(s ptrace.Span) bool { return s.Name() == "step" })
			return td
		}, "duplicate_ops"},
		"a rank twice": {func(n int64) ptrace.Traces {
			rank := model.Rank{JobName: "train", JobID: "job", Incarnation: "inc", Rank: 0, HostName: "elsewhere", PID: model.Some(int64(7)), WorldSize: model.Some(int64(world))}
			td := step(n, true)[0]
			first := otelmap.SpanToOp(td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0), &rank, nil)
			return otelmap.OpsToTraces(&rank, []model.Op{first})
		}, "ops_of_twins"},
		"many keys": {func(n int64) ptrace.Traces {
			rank := model.Rank{JobName: "train", JobID: "job", Incarnation: "inc", Rank: 0, WorldSize: model.Some(int64(world))}
			var ops []model.Op
			for i := range 1<<16 + 1 - int(n)*1<<16 {
				ops = append(ops, model.Op{Kind: model.KindHost, Name: fmt.Sprintf("op%d-%d", n, i), Step: model.Some(n), ThreadID: model.Some(int64(9)), Start: 1, End: 1})
			}
			return otelmap.OpsToTraces(&rank, ops)
		}, "places_overflowed"},
	} {
		t.Run(name, func(t *testing.T) {
			telemetry := componenttest.NewTelemetry()
			r := &rig{}
			set := connectortest.NewNopSettings(metadata.Type)
			set.TelemetrySettings = telemetry.NewTelemetrySettings()
			r.attach(t, set, newDefaultConfig(), &r.logs)
			for n := range int64(6) {
				good := step(n, true)
				r.consume(t, good[0])
				r.consume(t, tc.bad(n))
				for _, td := range good[1:] {
					r.consume(t, td)
				}
			}
			m, err := telemetry.GetMetric("otelcol_connector_straggler_" + tc.want)
			require.NoError(t, err)
			assert.Positive(t, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value, tc.want)
			r.stop(t)
			require.NoError(t, telemetry.Shutdown(context.Background()))
			found := r.findings()
			require.NotEmpty(t, found)
			assert.Equal(t, model.Some(int64(slow)), found[0].Rank)
		})
	}
}
