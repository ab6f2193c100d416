// SPDX-License-Identifier: Apache-2.0

package jsonlinesexporter

import (
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/lockstep-otel/lockstep/exporter/jsonlinesexporter/internal/metadatatest"
)

// nest makes v a value of so many levels: lists and maps by turns, around "end".
func nest(v pcommon.Value, levels int) {
	for i := range levels {
		if i%2 == 0 {
			v = v.SetEmptySlice().AppendEmpty()
		} else {
			v = v.SetEmptyMap().PutEmpty("k")
		}
	}
	v.SetStr("end")
}

// nestMaps makes v a value of so many levels of maps, which take the most levels of JSON.
func nestMaps(v pcommon.Value, levels int) {
	for range levels {
		v = v.SetEmptyMap().PutEmpty("k")
	}
	v.SetStr("end")
}

// depth returns how deep the objects and arrays of a JSON text are nested.
func depth(t *testing.T, text string) (deepest int) {
	t.Helper()
	level := 0
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return deepest
		}
		require.NoError(t, err)
		switch token {
		case json.Delim('{'), json.Delim('['):
			level++
		case json.Delim('}'), json.Delim(']'):
			level--
		}
		deepest = max(deepest, level)
	}
}

// levels returns how deep a value is nested, and its innermost value.
func levels(v pcommon.Value) (n int, innermost string) {
	for ; ; n++ {
		switch v.Type() {
		case pcommon.ValueTypeSlice:
			v = v.Slice().At(0)
		case pcommon.ValueTypeMap:
			v, _ = v.Map().Get("k")
		default:
			return n, v.Str()
		}
	}
}

func TestCut_ValuesOfSeveralDepths_AreBounded(t *testing.T) {
	for _, tt := range []struct {
		levels, want int
		innermost    string
		cut          int64
	}{{0, 0, "end", 0}, {16, 16, "end", 0}, {17, 16, cutMark, 1}, {10_000, 16, cutMark, 1}} {
		v := pcommon.NewValueEmpty()
		nest(v, tt.levels)
		assert.Equal(t, tt.cut, cutValue(v, 0))
		n, innermost := levels(v)
		assert.Equal(t, tt.want, n)
		assert.Equal(t, tt.innermost, innermost)
	}
}

// Every line is one that readers of JSON take, wherever the nested value is. Data of others stays as it is.
func TestExporter_NestedValues_AreCutAndCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.jsonl")
	telemetry := componenttest.NewTelemetry()
	set := metadatatest.NewSettings(telemetry)
	traces, metrics, logs := startAll(t, set, path)
	put := func(m pcommon.Map) { nestMaps(m.PutEmpty("a"), 65) }

	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	put(rs.Resource().Attributes())
	ss := rs.ScopeSpans().AppendEmpty()
	put(ss.Scope().Attributes())
	s := ss.Spans().AppendEmpty()
	put(s.Attributes())
	put(s.Events().AppendEmpty().Attributes())
	put(s.Links().AppendEmpty().Attributes())
	require.NoError(t, traces.ConsumeTraces(t.Context(), td))

	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	put(rm.Resource().Attributes())
	sm := rm.ScopeMetrics().AppendEmpty()
	put(sm.Scope().Attributes())
	of := func() pmetric.Metric {
		m := sm.Metrics().AppendEmpty()
		put(m.Metadata())
		return m
	}
	g := of().SetEmptyGauge().DataPoints().AppendEmpty()
	put(g.Attributes())
	put(g.Exemplars().AppendEmpty().FilteredAttributes())
	put(of().SetEmptySum().DataPoints().AppendEmpty().Attributes())
	put(of().SetEmptyHistogram().DataPoints().AppendEmpty().Attributes())
	put(of().SetEmptyExponentialHistogram().DataPoints().AppendEmpty().Attributes())
	put(of().SetEmptySummary().DataPoints().AppendEmpty().Attributes())
	require.NoError(t, metrics.ConsumeMetrics(t.Context(), md))

	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	put(rl.Resource().Attributes())
	sl := rl.ScopeLogs().AppendEmpty()
	put(sl.Scope().Attributes())
	lr := sl.LogRecords().AppendEmpty()
	put(lr.Attributes())
	nestMaps(lr.Body(), 65)
	require.NoError(t, logs.ConsumeLogs(t.Context(), ld))
	n, _ := levels(lr.Body())
	assert.Equal(t, 65, n, "the data is not of the exporter")

	require.NoError(t, traces.Shutdown(t.Context()))
	require.NoError(t, metrics.Shutdown(t.Context()))
	require.NoError(t, logs.Shutdown(t.Context()))
	text := content(t, path)
	assert.NotContains(t, text, `"end"`)
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		assert.LessOrEqual(t, depth(t, line), 100, "line %d: readers of JSON take 100 levels and more", i+1)
	}
	assert.Equal(t, 5+13+4, strings.Count(text, cutMark))
	metadatatest.AssertEqualExporterJSONLinesCutValues(t, telemetry, []metricdata.DataPoint[int64]{{Value: 5 + 13 + 4}}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	require.NoError(t, telemetry.Shutdown(t.Context()))
}
