// SPDX-License-Identifier: Apache-2.0

package timelineextension

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/extension/timelineextension/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// memory is a storage extension that keeps everything in memory.
type memory struct {
	component.StartFunc
	component.ShutdownFunc
	mu   sync.Mutex
	data map[string][]byte
	fail error // of Set

	unread error // of Get
}

func (m *memory) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return m, nil
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data[key], m.unread
}

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	if m.data != nil {
		m.data[key] = value
	}
	return nil
}

func (*memory) Delete(context.Context, string) error               { return nil }
func (*memory) Batch(context.Context, ...*storage.Operation) error { return nil }
func (*memory) Close(context.Context) error                        { return nil }

type hostWith struct {
	component.Host
	extensions map[component.ID]component.Component
}

// reporting is a host that keeps the latest status.
type reporting struct {
	hostWith

	mu   sync.Mutex
	last *componentstatus.Event
}

func (r *reporting) Report(e *componentstatus.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = e
}

func (h hostWith) GetExtensions() map[component.ID]component.Component { return h.extensions }

var storageID = component.MustNewID("memory")

func newTestHolder(t *testing.T, change func(*Config)) *holder {
	t.Helper()
	cfg := newDefaultConfig()
	cfg.NetAddr.Endpoint = ""
	cfg.SolveInterval = time.Millisecond
	if change != nil {
		change(cfg)
	}
	e, err := NewFactory().Create(context.Background(), extensiontest.NewNopSettings(metadata.Type), cfg)
	require.NoError(t, err)
	return e.(*holder)
}

// pair joins the two clocks of a host.
func pair(host string) model.ClockEdge {
	now := time.Now().UnixNano()
	return model.ClockEdge{
		Src: "host:" + host + "/b/raw", Dst: "host:" + host + "/b/realtime", At: 5e9, Span: 2e9,
		Lower: now - 5e9 - 100, Upper: now - 5e9 + 100, Offset: now - 5e9, Sigma: 20, DriftBound: 1e-8,
		Samples: 100, Source: model.EdgePair, Stamps: model.StampUser,
	}
}

func TestSolvesOnItsOwnAndSurvivesARestart(t *testing.T) {
	store := &memory{data: map[string][]byte{}}
	host := hostWith{componenttest.NewNopHost(), map[component.ID]component.Component{storageID: store}}
	stored := func(c *Config) { c.Storage = &storageID }
	h := newTestHolder(t, stored)
	assert.Equal(t, []component.ID{storageID}, h.Dependencies())
	require.NoError(t, h.Start(context.Background(), host))
	var provider timeline.Provider = h
	require.NoError(t, provider.Timeline().AddEdge(pair("a")))
	var placed int64
	require.Eventually(t, func() bool {
		p, ok := h.Timeline().Place("host:a/b/raw", 5e9)
		placed = p.Time
		return ok
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, h.Shutdown(context.Background()))
	require.NoError(t, h.Shutdown(context.Background()), "a second shutdown does nothing")

	again := newTestHolder(t, stored)
	require.NoError(t, again.Start(context.Background(), host))
	p, ok := again.Timeline().Place("host:a/b/raw", 5e9)
	assert.True(t, ok)
	assert.Equal(t, placed, p.Time)
	require.NoError(t, again.Shutdown(context.Background()))
}

// A state that cannot be read costs that state, and is counted.
func TestHolder_StoredValueThatCannotBeRead_StartsAnewAndIsCounted(t *testing.T) {
	for name, store := range map[string]*memory{
		"cut":             {data: map[string][]byte{stateKey: []byte("{")}},
		"no text":         {data: map[string][]byte{stateKey: {0xff, 0x00, 0x80}}},
		"another version": {data: map[string][]byte{stateKey: []byte(`{"version":99}`)}},
		"huge":            {data: map[string][]byte{stateKey: make([]byte, hub.MaxValueBytes+1)}},
	} {
		t.Run(name, func(t *testing.T) {
			tel := componenttest.NewTelemetry()
			set := extensiontest.NewNopSettings(metadata.Type)
			set.TelemetrySettings = tel.NewTelemetrySettings()
			cfg := newDefaultConfig()
			cfg.NetAddr.Endpoint, cfg.Storage = "", &storageID
			e, err := NewFactory().Create(t.Context(), set, cfg)
			require.NoError(t, err)
			require.NoError(t, e.Start(t.Context(), hostWith{componenttest.NewNopHost(), map[component.ID]component.Component{storageID: store}}))
			m, err := tel.GetMetric("otelcol_extension_timeline_restore_failures")
			require.NoError(t, err)
			assert.Equal(t, int64(1), m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
			assert.Empty(t, e.(timeline.Provider).Timeline().State().Clocks)
			require.NoError(t, e.Shutdown(context.Background()))
			require.NoError(t, tel.Shutdown(context.Background()))
		})
	}
}

// A storage that cannot be read may hold a state, which the next save would replace.
func TestHolder_StorageCannotBeRead_DoesNotStart(t *testing.T) {
	h := newTestHolder(t, func(c *Config) { c.Storage = &storageID })
	store := &memory{unread: errors.New("disk error")}
	host := hostWith{componenttest.NewNopHost(), map[component.ID]component.Component{storageID: store}}
	require.EqualError(t, h.Start(context.Background(), host), "read storage: disk error")
	require.NoError(t, h.Shutdown(context.Background()))
	assert.Nil(t, store.data)
}

func TestStorageMustBeOne(t *testing.T) {
	h := newTestHolder(t, func(c *Config) { c.Storage = &storageID })
	require.ErrorContains(t, h.Start(context.Background(), componenttest.NewNopHost()), `got no extension "memory"`)
	require.NoError(t, h.Shutdown(context.Background()))
	h = newTestHolder(t, func(c *Config) { c.Storage = &storageID })
	host := hostWith{componenttest.NewNopHost(), map[component.ID]component.Component{storageID: h}}
	require.ErrorContains(t, h.Start(context.Background(), host), "which stores nothing")
	require.NoError(t, h.Shutdown(context.Background()))
}

func TestSaveFailuresAreCounted(t *testing.T) {
	tel := componenttest.NewTelemetry()
	set := extensiontest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	cfg := newDefaultConfig()
	cfg.NetAddr.Endpoint, cfg.Storage, cfg.SaveInterval = "", &storageID, time.Millisecond
	e, err := NewFactory().Create(context.Background(), set, cfg)
	require.NoError(t, err)
	store := &memory{data: map[string][]byte{}, fail: errors.New("disk full")}
	host := &reporting{hostWith: hostWith{componenttest.NewNopHost(), map[component.ID]component.Component{storageID: store}}}
	require.NoError(t, e.Start(context.Background(), host))
	require.Eventually(t, func() bool {
		m, err := tel.GetMetric("otelcol_extension_timeline_save_failures")
		return err == nil && m.Data.(metricdata.Sum[int64]).DataPoints[0].Value > 1
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, e.Shutdown(context.Background()))
	require.NoError(t, tel.Shutdown(context.Background()))
	require.NotNil(t, host.last, "health shows it")
	require.ErrorContains(t, host.last.Err(), "write storage: disk full")
}

func get(t *testing.T, h http.Handler, method, path string) (*http.Response, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, http.NoBody))
	res := w.Result()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, string(body)
}

func TestServesJSON(t *testing.T) {
	tl := timeline.New(timeline.Options{})
	handler := newHandler(tl)
	_, body := get(t, handler, http.MethodGet, "/timeline")
	assert.JSONEq(t, `{"timelines":[],"clocks":[],"undecided":[],"edges":{"taken":0,"late":0,"refused":0,"forgotten":0}}`, body)
	require.NoError(t, tl.AddEdge(pair("a")))
	bad := pair("a")
	bad.Dst = ""
	require.Error(t, tl.AddEdge(bad))
	tl.Advance(time.Now())
	res, body := get(t, handler, http.MethodGet, "/timeline")
	assert.Equal(t, "application/json", res.Header.Get("Content-Type"))
	var v view
	require.NoError(t, json.Unmarshal([]byte(body), &v))
	require.Len(t, v.Timelines, 1)
	assert.Equal(t, "timeline:host:a/b/raw", v.Timelines[0].Name)
	assert.True(t, v.Timelines[0].Unix)
	require.Len(t, v.Clocks, 2)
	assert.Equal(t, "a", v.Clocks[0].Host)
	assert.NotNil(t, v.Clocks[1].BoundNano)
	assert.Equal(t, edgesView{Taken: 1, Refused: 1}, v.Edges)

	res, _ = get(t, handler, http.MethodPost, "/timeline")
	assert.Equal(t, http.StatusMethodNotAllowed, res.StatusCode)
	res, _ = get(t, handler, http.MethodGet, "/other")
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
}

// Clock ids come from the network.
func TestPageEscapes(t *testing.T) {
	tl := timeline.New(timeline.Options{})
	require.NoError(t, tl.AddEdge(pair("<script>alert(1)</script>")))
	tl.Advance(time.Now())
	res, body := get(t, newHandler(tl), http.MethodGet, "/")
	assert.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
	assert.Contains(t, res.Header.Get("Content-Security-Policy"), "default-src 'none'")
	assert.NotContains(t, body, "<script>")
	assert.Contains(t, body, "&lt;script&gt;")
	assert.Contains(t, body, "(counts from elsewhere)")
	assert.NotContains(t, body, "No clock is known yet")
	_, empty := get(t, newHandler(timeline.New(timeline.Options{})), http.MethodGet, "/")
	assert.Contains(t, empty, "No clock is known yet")
}

func TestPageShowsWhatIsWrongFirstAndIsBounded(t *testing.T) {
	v := view{}
	for range maxRows + 5 {
		v.Clocks = append(v.Clocks, clockView{Clock: "right"})
	}
	v.Clocks = append(v.Clocks, clockView{Clock: "wrong", Untrusted: true, Against: []string{"right"}})
	p := newPage(v)
	assert.Equal(t, "wrong", p.Rows[0].Clock)
	assert.Len(t, p.Rows, maxRows)
	assert.Equal(t, 6, p.LeftOut)
	var b strings.Builder
	require.NoError(t, pageTemplate.Execute(&b, p))
	assert.Contains(t, b.String(), "6 more clocks are in the JSON")
	assert.Contains(t, b.String(), "against right")
}

// Bounds grow, and who looks at the page looks now.
func TestPageShowsBoundsOfNow(t *testing.T) {
	now := time.Now()
	tl := timeline.New(timeline.Options{Now: func() time.Time { return now }})
	require.NoError(t, tl.AddEdge(pair("a")))
	tl.Advance(now)
	realtime := func() clockView { return newView(tl.State()).Clocks[1] }
	before := realtime()
	require.NotNil(t, before.NowNano)
	assert.False(t, before.Stale)
	now = now.Add(2 * time.Minute)
	after := realtime()
	assert.Equal(t, before.BoundNano, after.BoundNano)
	assert.GreaterOrEqual(t, *after.NowNano-*before.NowNano, int64(2*time.Minute)/2000, "500 ppm")
	assert.True(t, after.Stale)
	assert.Equal(t, "± "+time.Duration(*after.NowNano).String(), after.Bound())
	_, body := get(t, newHandler(tl), http.MethodGet, "/")
	assert.Contains(t, body, "stale: nothing was heard")
}

func TestCountersAreMetrics(t *testing.T) {
	tel := componenttest.NewTelemetry()
	set := extensiontest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	cfg := newDefaultConfig()
	cfg.NetAddr.Endpoint = ""
	e, err := NewFactory().Create(context.Background(), set, cfg)
	require.NoError(t, err)
	tl := e.(timeline.Provider).Timeline()
	tl.Alias("localhost", "a")
	tl.Alias("localhost", "b")
	require.NoError(t, tl.AddEdge(model.ClockEdge{
		Src: "host:a/1/raw", Dst: "host:a/1/realtime", At: 1e9, Span: 1e8, Lower: 1e18, Upper: 1e18 + 100, DriftBound: 1e-6,
		Source: model.EdgePair, Stamps: model.StampUser, Prompt: true,
	}), "neither is known yet")
	for name, want := range map[string]int64{
		"pairs_unused": 1, "edges_forgotten": 0, "edges_former": 0, "refused": 0,
		"aliases_ambiguous": 1, "hosts_ambiguous": 0, "pairs": 0, "edges_overflowed": 0, "solutions_cut_short": 0, "solutions_unsettled": 0,
	} {
		m, err := tel.GetMetric("otelcol_extension_timeline_" + name)
		require.NoError(t, err, name)
		assert.Equal(t, want, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value, name)
	}
	m, err := tel.GetMetric("otelcol_extension_timeline_clocks_doubted")
	require.NoError(t, err)
	assert.Zero(t, m.Data.(metricdata.Gauge[int64]).DataPoints[0].Value)
	require.NoError(t, e.Shutdown(context.Background()))
	require.NoError(t, tel.Shutdown(context.Background()))
}

func TestServesOverTheNetwork(t *testing.T) {
	h := newTestHolder(t, func(c *Config) { c.NetAddr.Endpoint = "localhost:0" })
	require.NoError(t, h.Start(context.Background(), componenttest.NewNopHost()))
	require.NotNil(t, h.server)
	require.NoError(t, h.Shutdown(context.Background()))

	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	h = newTestHolder(t, func(c *Config) { c.NetAddr.Endpoint = taken.Listener.Addr().String() })
	require.ErrorContains(t, h.Start(context.Background(), componenttest.NewNopHost()), "listen on 127.0.0.1")
	require.NoError(t, h.Shutdown(context.Background()))
}

// A receiver reads what other gateways know, and none says whether this one solves: then no gateway of this
// configuration does.
func TestSolve_NoReceiverSaysWhetherItLeads_IsReported(t *testing.T) {
	for asked, warned := range map[bool]int{true: 0, false: 1} {
		synctest.Test(t, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			set := extensiontest.NewNopSettings(metadata.Type)
			set.Logger = zap.New(core)
			cfg := newDefaultConfig()
			cfg.Shared = true
			h, err := newHolder(cfg, set)
			require.NoError(t, err)
			h.timeline.CaughtUp()
			if asked {
				h.timeline.Lead(false)
			}
			for range 3 {
				time.Sleep(askedWithin)
				h.solve(time.Now())
			}
			assert.Equal(t, warned, logs.FilterMessageSnippet("Nothing says whether this collector solves").Len())
		})
	}
}
