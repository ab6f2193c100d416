// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"context"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/connector/findingsconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// memory is a storage extension that keeps everything in memory.
type memory struct {
	component.StartFunc
	component.ShutdownFunc
	storage.Client

	takes time.Duration // of Set

	mu   sync.Mutex
	data map[string][]byte
	sets int
}

func (m *memory) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return m, nil
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data[key], nil
}

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	time.Sleep(m.takes)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sets++
	m.data[key] = value
	return nil
}

func (*memory) Close(context.Context) error { return nil }

func (m *memory) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sets
}

// copied is what a process that starts after a kill finds.
func (m *memory) copied() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memory{data: maps.Clone(m.data)}
}

type hostWith struct {
	component.Host
	extensions map[component.ID]component.Component
}

func (h hostWith) GetExtensions() map[component.ID]component.Component { return h.extensions }

// newKeepingRig is a connector that keeps its findings.
func newKeepingRig(t *testing.T, m *memory, logs consumer.Logs) *rig {
	t.Helper()
	r, id, cfg := &rig{}, component.MustNewID("file_storage"), newDefaultConfig()
	cfg.StorageID = &id
	if logs == nil {
		logs = &r.logs
	}
	r.attach(t, NewFactory(), connectortest.NewNopSettings(metadata.Type), cfg, logs)
	for _, f := range r.faces {
		require.NoError(t, f.Start(t.Context(), hostWith{componenttest.NewNopHost(), map[component.ID]component.Component{id: m}}))
	}
	return r
}

// Of findings that are opened at once, a kill soon after repeats none, however long a save takes.
func TestStorage_KilledSoonAfterABurst_RepeatsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{data: map[string][]byte{}, takes: 10 * time.Millisecond}
		r := newKeepingRig(t, m, nil)
		burst := []model.Finding{slowRank("a", 1, 1), slowRank("b", 1, 1), slowRank("c", 1, 1)}
		for _, f := range burst {
			r.consume(t, f)
		}
		require.Len(t, r.findings(), len(burst))
		again := newKeepingRig(t, m.copied(), nil)
		r.stop(t)
		for _, f := range burst {
			again.consume(t, f)
		}
		require.Len(t, again.findings(), len(burst), "each once more, since it may not have been delivered")
		for _, f := range again.findings() {
			assert.Equal(t, []any{int64(1), model.StatusUpdated}, []any{f.Revision, f.Status}, "none is new")
		}
		again.stop(t)
	})
}

func TestStorage_StoppedWhileASaveIsDue_SavesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{data: map[string][]byte{}, takes: 10 * time.Millisecond}
		r := newKeepingRig(t, m, nil)
		r.consume(t, slowRank("a", 1, 1))
		r.consume(t, slowRank("b", 1, 1))
		r.stop(t)
		sets := m.count()
		time.Sleep(time.Second)
		assert.Equal(t, sets, m.count(), "nothing is saved after the end")
	})
}

func TestStorage_IsSlow_HoldsUpNoRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{data: map[string][]byte{}, takes: time.Second}
		r := newKeepingRig(t, m, nil)
		r.consume(t, slowRank("first", 1, 1))
		time.Sleep(time.Minute)
		sets := m.count()
		go func() {
			_ = r.faces[0].ConsumeLogs(context.Background(), otelmap.FindingsToLogs([]model.Finding{slowRank("first", 2, 1)}))
		}()
		synctest.Wait() // the storage holds it
		began := time.Now()
		for n := range int64(5) {
			r.consume(t, slowRank("first", 3+n, 1))
		}
		assert.Zero(t, time.Since(began))
		require.Len(t, r.findings(), 7)
		time.Sleep(time.Minute)
		assert.LessOrEqual(t, m.count(), sets+3, "at most a twentieth of the time")
		assert.Contains(t, string(m.copied().data["findings"]), `"revision":7`, "the last is kept later")
		r.stop(t)
	})
}

// What a kill finds kept was delivered before; that a finding is new is kept under a key of its own.
func TestStorage_ConsumerIsSlow_KeepsRevisionsBehindTheDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{data: map[string][]byte{}}
		var before, opened []string
		slow, err := consumer.NewLogs(func(context.Context, plog.Logs) error {
			time.Sleep(100 * time.Millisecond)
			before = append(before, string(m.copied().data["findings"]))
			opened = append(opened, string(m.copied().data[keyOpened]))
			return nil
		})
		require.NoError(t, err)
		r := newKeepingRig(t, m, slow)
		r.consume(t, slowRank("first", 1, 1))
		time.Sleep(newDefaultConfig().CloseAfter + newDefaultConfig().FlushInterval) // it is closed
		r.stop(t)
		require.Len(t, before, 2)
		assert.NotContains(t, before[0], "first")
		assert.NotContains(t, before[1], "closed")
		assert.Contains(t, opened[0], "first")
		assert.Contains(t, string(m.data["findings"]), "closed")
	})
}

// A kill between the save and the delivery loses no end that came in the same request, and repeats nothing as new.
func TestStorage_KilledBeforeDelivery_LosesNoEnd(t *testing.T) {
	m := &memory{data: map[string][]byte{}}
	var killed *memory
	stuck, err := consumer.NewLogs(func(context.Context, plog.Logs) error {
		if killed == nil {
			killed = m.copied()
		}
		return nil
	})
	require.NoError(t, err)
	before := newKeepingRig(t, m, nil)
	before.consume(t, slowRank("a", 1, 1))
	before.stop(t)
	ended, short := slowRank("a", 2, 1), slowRank("short", 1, 2)
	ended.Status, short.Status = model.StatusClosed, model.StatusClosed
	request := []model.Finding{ended, slowRank("b", 1, 3), short}
	first := newKeepingRig(t, m, stuck)
	first.consume(t, request...)
	again := newKeepingRig(t, killed, nil)
	first.stop(t)
	again.consume(t, request...)
	again.stop(t)
	got := map[string][]string{}
	for _, f := range again.findings() {
		got[f.ID] = append(got[f.ID], f.Status)
	}
	assert.Contains(t, got["a"], model.StatusClosed)
	assert.Contains(t, got["short"], model.StatusClosed)
	assert.NotContains(t, got["b"], model.StatusOpen)
	assert.Contains(t, got["b"], model.StatusUpdated)
}
