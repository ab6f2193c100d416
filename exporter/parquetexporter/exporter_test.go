// SPDX-License-Identifier: Apache-2.0

package parquetexporter

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/exporter/parquetexporter/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/columns"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// running is an exporter that runs, and its own metrics.
type running struct {
	exporter.Traces
	telemetry *componenttest.Telemetry
	host      *host
}

// host keeps the last status that a component reported.
type host struct {
	component.Host
	last atomic.Pointer[componentstatus.Event]
}

// Report keeps a status.
func (h *host) Report(e *componentstatus.Event) { h.last.Store(e) }

// is reports whether the last status is a given one.
func (h *host) is(want componentstatus.Status) bool {
	last := h.last.Load()
	return last != nil && last.Status() == want
}

// direct returns a configuration without a queue and retries, so that a test gets the errors.
func direct(dir string) *Config {
	c := newDefaultConfig()
	c.Directory = dir
	c.Queue = configoptional.None[exporterhelper.QueueBatchConfig]()
	c.Retry.Enabled = false
	return c
}

func begun(t *testing.T, c *Config) (*running, error) {
	t.Helper()
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	set := exportertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	set.BuildInfo.Version = "1.2.3"
	e, err := NewFactory().CreateTraces(t.Context(), set, c)
	require.NoError(t, err)
	r := &running{e, tel, &host{Host: componenttest.NewNopHost()}}
	return r, e.Start(t.Context(), r.host)
}

func started(t *testing.T, c *Config) *running {
	t.Helper()
	r, err := begun(t, c)
	require.NoError(t, err)
	return r
}

// value returns a metric, or the part of it that has a value of an attribute.
func (r *running) value(t *testing.T, name, attribute string) (sum int64) {
	t.Helper()
	m, err := r.telemetry.GetMetric("otelcol_exporter_parquet_" + name)
	if err != nil {
		return 0 // nothing was counted yet
	}
	var points []metricdata.DataPoint[int64]
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		points = data.DataPoints
	case metricdata.Gauge[int64]:
		points = data.DataPoints
	default:
		t.Fatalf("%s: got %T", name, m.Data)
	}
	for i := range points {
		if attribute == "" || hasValue(&points[i], attribute) {
			sum += points[i].Value
		}
	}
	return sum
}

func hasValue(p *metricdata.DataPoint[int64], attribute string) bool {
	for _, kv := range p.Attributes.ToSlice() {
		if kv.Value.AsString() == attribute {
			return true
		}
	}
	return false
}

// request has two operations and a step of a rank, with its summary, and a span of another program.
func request(rank int64) (ptrace.Traces, columns.Batch) {
	b := columns.Batch{RankOps: model.RankOps{Rank: model.Rank{JobID: "job", JobName: "job", Incarnation: "life", Rank: rank, HostName: "node"}}}
	base := model.Op{Step: model.Some(int64(4)), Stream: model.Some(int64(7))}
	gemm, reduce, step := base, base, base
	gemm.Kind, gemm.Name, gemm.Start, gemm.End = model.KindCompute, "gemm", 1_700_000_000_000_000_001, 1_700_000_000_000_500_000
	reduce.Kind, reduce.Name, reduce.Start, reduce.End = model.KindCollective, "all_reduce", 1_700_000_000_000_500_000, 1_700_000_000_000_900_000
	reduce.Comm, reduce.Collective = model.Comm{ID: "world"}, model.Collective{Name: model.AllReduce, Seq: model.Some(int64(9)), Bytes: model.Some(int64(64))}
	step.Kind, step.Name, step.Stream, step.Start, step.End = model.KindStep, "step", model.Optional[int64]{}, gemm.Start, reduce.End
	b.Ops = []model.Op{gemm, reduce, step}
	b.Summaries = map[int]*model.Summary{2: {Compute: 0.5, Ops: 2, Collectives: 1, Histograms: "{}"}}
	td := otelmap.OpsToTraces(&b.Rank, b.Ops)
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	otelmap.WriteSummary(b.Summaries[2], spans.At(2))
	spans.AppendEmpty().SetName("GET /")
	return td, b
}

func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	require.NoError(t, err)
	return found
}

func readFile(t *testing.T, path string) (m columns.Meta, all []columns.Batch) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	f, err := columns.Open(file, info.Size())
	require.NoError(t, err)
	defer f.Close()
	for i := range f.Groups() {
		batches, err := f.Read(i)
		require.NoError(t, err)
		all = append(all, batches...)
	}
	return f.Meta, all
}

func TestTraces_OperationsAndSummaries_AreInAFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ring")
	r := started(t, direct(dir))
	td, want := request(3)
	require.NoError(t, r.ConsumeTraces(t.Context(), td))
	assert.EqualValues(t, 3, r.value(t, "waiting_operations", ""))
	assert.EqualValues(t, 1, r.value(t, "dropped_spans", "no_operation"))
	require.NoError(t, r.Shutdown(t.Context()))

	files := filesOf(t, dir)
	require.Len(t, files, 1)
	assert.Regexp(t, `/job/life/steps-0000000004-0000000004-\d{13}\.parquet$`, filepath.ToSlash(files[0]))
	m, got := readFile(t, files[0])
	assert.Equal(t, []columns.Batch{want}, got)
	assert.Equal(t, "1.2.3", m.Producer)
	assert.Equal(t, "job", m.Job)
}

func TestTraces_FlushInterval_WritesTheFile(t *testing.T) {
	c := direct(t.TempDir())
	c.FlushInterval = time.Second
	r := started(t, c)
	td, _ := request(3)
	require.NoError(t, r.ConsumeTraces(t.Context(), td))
	require.Eventually(t, func() bool { return r.value(t, "files", "") == 1 }, time.Minute, 10*time.Millisecond)
	assert.Len(t, filesOf(t, c.Directory), 1)
	assert.EqualValues(t, 3, r.value(t, "operations", ""))
	info, err := os.Stat(filesOf(t, c.Directory)[0])
	require.NoError(t, err)
	assert.Equal(t, info.Size(), r.value(t, "bytes", ""))
	assert.Equal(t, info.Size(), r.value(t, "ring_size", ""))
	if runtime.GOOS == "linux" {
		cpu, err := r.telemetry.GetMetric("otelcol_exporter_parquet_cpu_time")
		require.NoError(t, err)
		assert.Positive(t, cpu.Data.(metricdata.Sum[float64]).DataPoints[0].Value)
	}
	require.NoError(t, r.Shutdown(t.Context()))
}

func TestTraces_DiskTakesNothing_SenderRepeatsAndNothingIsLost(t *testing.T) {
	c := direct(t.TempDir())
	c.FlushInterval = time.Second
	r := started(t, c)
	inTheWay := filepath.Join(c.Directory, "job")
	require.NoError(t, os.WriteFile(inTheWay, nil, 0o600))
	first, _ := request(0)
	require.NoError(t, r.ConsumeTraces(t.Context(), first))
	second, _ := request(1)
	require.Eventually(t, func() bool { return r.ConsumeTraces(t.Context(), second) != nil }, time.Minute, 100*time.Millisecond)
	taken := r.value(t, "waiting_operations", "")
	assert.EqualValues(t, 1, r.value(t, "refused_requests", ""))
	require.Eventually(t, func() bool { return r.host.is(componentstatus.StatusRecoverableError) }, time.Minute, 10*time.Millisecond)
	require.NoError(t, os.Remove(inTheWay))
	require.Eventually(t, func() bool { return r.ConsumeTraces(t.Context(), second) == nil }, time.Minute, 100*time.Millisecond)
	require.Eventually(t, func() bool { return r.host.is(componentstatus.StatusOK) }, time.Minute, 10*time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
	n := 0
	for _, path := range filesOf(t, c.Directory) {
		_, batches := readFile(t, path)
		for _, b := range batches {
			n += len(b.Ops)
		}
	}
	assert.EqualValues(t, taken+3, n)
}

func TestStart_DirectoryOfAnother_IsRefused(t *testing.T) {
	dir := t.TempDir()
	r := started(t, direct(dir))
	other, err := begun(t, direct(dir))
	require.EqualError(t, err, "open directory "+dir+": another exporter writes there; want a directory for each")
	require.NoError(t, other.Shutdown(t.Context()))
	require.NoError(t, r.Shutdown(t.Context()))

	c := direct(filepath.Join(dir, "none", "ring"))
	missing, err := begun(t, c)
	require.ErrorContains(t, err, "open directory "+c.Directory+": no such file or directory; want a folder that the collector can make, or one that is there")
	require.NoError(t, missing.Shutdown(t.Context()))
}

func TestTraces_HundredNanoseconds_AreInTheMetadata(t *testing.T) {
	c := direct(t.TempDir())
	c.TimeResolution = resolution100ns
	r := started(t, c)
	td, _ := request(3)
	require.NoError(t, r.ConsumeTraces(t.Context(), td))
	require.NoError(t, r.Shutdown(t.Context()))
	m, got := readFile(t, filesOf(t, c.Directory)[0])
	assert.Equal(t, columns.HundredNanosecs, m.Resolution)
	assert.EqualValues(t, 1_700_000_000_000_000_000, got[0].Ops[0].Start)
}

func TestShutdown_WithQueue_WritesWhatWaits(t *testing.T) {
	c := direct(t.TempDir())
	c.Queue = newDefaultConfig().Queue
	r := started(t, c)
	for rank := range int64(20) {
		td, _ := request(rank)
		require.NoError(t, r.ConsumeTraces(t.Context(), td))
	}
	require.NoError(t, r.Shutdown(t.Context()))
	_, got := readFile(t, filesOf(t, c.Directory)[0])
	assert.Len(t, got, 20)
}
