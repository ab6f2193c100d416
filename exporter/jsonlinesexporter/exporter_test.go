// SPDX-License-Identifier: Apache-2.0

package jsonlinesexporter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/lockstep-otel/lockstep/exporter/jsonlinesexporter/internal/metadata"
	"github.com/lockstep-otel/lockstep/exporter/jsonlinesexporter/internal/metadatatest"
)

// startAll starts the exporters of all signals, which share a file.
func startAll(t *testing.T, set exporter.Settings, path string) (exporter.Traces, exporter.Metrics, exporter.Logs) {
	t.Helper()
	f, cfg := NewFactory(), &Config{Path: path}
	traces, err := f.CreateTraces(t.Context(), set, cfg)
	require.NoError(t, err)
	metrics, err := f.CreateMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	logs, err := f.CreateLogs(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, traces.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, metrics.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
	return traces, metrics, logs
}

// One file has the requests of all signals, each a line of OTLP JSON, and counts a line that was cut.
func TestExporter_AllSignals_OneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"resourceLo`), 0o600))
	telemetry := componenttest.NewTelemetry()
	set := metadatatest.NewSettings(telemetry)
	traces, metrics, logs := startAll(t, set, path)

	td, md, ld := ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("s")
	md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetName("m")
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetEventName("l\n")
	require.NoError(t, traces.ConsumeTraces(t.Context(), td))
	require.NoError(t, traces.Shutdown(t.Context()))
	require.NoError(t, metrics.ConsumeMetrics(t.Context(), md), "the file is open until the last shutdown")
	require.NoError(t, metrics.Shutdown(t.Context()))
	require.NoError(t, logs.ConsumeLogs(t.Context(), ld))
	require.NoError(t, logs.Shutdown(t.Context()))

	lines := strings.Split(content(t, path), "\n")
	require.Len(t, lines, 5)
	assert.Equal(t, `{"resourceLo`, lines[0])
	gotTraces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(lines[1]))
	require.NoError(t, err)
	assert.Equal(t, td, gotTraces)
	gotMetrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics([]byte(lines[2]))
	require.NoError(t, err)
	assert.Equal(t, md, gotMetrics)
	gotLogs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs([]byte(lines[3]))
	require.NoError(t, err)
	assert.Equal(t, ld, gotLogs)
	assert.Empty(t, lines[4])
	metadatatest.AssertEqualExporterJSONLinesCutLines(t, telemetry, []metricdata.DataPoint[int64]{
		{Value: 1, Attributes: attribute.NewSet(attribute.String("reason", processEnded))},
	}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, telemetry.Shutdown(t.Context()))
}

func TestExporter_FileCannotBeOpened_DoesNotStart(t *testing.T) {
	f, cfg := NewFactory(), &Config{Path: filepath.Join(t.TempDir(), "missing", "f")}
	logs, err := f.CreateLogs(t.Context(), exportertest.NewNopSettings(metadata.Type), cfg)
	require.NoError(t, err)
	assert.ErrorContains(t, logs.Start(t.Context(), componenttest.NewNopHost()), "open file: ")
	assert.NoError(t, logs.Shutdown(t.Context()))
}
