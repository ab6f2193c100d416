// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// Findings are read beside the exporters of logs, and nowhere else.
func TestReporting_ConfigWithoutReport_AddsOneToPipelinesOfLogs(t *testing.T) {
	seen := newTap()
	conf := confmap.NewFromStringMap(map[string]any{
		"exporters": map[string]any{"debug": nil, "otlp_grpc/x": map[string]any{"endpoint": "e"}},
		"service": map[string]any{"pipelines": map[string]any{
			"logs":     map[string]any{"receivers": []any{"findings"}, "exporters": []any{"debug", "otlp_grpc/x"}},
			"logs/raw": map[string]any{"exporters": []any{"findings"}},
			"traces":   map[string]any{"exporters": []any{"debug"}},
		}},
	})
	require.NoError(t, reporting{seen}.Convert(t.Context(), conf))
	assert.Equal(t, "report/at_end", seen.shown.String())
	assert.Equal(t, map[string]any{
		"exporters": map[string]any{"debug": nil, "otlp_grpc/x": map[string]any{"endpoint": "e"}, "report/at_end": map[string]any{}},
		"service": map[string]any{"pipelines": map[string]any{
			"logs":     map[string]any{"receivers": []any{"findings"}, "exporters": []any{"debug", "otlp_grpc/x", "report/at_end"}},
			"logs/raw": map[string]any{"exporters": []any{"findings"}},
			"traces":   map[string]any{"exporters": []any{"debug"}},
		}},
	}, conf.ToStringMap())
}

// logsTo is a configuration with exporters, and with pipelines of logs to some of them.
func logsTo(exporters map[string]any, pipelines ...[]any) map[string]any {
	to := map[string]any{}
	for i, exporters := range pipelines {
		to[fmt.Sprintf("logs/%d", i)] = map[string]any{"exporters": exporters}
	}
	return map[string]any{"exporters": exporters, "service": map[string]any{"pipelines": to}}
}

func path(p string) map[string]any { return map[string]any{"path": p} }

// A `report` that no pipeline of logs uses, or that writes to a file, prints nothing on the terminal.
func TestReporting_NoReportPrintsOnTheTerminal_AddsOne(t *testing.T) {
	const added = "report/at_end"
	for name, c := range map[string]struct {
		of   map[string]any
		id   string
		want []any
	}{
		"in no pipeline":         {logsTo(map[string]any{"report": nil, "debug": nil}, []any{"debug"}), added, []any{"debug", added}},
		"in a pipeline, no conf": {logsTo(map[string]any{"debug": nil}, []any{"debug", "report"}), added, []any{"debug", "report", added}},
		"to a file":              {logsTo(map[string]any{"report": path("f.txt")}, []any{"report"}), added, []any{"report", added}},
		"to files":               {logsTo(map[string]any{"report/a": path("a"), "report/b": path("b")}, []any{"report/a", "report/b"}), added, []any{"report/a", "report/b", added}},
		"the other is unused":    {logsTo(map[string]any{"report/a": path("a"), "report/b": nil}, []any{"report/a"}), added, []any{"report/a", added}},
		"the id is taken":        {logsTo(map[string]any{added: path("a")}, []any{added}), "report/at_end_2", []any{added, "report/at_end_2"}},
	} {
		t.Run(name, func(t *testing.T) {
			seen, conf := newTap(), confmap.NewFromStringMap(c.of)
			require.NoError(t, reporting{seen}.Convert(t.Context(), conf))
			assert.Equal(t, c.id, seen.shown.String())
			assert.Equal(t, c.want, conf.Get("service::pipelines::logs/0::exporters"))
			assert.Equal(t, map[string]any{}, conf.Get("exporters::"+c.id))
		})
	}
}

func TestReporting_OtherConfigs_AreLeftAlone(t *testing.T) {
	for name, of := range map[string]map[string]any{
		"empty":         {},
		"own report":    logsTo(map[string]any{"report/mine": nil}, []any{"report/mine"}),
		"to stdout":     logsTo(map[string]any{"report": path("stdout")}, []any{"report"}),
		"to stderr":     logsTo(map[string]any{"report": path("stderr")}, []any{"report"}),
		"file and both": logsTo(map[string]any{"report": path("f.txt"), "report/b": map[string]any{"format": "line"}}, []any{"report", "report/b"}),
		"two pipelines": logsTo(map[string]any{"report": path("f.txt"), "report/b": nil}, []any{"report"}, []any{"report/b"}),
		"no logs":       {"exporters": map[string]any{"debug": nil}, "service": map[string]any{"pipelines": map[string]any{"traces": map[string]any{"exporters": []any{"debug"}}}}},
		"bad":           {"exporters": []any{"debug"}, "service": map[string]any{"pipelines": map[string]any{"logs": "x", "/": nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			seen, conf := newTap(), confmap.NewFromStringMap(of)
			before := conf.ToStringMap()
			require.NoError(t, reporting{seen}.Convert(t.Context(), conf))
			assert.Equal(t, before, conf.ToStringMap())
			assert.Equal(t, component.ID{}, seen.shown)
		})
	}
}

// With a `report` that writes to a file, the file and the end of the run both have the finding.
func TestRun_ReportToAFile_PrintsFindingsAtTheEnd(t *testing.T) {
	t.Setenv("LOCKSTEP_TRACES", testdata.Recording(t, "slow"))
	path := filepath.Join(t.TempDir(), "findings.txt")
	status, stdout, stderr := call("run", replayConfig(t), fmt.Sprintf(
		"yaml:{exporters: {report: {path: %q}}, service: {pipelines: {logs: {exporters: [report]}}}}", path))
	assert.Equal(t, exitNothing, status, stderr)
	assert.Contains(t, words(stdout), "Finding 1 of 1: rank 5")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(text), "Finding 1, "))
	assert.Contains(t, words(string(text)), "rank 5 on vm makes the others wait (class host")
}

// A configuration whose `report` prints on the terminal has no findings at the end.
func TestRun_ReportToStdout_EndDoesNotRepeatFindings(t *testing.T) {
	t.Setenv("LOCKSTEP_TRACES", testdata.Recording(t, "slow"))
	status, stdout, stderr := call("run", replayConfig(t), "yaml:{exporters: {report: }, service: {pipelines: {logs: {exporters: [report]}}}}")
	assert.Equal(t, exitNothing, status, stderr)
	assert.Contains(t, stdout, "operations of 8 ranks.\n")
	assert.NotContains(t, stdout, "inding", "the exporter writes to the stdout of the process")
}
