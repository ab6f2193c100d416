// SPDX-License-Identifier: Apache-2.0

package timelineextension

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/extension/timelineextension/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// A daemon that is not there costs its edge, is counted each time, and told once.
func TestDaemonsThatAreNotThere(t *testing.T) {
	tel := componenttest.NewTelemetry()
	set := extensiontest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	core, logs := observer.New(zap.WarnLevel)
	set.Logger = zap.New(core)
	cfg := newDefaultConfig()
	cfg.NetAddr.Endpoint, cfg.HostID = "", "node-1"
	nowhere := filepath.Join(t.TempDir(), "socket")
	cfg.State = StateConfig{
		Chrony: &ChronyConfig{Endpoint: nowhere, Interval: time.Millisecond},
		PTP:    &PTPConfig{Endpoint: nowhere, Interval: time.Millisecond},
	}
	e, err := NewFactory().Create(context.Background(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(context.Background(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool {
		m, err := tel.GetMetric("otelcol_extension_timeline_state_failures")
		if err != nil {
			return false
		}
		points := m.Data.(metricdata.Sum[int64]).DataPoints
		return len(points) == 2 && points[0].Value > 2 && points[1].Value > 2
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, e.Shutdown(context.Background()))
	assert.Equal(t, 2, logs.Len())
	require.NoError(t, tel.Shutdown(context.Background()))
}

func TestStateBecomesAnEdge(t *testing.T) {
	h := newTestHolder(t, nil)
	edge := model.ClockEdge{
		Src: "host:a/b/realtime", Dst: "utc:chrony/0A000001", At: 5, Lower: -10, Upper: 10, Sigma: 3, Samples: 1,
		Source: model.EdgeChrony, Stamps: model.StampUser,
	}
	answers := []func() (model.ClockEdge, bool, error){
		func() (model.ClockEdge, bool, error) { return edge, true, nil },
		func() (model.ClockEdge, bool, error) { return model.ClockEdge{}, false, nil },
		func() (model.ClockEdge, bool, error) { return model.ClockEdge{}, false, errors.New("no") },
	}
	r := &reader{daemon: model.EdgeChrony}
	for _, a := range answers {
		r.read = func(context.Context) (model.ClockEdge, bool, error) { return a() }
		h.readState(r)
	}
	assert.True(t, r.failed)
	assert.Equal(t, int64(1), h.Timeline().Counters().Edges.Added)
	require.NoError(t, h.Shutdown(context.Background()))
}
