// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/lockstep-otel/lockstep/connector/epochconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
)

// memory is a storage extension that keeps everything in memory.
type memory struct {
	component.StartFunc
	component.ShutdownFunc
	storage.Client

	data   map[string][]byte
	sets   int
	closed int

	mu   sync.Mutex
	fail error // of Set

	unread error // of Get
}

func (m *memory) GetClient(_ context.Context, kind component.Kind, id component.ID, _ string) (storage.Client, error) {
	if kind != component.KindConnector || id.Type().String() != "epoch" {
		return nil, errors.New("another's")
	}
	return m, nil
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	return m.data[key], m.unread
}

func (m *memory) failing(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.sets++
	m.data[key] = value
	return nil
}

func (m *memory) Close(context.Context) error { m.closed++; return nil }

type keeping struct {
	component.Host

	storage component.Component
}

// savesKey is where what is known of saves is kept.
const savesKey = "saves"

var storageID = component.MustNewID("memory")

func (h keeping) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{storageID: h.storage}
}

func TestASaveIsLostWhileTheCollectorIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{data: map[string][]byte{}}
		r := newRigWith(t, nil, &storageID, keeping{componenttest.NewNopHost(), m})
		r.tell(t, 100, 100, 100)
		r.tell(t, 200, 200, 200)
		r.pass(t, 20*time.Minute)
		require.Empty(t, r.said(t))
		assert.Equal(t, 1, m.sets, "what does not change is not written again")
		r.stop(t)
		assert.Equal(t, 1, m.closed, "one storage for all instances")

		again := newRigWith(t, nil, &storageID, keeping{componenttest.NewNopHost(), m})
		again.revision = r.revision
		again.tell(t, 100, 100, 100)
		again.tell(t, 200, -1, -1)
		again.pass(t, 30*time.Minute)
		said := again.said(t)
		require.Len(t, said, 1)
		assert.Contains(t, said[0], "open: job job: epoch (revoked): save 200")
		again.stop(t)
	})
}

func TestStorageThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{data: map[string][]byte{savesKey: []byte("{")}, fail: errors.New("disk full")}
		r := newRigWith(t, nil, &storageID, keeping{componenttest.NewNopHost(), m})
		r.tell(t, 100, 100, 100)
		r.pass(t, time.Minute)
		assert.Positive(t, r.counter(t, "storage_failures"))
		assert.InDelta(t, 100, r.gauges()["lockstep.epoch.frontier"], 0, "it costs nothing else")
		m.failing(nil)
		r.pass(t, time.Minute)
		assert.Equal(t, 1, m.sets, "it is tried again")
		r.stop(t)
	})
}

func TestStorageThatIsNone(t *testing.T) {
	cfg := newDefaultConfig()
	cfg.StorageID = &storageID
	h, err := NewFactory().CreateLogsToLogs(t.Context(), connectortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	assert.ErrorContains(t, h.Start(t.Context(), componenttest.NewNopHost()), `find storage: got no extension "memory"`)
	require.NoError(t, h.Shutdown(t.Context()))
}

// A storage that cannot be read may hold a state, which the next save would replace.
func TestHub_StorageCannotBeRead_DoesNotStart(t *testing.T) {
	cfg := newDefaultConfig()
	cfg.StorageID = &storageID
	h, err := NewFactory().CreateLogsToLogs(t.Context(), connectortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	m := &memory{data: map[string][]byte{savesKey: []byte("kept")}, unread: errors.New("disk error")}
	require.EqualError(t, h.Start(t.Context(), keeping{componenttest.NewNopHost(), m}), "read storage: disk error")
	require.NoError(t, h.Shutdown(t.Context()))
	assert.Equal(t, "kept", string(m.data[savesKey]))
	assert.Equal(t, 1, m.closed)
}

// A stored value that cannot be read costs the state from before the restart, and nothing else.
func TestHub_StoredValueThatCannotBeRead_StartsAnewAndIsCounted(t *testing.T) {
	frontier := `{"version":1,"frontiers":[{"job":"job","generation":"g","save":100}]}`
	for name, data := range map[string][]byte{
		"cut":              []byte(frontier[:len(frontier)/2]),
		"a byte flipped":   append([]byte{frontier[0] ^ 0x40}, frontier[1:]...),
		"another version":  []byte(`{"version":99}`),
		"huge":             make([]byte, hub.MaxValueBytes+1),
		"an absurd number": []byte(`{"version":1,"frontiers":[{"job":"job","save":1e300}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{data: map[string][]byte{savesKey: data}}
				r := newRigWith(t, nil, &storageID, keeping{componenttest.NewNopHost(), m})
				assert.EqualValues(t, 1, r.counter(t, "storage_failures"))
				r.tell(t, 100, 100, 100)
				r.pass(t, time.Minute)
				assert.InDelta(t, 100, r.gauges()["lockstep.epoch.frontier"], 0)
				r.stop(t)
			})
		})
	}
}
