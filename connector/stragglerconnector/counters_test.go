// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// What the engine counts is in the component's own telemetry, each in a counter of its own.
func TestAllThatTheEngineCountsIsInTheTelemetry(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	c := newSteps(newDefaultConfig(), zap.NewNop())
	builder, err := metadata.NewTelemetryBuilder(telemetry.NewTelemetrySettings())
	require.NoError(t, err)
	t.Cleanup(builder.Shutdown)
	require.NoError(t, c.observe(builder))
	var stats straggler.Stats
	fields := reflect.ValueOf(&stats).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetInt(int64(i + 1))
	}
	c.seen.Store(&seen{engine: stats})

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
		assert.Len(t, named[int64(i+1)], 1, fields.Type().Field(i).Name)
	}
}
