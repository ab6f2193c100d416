// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/receiver/torchtracereceiver/internal/metadatatest"
)

// patience is how long a test waits for what takes milliseconds.
const patience = 30 * time.Second

// statusHost remembers what components report of themselves.
type statusHost struct {
	mu     sync.Mutex
	events []*componentstatus.Event
}

func (h *statusHost) GetExtensions() map[component.ID]component.Component { return nil }

func (h *statusHost) Report(e *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

func (h *statusHost) statuses() []componentstatus.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []componentstatus.Status
	for _, e := range h.events {
		out = append(out, e.Status())
	}
	return out
}

func (h *statusHost) lastError() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.events) == 0 || h.events[len(h.events)-1].Err() == nil {
		return ""
	}
	return h.events[len(h.events)-1].Err().Error()
}

// bench is a receiver with everything around it that a test looks at.
type bench struct {
	*traceReceiver
	host *statusHost
	tel  *componenttest.Telemetry
	logs *observer.ObservedLogs
}

func config(include ...string) *Config {
	cfg := newDefaultConfig()
	cfg.Include = include
	cfg.RetryOnFailure.InitialInterval = time.Millisecond
	cfg.RetryOnFailure.MaxInterval = time.Millisecond
	return cfg
}

// build makes a receiver that has not been started.
func build(t *testing.T, cfg *Config, next consumer.Traces) *bench {
	t.Helper()
	require.NoError(t, cfg.Validate())
	tel := componenttest.NewTelemetry()
	set := metadatatest.NewSettings(tel)
	core, logs := observer.New(zapcore.DebugLevel)
	set.Logger = zap.New(core)
	r, err := newReceiver(set, cfg, next)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, r.Shutdown(context.Background()))
		assert.NoError(t, tel.Shutdown(context.Background()))
	})
	return &bench{traceReceiver: r, host: &statusHost{}, tel: tel, logs: logs}
}

func start(t *testing.T, cfg *Config, next consumer.Traces) *bench {
	t.Helper()
	b := build(t, cfg, next)
	require.NoError(t, b.Start(t.Context(), b.host))
	return b
}

// finish waits until a one-shot receiver has ended.
func (b *bench) finish(t *testing.T) {
	t.Helper()
	select {
	case <-b.finished:
	case <-time.After(patience):
		t.Fatal("the receiver does not end")
	}
}

// counter returns a counter of the component, over all its attributes, or of
// one reason.
func (b *bench) counter(t *testing.T, name string, reason ...string) int64 {
	t.Helper()
	m, err := b.tel.GetMetric("otelcol_receiver_torch_trace_" + name)
	if err != nil {
		return 0 // never added to
	}
	var sum int64
	for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints {
		value, _ := dp.Attributes.Value(attribute.Key("reason"))
		if len(reason) == 0 || value.AsString() == reason[0] {
			sum += dp.Value
		}
	}
	return sum
}

func sumOf(t *testing.T, m metricdata.Metrics) int64 {
	t.Helper()
	var sum int64
	for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints {
		sum += dp.Value
	}
	return sum
}

// said reports whether a log line holds all the texts.
func (b *bench) said(texts ...string) bool {
	for _, entry := range b.logs.All() {
		line, err := zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "msg"}).EncodeEntry(entry.Entry, entry.Context)
		if err != nil {
			continue
		}
		missing := func(text string) bool { return !strings.Contains(line.String(), text) }
		if !slices.ContainsFunc(texts, missing) {
			return true
		}
	}
	return false
}

// received returns what a sink got, by rank.
func received(t *testing.T, sink *consumertest.TracesSink) map[int64]model.RankOps {
	t.Helper()
	byRank := map[int64]model.RankOps{}
	for _, td := range sink.AllTraces() {
		ranks, problems := otelmap.TracesToOps(td)
		require.Empty(t, problems)
		require.Len(t, ranks, 1, "a batch is of one rank")
		ro := byRank[ranks[0].Rank.Rank]
		ro.Rank = ranks[0].Rank
		ro.Ops = append(ro.Ops, ranks[0].Ops...)
		byRank[ranks[0].Rank.Rank] = ro
	}
	return byRank
}

func countOps(ops []model.Op, match func(*model.Op) bool) int {
	n := 0
	for i := range ops {
		if match(&ops[i]) {
			n++
		}
	}
	return n
}

func isCollective(op *model.Op) bool { return op.Kind == model.KindCollective }

func isStep(op *model.Op) bool { return op.Kind == model.KindStep }

// copyFiles copies files into a new folder named "job", under new names.
func copyFiles(t *testing.T, from map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "job")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, source := range from {
		data, err := os.ReadFile(source)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	return dir
}
