// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/connector/findingsconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// A logs pipeline that takes nothing holds up neither the findings nor the other outputs, and not
// the end of the collector.
func TestConsume_LogsNeverReturn_SpansGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, telemetry, set := &rig{}, componenttest.NewTelemetry(), connectortest.NewNopSettings(metadata.Type)
		defer func() { require.NoError(t, telemetry.Shutdown(context.Background())) }()
		set.TelemetrySettings = telemetry.NewTelemetrySettings()
		r.attach(t, NewFactory(), set, newDefaultConfig(), delivertest.NewStuck(t))
		for _, f := range r.faces {
			require.NoError(t, f.Start(t.Context(), componenttest.NewNopHost()))
		}
		began := time.Now()
		const findings = 20
		for i := range findings {
			f := slowRank(strconv.Itoa(i), 1, int64(i))
			f.Status = model.StatusClosed
			r.consume(t, f)
		}
		assert.LessOrEqual(t, time.Since(began), deliver.Patience)
		assert.Len(t, r.spanNames(), findings)
		assert.NotEmpty(t, r.metrics.AllMetrics())

		began = time.Now()
		require.ErrorIs(t, r.faces[0].Shutdown(context.Background()), context.DeadlineExceeded)
		lost, err := telemetry.GetMetric("otelcol_connector_findings_lost")
		require.NoError(t, err)
		assert.EqualValues(t, findings, lost.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
		for _, f := range r.faces {
			require.NoError(t, f.Shutdown(context.Background()))
		}
		assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit)
	})
}
