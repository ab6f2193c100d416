// SPDX-License-Identifier: Apache-2.0

package stragglerprocessor

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// What the engine counts is in the component's own telemetry, each in a counter of its own.
func TestAllThatTheEngineCountsIsInTheTelemetry(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	c, err := newAnnotating(newDefaultConfig(), telemetry.NewTelemetrySettings(), consumertest.NewNop())
	require.NoError(t, err)
	var stats straggler.Stats
	fields := reflect.ValueOf(&stats).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetInt(int64(i + 1))
	}
	c.seen.Store(&snapshot{engine: stats})

	var all metricdata.ResourceMetrics
	require.NoError(t, telemetry.Reader.Collect(t.Context(), &all))
	named := map[int64][]string{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
				require.Len(t, sum.DataPoints, 1)
				named[sum.DataPoints[0].Value] = append(named[sum.DataPoints[0].Value], m.Name)
			}
		}
	}
	for i := range fields.NumField() {
		if fields.Type().Field(i).Name == "StepsIncomplete" {
			continue // only the connector has numbers of spans
		}
		assert.Len(t, named[int64(i+1)], 1, fields.Type().Field(i).Name)
	}
}

// A span of others and an attribute of another type than ours are counted, as is a text that was cut.
func TestAnnotating_UnreadableInput_IsCounted(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	c, err := newAnnotating(newDefaultConfig(), telemetry.NewTelemetrySettings(), consumertest.NewNop())
	require.NoError(t, err)
	td := ofRank(0, 0)
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	spans.At(0).Attributes().PutStr("lockstep.stream.id", "seven")
	spans.At(1).SetName(strings.Repeat("x", 100_000))
	spans.AppendEmpty().SetName("GET /")
	require.NoError(t, c.ConsumeTraces(context.Background(), td))
	for name, want := range map[string]int64{"otelcol_processor_straggler_unread": 2, "otelcol_processor_straggler_texts_cut": 1} {
		m, err := telemetry.GetMetric(name)
		require.NoError(t, err)
		assert.Equal(t, want, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value, name)
	}
}
