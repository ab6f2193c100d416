// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/receiver/ncclinspectorreceiver/internal/metadatatest"
)

// patience is how long a test waits for what takes milliseconds.
const patience = 30 * time.Second

// host has a storage extension, where disk is not nil.
type host struct {
	disk     *disk
	statuses *statuses
}

// statuses are what a receiver reports of itself; nil keeps none.
type statuses struct {
	mu  sync.Mutex
	all []string
}

func (h host) Report(e *componentstatus.Event) {
	if h.statuses == nil {
		return
	}
	h.statuses.mu.Lock()
	defer h.statuses.mu.Unlock()
	h.statuses.all = append(h.statuses.all, fmt.Sprint(e.Err()))
}

var storageID = component.MustNewID("file_storage")

func (h host) GetExtensions() map[component.ID]component.Component {
	if h.disk == nil {
		return nil
	}
	return map[component.ID]component.Component{storageID: h.disk}
}

// disk is a storage extension that outlives receivers.
type disk struct {
	mu   sync.Mutex
	data map[string][]byte
	fail bool
}

func (*disk) Start(context.Context, component.Host) error { return nil }
func (*disk) Shutdown(context.Context) error              { return nil }
func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}
func (*disk) Close(context.Context) error { return nil }

func (d *disk) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := d.Batch(ctx, op)
	return op.Value, err
}

func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}

func (d *disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}

func (d *disk) Batch(_ context.Context, ops ...*storage.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail {
		return errors.New("the disk is full")
	}
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			op.Value = d.data[op.Key]
		case storage.Set:
			if d.data == nil {
				d.data = map[string][]byte{}
			}
			d.data[op.Key] = op.Value
		case storage.Delete:
			delete(d.data, op.Key)
		}
	}
	return nil
}

// bench is a receiver with everything around it that a test looks at.
type bench struct {
	t       *testing.T
	rd      *reader
	spans   *consumertest.TracesSink
	metrics *consumertest.MetricsSink
	tel     *componenttest.Telemetry
	logs    *observer.ObservedLogs
	faces   []*inspectorReceiver
}

func config(include ...string) *Config {
	cfg := newDefaultConfig()
	cfg.Include = include
	cfg.PollInterval = 2 * time.Millisecond
	cfg.WorldWait, cfg.StepWait = 0, 0
	cfg.RetryOnFailure.InitialInterval = time.Millisecond
	cfg.RetryOnFailure.MaxInterval = time.Millisecond
	cfg.JobID = "j"
	return cfg
}

// build makes a receiver of both signals that has not been started. traces may be nil.
func build(t *testing.T, cfg *Config, traces consumer.Traces) *bench {
	t.Helper()
	require.NoError(t, cfg.Validate())
	b := &bench{t: t, tel: componenttest.NewTelemetry(), spans: &consumertest.TracesSink{}, metrics: &consumertest.MetricsSink{}}
	set := metadatatest.NewSettings(b.tel)
	core, logs := observer.New(zapcore.DebugLevel)
	// As a collector's log is sampled that is not told otherwise.
	set.Logger, b.logs = zap.New(zapcore.NewSamplerWithOptions(core, 10*time.Second, 10, 100)), logs
	if traces == nil {
		traces = b.spans
	}
	tr, err := createTraces(t.Context(), set, cfg, traces)
	require.NoError(t, err)
	mr, err := createMetrics(t.Context(), set, cfg, b.metrics)
	require.NoError(t, err)
	b.faces = []*inspectorReceiver{tr.(*inspectorReceiver), mr.(*inspectorReceiver)}
	b.rd = b.faces[0].handle.Value
	t.Cleanup(func() {
		b.stop()
		assert.NoError(t, b.tel.Shutdown(context.Background()))
	})
	return b
}

func start(t *testing.T, cfg *Config, h host) *bench {
	t.Helper()
	b := build(t, cfg, nil)
	b.begin(h)
	return b
}

func (b *bench) begin(h host) {
	for _, f := range b.faces {
		require.NoError(b.t, f.Start(b.t.Context(), h))
	}
}

func (b *bench) stop() {
	for _, f := range b.faces {
		assert.NoError(b.t, f.Shutdown(context.Background()))
	}
	b.faces = nil
}

// counter returns a counter of the component, over all its attributes, or of
// one reason.
func (b *bench) counter(name string, reason ...string) (sum int64) {
	b.t.Helper()
	m, err := b.tel.GetMetric("otelcol_receiver_nccl_inspector_" + name)
	if err != nil {
		return 0
	}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		v, _ := p.Attributes.Value(attribute.Key("reason"))
		if len(reason) == 0 || v.AsString() == reason[0] {
			sum += p.Value
		}
	}
	return sum
}

// await waits until as many lines were read.
func (b *bench) await(lines int64) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.counter("lines_read") >= lines }, patience, time.Millisecond, "of %d lines", lines)
}

// ops returns the operations that were received.
func (b *bench) ops() (out []model.Op) {
	for _, td := range b.spans.AllTraces() {
		ranks, problems := otelmap.TracesToOps(td)
		assert.Empty(b.t, problems)
		for _, r := range ranks {
			out = append(out, r.Ops...)
		}
	}
	return out
}

// seqs returns how often each collective was counted by the latest metrics, and how
// often its span came, by number.
func (b *bench) seqs() map[int64]int {
	out := map[int64]int{}
	for _, op := range b.ops() {
		if op.Kind == model.KindCollective {
			out[op.Collective.Seq.V]++
		}
	}
	return out
}

// latest returns the metrics that were sent last, by name.
func (b *bench) latest() map[string]pmetric.Metric {
	out := map[string]pmetric.Metric{}
	all := b.metrics.AllMetrics()
	if len(all) == 0 {
		return out
	}
	for _, m := range all[len(all)-1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		out[m.Name()] = m
	}
	return out
}

// counted is how many durations were recorded.
func (b *bench) counted() (n int64) {
	m, ok := b.latest()["lockstep.collective.duration"]
	if !ok {
		return 0
	}
	for _, p := range m.ExponentialHistogram().DataPoints().All() {
		n += int64(p.Count())
	}
	return n
}

// lost is the latest of lockstep.events.lost for a reason.
func (b *bench) lost(reason string) (n int64) {
	m, ok := b.latest()["lockstep.events.lost"]
	if !ok {
		return 0
	}
	for _, p := range m.Sum().DataPoints().All() {
		if v, _ := p.Attributes().Get("lockstep.reason"); v.Str() == reason {
			n += p.IntValue()
		}
	}
	return n
}

const epochMicros = int64(1790000000000000)

// header is that of one rank of four, dumped at some ms.
func header(version string, rank int, dumped int64) string {
	return fmt.Sprintf(`"header":{"id":"0xabc","rank":%d,"n_ranks":4,"nnodes":1},"metadata":{"inspector_output_format_version":%q,`+
		`"dump_timestamp_us":%d,"hostname":"n","pid":%d}`, rank, version, epochMicros+1000*dumped, 100+rank)
}

// body is an all_reduce of 1 ms that was enqueued at seq times 10 ms.
func body(seq int64) string {
	at := epochMicros + 10_000*seq
	return fmt.Sprintf(`"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":1000000,"coll_exec_time_us":1000,"coll_timing_source":"kernel_gpu",`+
		`"coll_algobw_gbs":1.0,"coll_busbw_gbs":1.5,"event_trace_ts":{"coll_start_ts":%d,"coll_stop_ts":%d,`+
		`"kernel_events":[{"channel_id":0,"kernel_start_ts":%d,"kernel_stop_ts":%d,"kernel_record_ts":%d}]}}`, seq, at, at+5, at+10, at+1000, at+1000)
}

func line(rank int, seq int64) string {
	return "{" + header("v4.0", rank, 10*seq+5) + "," + body(seq) + "}\n"
}

func lines(rank int, from, to int64) string {
	var b strings.Builder
	for seq := from; seq < to; seq++ {
		b.WriteString(line(rank, seq))
	}
	return b.String()
}

// log is a file as Inspector's process holds it: open, and written at its own place.
type log struct {
	t    *testing.T
	path string
	f    *os.File
}

func newLog(t *testing.T, path string) *log {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return &log{t, path, f}
}

func (l *log) write(text string) {
	l.t.Helper()
	_, err := l.f.WriteString(text)
	require.NoError(l.t, err)
}

func logPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "n-pid100.log")
}

// once asserts that each of the collectives came exactly once.
func (b *bench) once(from, to int64) {
	b.t.Helper()
	want := map[int64]int{}
	for seq := from; seq < to; seq++ {
		want[seq] = 1
	}
	assert.Equal(b.t, want, b.seqs())
}
