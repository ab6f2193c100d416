// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadatatest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// memory is a storage extension that keeps everything in memory. The connector holds its lock while it
// calls it.
type memory struct {
	component.StartFunc
	component.ShutdownFunc
	storage.Client

	data   map[string][]byte
	closed int
	fail   error // of Set
	unread error // of Get
}

func (m *memory) GetClient(_ context.Context, kind component.Kind, id component.ID, _ string) (storage.Client, error) {
	if kind != component.KindConnector || id.Type() != metadata.Type {
		return nil, errors.New("another's")
	}
	return m, nil
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) { return m.data[key], m.unread }

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	if m.fail == nil {
		m.data[key] = value
	}
	return m.fail
}

func (m *memory) Close(context.Context) error { m.closed++; return nil }

// keeping is a host with a storage extension.
type keeping struct {
	component.Host

	storage *memory
}

var storageID = component.MustNewID("memory")

func (h keeping) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{storageID: h.storage}
}

func keepingHost(m *memory) component.Host { return keeping{componenttest.NewNopHost(), m} }

func keepingConfig() *Config {
	cfg := newDefaultConfig()
	cfg.StorageID, cfg.Analysis.CleanSteps, cfg.Analysis.Window = &storageID, 8, 8
	return cfg
}

func newRigWith(t *testing.T, m *memory) *rig {
	t.Helper()
	r := &rig{}
	r.attach(t, connectortest.NewNopSettings(metadata.Type), keepingConfig(), &r.logs)
	r.start(t, keepingHost(m))
	return r
}

func TestConnector_Restart_FindingGoesOnAndCloses(t *testing.T) {
	m := &memory{data: map[string][]byte{}}
	r := newRigWith(t, m)
	r.run(t, 10)
	r.stop(t)
	assert.Equal(t, 1, m.closed, "one storage for all instances")
	before := r.findings()
	require.NotEmpty(t, before)
	last := before[len(before)-1]
	require.Equal(t, model.Some(int64(slow)), last.Rank)

	again := newRigWith(t, m)
	for n := int64(10); n < 20; n++ {
		for _, td := range step(n, true) {
			again.consume(t, td)
		}
	}
	for n := int64(20); n < 50; n++ {
		for _, td := range stepOf(n, true, -1) {
			again.consume(t, td)
		}
	}
	again.stop(t)
	after := again.findings()
	require.NotEmpty(t, after)
	for _, f := range after {
		assert.Equal(t, last.ID, f.ID)
		assert.NotEqual(t, model.StatusOpen, f.Status, "it is not opened again")
		assert.Greater(t, f.Revision, last.Revision)
		assert.Equal(t, last.StepFirst, f.StepFirst)
	}
	assert.Equal(t, model.StatusClosed, after[len(after)-1].Status)
}

// What a consumer has received must be known after a crash.
func TestConnector_Findings_AreSavedBeforeTheyAreSent(t *testing.T) {
	m := &memory{data: map[string][]byte{}}
	kept := -1
	logs, err := consumer.NewLogs(func(context.Context, plog.Logs) error {
		if kept < 0 {
			kept = len(m.data["findings"])
		}
		return nil
	})
	require.NoError(t, err)
	r := &rig{}
	r.attach(t, connectortest.NewNopSettings(metadata.Type), keepingConfig(), logs)
	r.start(t, keepingHost(m))
	r.run(t, 10)
	r.stop(t)
	assert.Positive(t, kept)
}

func TestConnector_StorageFails_IsCountedAndTriedAgain(t *testing.T) {
	m := &memory{data: map[string][]byte{"findings": []byte("{")}, fail: errors.New("disk full")}
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	r := &rig{}
	r.attach(t, set, keepingConfig(), &r.logs)
	r.start(t, keepingHost(m))
	metadatatest.AssertEqualConnectorStragglerStorageFailures(t, telemetry, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
	r.run(t, 10)
	require.NotEmpty(t, r.findings(), "it costs nothing else")
	m.fail = nil
	r.stop(t)
	assert.Contains(t, string(m.data["findings"]), r.findings()[0].ID)
}

// A storage that cannot be read may hold findings, which the next save would replace.
func TestConnector_StorageCannotBeRead_DoesNotStart(t *testing.T) {
	m := &memory{data: map[string][]byte{"findings": []byte("kept")}, unread: errors.New("disk error")}
	r := &rig{}
	r.attach(t, connectortest.NewNopSettings(metadata.Type), keepingConfig(), consumertest.NewNop())
	require.EqualError(t, r.faces[0].Start(t.Context(), keepingHost(m)), "read storage: disk error")
	r.stop(t)
	assert.Equal(t, "kept", string(m.data["findings"]))
}

func TestConnector_StorageThatIsNone_DoesNotStart(t *testing.T) {
	r := &rig{}
	r.attach(t, connectortest.NewNopSettings(metadata.Type), keepingConfig(), consumertest.NewNop())
	require.ErrorContains(t, r.faces[0].Start(t.Context(), componenttest.NewNopHost()), `find storage: got no extension "memory"`)
	r.stop(t)
}
