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

func TestReporting_OtherConfigs_AreLeftAlone(t *testing.T) {
	for name, of := range map[string]map[string]any{
		"empty":      {},
		"own report": {"exporters": map[string]any{"report/mine": nil}, "service": map[string]any{"pipelines": map[string]any{"logs": map[string]any{"exporters": []any{"report/mine"}}}}},
		"no logs":    {"exporters": map[string]any{"debug": nil}, "service": map[string]any{"pipelines": map[string]any{"traces": map[string]any{"exporters": []any{"debug"}}}}},
		"bad":        {"exporters": []any{"debug"}, "service": map[string]any{"pipelines": map[string]any{"logs": "x", "/": nil}}},
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

// A configuration that has the exporter prints findings with it, and the end does not repeat them.
func TestRun_ConfigWithReport_PrintsFindingsOnce(t *testing.T) {
	t.Setenv("LOCKSTEP_TRACES", testdata.Recording(t, "slow"))
	path := filepath.Join(t.TempDir(), "findings.txt")
	status, stdout, stderr := call("run", replayConfig(t), fmt.Sprintf(
		"yaml:{exporters: {report: {path: %q}}, service: {pipelines: {logs: {exporters: [report]}}}}", path))
	assert.Equal(t, exitNothing, status, stderr)
	assert.Contains(t, stdout, "operations of 8 ranks.\n")
	assert.NotContains(t, stdout, "inding")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(text), "Finding 1, "))
	assert.Contains(t, words(string(text)), "rank 5 on vm makes the others wait (class host")
}
