// SPDX-License-Identifier: Apache-2.0

package sequenceextension

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/extension/sequenceextension/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/ledger"
	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// memory is a storage extension that keeps everything in memory.
type memory struct {
	component.StartFunc
	component.ShutdownFunc
	storage.Client

	mu     sync.Mutex
	data   map[string][]byte
	fail   error
	closed int
}

// fails has what follows fail; nil: no longer.
func (m *memory) fails(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

func (m *memory) values() map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.data)
}

func (m *memory) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return m, nil
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data[key], m.fail
}

func (m *memory) Batch(_ context.Context, ops ...*storage.Operation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	for _, op := range ops {
		if m.data[op.Key] = op.Value; op.Type == storage.Delete {
			delete(m.data, op.Key)
		}
	}
	return nil
}

func (m *memory) Close(context.Context) error {
	m.closed++
	return nil
}

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

var memoryID = component.MustNewID("memory")

// life is one life of the extension.
type life struct {
	ledger.Service
	extension extension.Extension
	telemetry *componenttest.Telemetry
}

func begin(t *testing.T, kept *memory) (*life, error) {
	t.Helper()
	l := &life{telemetry: componenttest.NewTelemetry()}
	cfg := newDefaultConfig()
	cfg.StorageID = &memoryID
	id := component.NewID(metadata.Type)
	ext, err := NewFactory().Create(t.Context(), extension.Settings{ID: id, TelemetrySettings: l.telemetry.NewTelemetrySettings()}, cfg)
	require.NoError(t, err)
	l.extension = ext
	t.Cleanup(func() { require.NoError(t, l.telemetry.Shutdown(context.Background())) })
	if err := ext.Start(t.Context(), host{memoryID: kept}); err != nil {
		return nil, err
	}
	l.Service, err = ledger.Find(host{id: ext}, id)
	return l, err
}

// outcomes returns the spans by outcome, those of which there are none left out.
func (l *life) outcomes(t *testing.T) map[string]int64 {
	t.Helper()
	m, err := l.telemetry.GetMetric("otelcol_extension_sequence_spans")
	require.NoError(t, err)
	out := map[string]int64{}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		if of, _ := p.Attributes.Value("outcome"); p.Value > 0 {
			out[of.AsString()] = p.Value
		}
	}
	return out
}

func some(step, first, last int64) []sequence.Arrival {
	return []sequence.Arrival{{Source: "a", Steps: map[sequence.Step]sequence.Ranges{{Job: "job", Incarnation: "inc", Step: step}: {{First: first, Last: last}}}}}
}

func (l *life) arrive(all []sequence.Arrival) {
	l.Arriving(all)
	l.Arrived(all)
}

func TestExtension_Killed_CountsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &memory{data: map[string][]byte{}}
		first, err := begin(t, kept)
		require.NoError(t, err)
		leave := first.Join()
		first.arrive(some(1, 0, 9))
		first.Begin(sequence.Step{Job: "job", Incarnation: "inc", Step: 1})
		first.End([]sequence.Step{{Job: "job", Incarnation: "inc", Step: 1}})
		first.arrive(some(2, 10, 14))
		time.Sleep(2 * tickInterval)
		assert.Equal(t, map[string]int64{"concluded": 10}, first.outcomes(t))
		killed := &memory{data: kept.values()}
		leave()
		require.NoError(t, first.extension.Shutdown(t.Context()))
		assert.Equal(t, 1, kept.closed)

		second, err := begin(t, killed)
		require.NoError(t, err)
		second.Join()
		time.Sleep(2 * time.Minute)
		assert.Equal(t, map[string]int64{"concluded": 10, "lost": 5}, second.outcomes(t))
		assert.Len(t, second.Losses(), 1)
		require.NoError(t, second.extension.Shutdown(t.Context()))
	})
}

func TestExtension_NoAnalysis_SpansAreStepless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := begin(t, &memory{data: map[string][]byte{}})
		require.NoError(t, err)
		l.arrive(some(1, 0, 9))
		time.Sleep(2 * tickInterval)
		assert.Equal(t, map[string]int64{"stepless": 10}, l.outcomes(t))
		require.NoError(t, l.extension.Shutdown(t.Context()))
	})
}

func TestExtension_StorageFails_IsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &memory{data: map[string][]byte{}}
		l, err := begin(t, kept)
		require.NoError(t, err)
		kept.fails(errors.New("no space"))
		l.arrive(some(1, 0, 9))
		kept.fails(nil)
		time.Sleep(2 * tickInterval)
		assert.Contains(t, kept.values(), "stream/a", "it is stored later")
		m, err := l.telemetry.GetMetric("otelcol_extension_sequence_storage_failures")
		require.NoError(t, err)
		assert.EqualValues(t, 1, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
		require.NoError(t, l.extension.Shutdown(t.Context()))
	})
}

func TestExtension_Start_FaultsOfTheStorage(t *testing.T) {
	_, err := begin(t, &memory{data: map[string][]byte{}, fail: errors.New("broken")})
	require.ErrorContains(t, err, "read storage: broken")
	l, err := begin(t, &memory{data: map[string][]byte{"state": []byte("{")}})
	require.NoError(t, err, "a damaged value costs what it had")
	require.NoError(t, l.extension.Shutdown(t.Context()))
}
