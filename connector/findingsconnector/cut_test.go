// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/lockstep-otel/lockstep/connector/findingsconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/connector/findingsconnector/internal/metadatatest"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

func TestFindingsThatAreTooLong_AreCutAndCounted(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	set := connectortest.NewNopSettings(metadata.Type)
	r := &rig{}
	r.attach(t, NewFactory(), connector.Settings{ID: set.ID, TelemetrySettings: tel.NewTelemetrySettings(), BuildInfo: set.BuildInfo}, newDefaultConfig(), &r.logs)
	for _, f := range r.faces {
		require.NoError(t, f.Start(t.Context(), componenttest.NewNopHost()))
	}
	received := otelmap.FindingsToLogs([]model.Finding{slowRank("short", 1, 1), slowRank("long", 1, 1), slowRank("many", 1, 1)})
	attributes := func(i int) pcommon.Map {
		return received.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(i).Attributes()
	}
	attributes(1).PutStr(semconv.FindingOp, strings.Repeat("x", 2000))
	list := attributes(2).PutEmptySlice(semconv.FindingRanks)
	for n := range int64(100_000) {
		list.AppendEmpty().SetInt(n)
	}
	require.NoError(t, r.faces[0].ConsumeLogs(t.Context(), received))
	metadatatest.AssertEqualConnectorFindingsCut(t, tel, []metricdata.DataPoint[int64]{{Value: 2}}, metricdatatest.IgnoreTimestamp())
	r.stop(t)

	for _, f := range r.findings() {
		if f.ID == "many" {
			assert.Len(t, f.Ranks, semconv.MaxFindingRanks)
			assert.Equal(t, model.Some(int64(100_000)), f.RanksCount)
		}
	}
}
