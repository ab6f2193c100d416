// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// A logs pipeline that takes nothing holds up neither the spans nor the other outputs, and not
// the end of the collector.
func TestConsume_LogsNeverReturn_SpansAndStoriesGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, telemetry, set := &rig{}, componenttest.NewTelemetry(), connectortest.NewNopSettings(metadata.Type)
		defer func() { require.NoError(t, telemetry.Shutdown(context.Background())) }()
		set.TelemetrySettings = telemetry.NewTelemetrySettings()
		r.attach(t, set, newDefaultConfig(), delivertest.NewStuck(t))
		for _, f := range r.faces {
			require.NoError(t, f.Start(t.Context(), componenttest.NewNopHost()))
		}
		began := time.Now()
		const steps = 20
		r.run(t, steps)
		assert.LessOrEqual(t, time.Since(began), deliver.Patience)
		assert.Len(t, r.traces.AllTraces(), steps)
		time.Sleep(newDefaultConfig().FlushInterval)
		synctest.Wait()
		assert.Len(t, r.metrics.AllMetrics(), 2, "with the first step and with the interval")

		began = time.Now()
		require.ErrorIs(t, r.faces[0].Shutdown(context.Background()), context.DeadlineExceeded)
		lost, err := telemetry.GetMetric("otelcol_connector_straggler_findings_lost")
		require.NoError(t, err)
		assert.Positive(t, lost.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
		for _, f := range r.faces {
			require.NoError(t, f.Shutdown(context.Background()))
		}
		assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit)
	})
}
