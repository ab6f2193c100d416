// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/receiver/flightrecorderreceiver/internal/metadatatest"
)

// patience is how long a test waits for what takes milliseconds.
const patience = 20 * time.Second

// bench is a receiver with everything around it that a test looks at.
type bench struct {
	*dumpCollector
	tel      *componenttest.Telemetry
	said     *observer.ObservedLogs
	logs     *consumertest.LogsSink
	traces   *consumertest.TracesSink
	metrics  *consumertest.MetricsSink
	shutdown func()
}

func config(include ...string) *Config {
	cfg := newDefaultConfig()
	cfg.Include = include
	cfg.PollInterval, cfg.Settle = 5*time.Millisecond, 150*time.Millisecond
	cfg.Wait, cfg.MaxWait = 300*time.Millisecond, time.Second
	cfg.RetryOnFailure.InitialInterval, cfg.RetryOnFailure.MaxInterval = time.Millisecond, time.Millisecond
	return cfg
}

// start makes a receiver of all signals and begins. Logs go to next, where there is one.
func start(t *testing.T, cfg *Config, next consumer.Logs) *bench {
	t.Helper()
	require.NoError(t, cfg.Validate())
	b := &bench{tel: componenttest.NewTelemetry(), logs: &consumertest.LogsSink{}, traces: &consumertest.TracesSink{}, metrics: &consumertest.MetricsSink{}}
	if next == nil {
		next = b.logs
	}
	set := metadatatest.NewSettings(b.tel)
	var core zapcore.Core
	core, b.said = observer.New(zapcore.DebugLevel)
	set.Logger = zap.New(core)
	faces := b.faces(t, set, cfg, next)
	for _, f := range faces {
		require.NoError(t, f.Start(t.Context(), componenttest.NewNopHost()))
	}
	stopped := false
	b.shutdown = func() {
		if stopped {
			return
		}
		stopped = true
		for _, f := range faces {
			assert.NoError(t, f.Shutdown(context.Background()))
		}
	}
	t.Cleanup(func() {
		b.shutdown()
		assert.NoError(t, b.tel.Shutdown(context.Background()))
	})
	return b
}

type life interface {
	Start(context.Context, component.Host) error
	Shutdown(context.Context) error
}

func (b *bench) faces(t *testing.T, set receiver.Settings, cfg *Config, next consumer.Logs) []life {
	t.Helper()
	f := NewFactory()
	l, err := f.CreateLogs(t.Context(), set, cfg, next)
	require.NoError(t, err)
	tr, err := f.CreateTraces(t.Context(), set, cfg, b.traces)
	require.NoError(t, err)
	m, err := f.CreateMetrics(t.Context(), set, cfg, b.metrics)
	require.NoError(t, err)
	b.dumpCollector = l.(*dumpReceiver).handle.Value
	return []life{l, tr, m}
}

// events are what came by the logs pipeline.
type events struct {
	states map[int64][]model.RankState
	absent map[int64][]model.Absence
	ranks  []model.Rank // of absences
	open   []model.OpenOp
}

func (b *bench) events(t *testing.T) events {
	t.Helper()
	e := events{states: map[int64][]model.RankState{}, absent: map[int64][]model.Absence{}}
	var p otelmap.Problems
	each(b.logs.AllLogs(), func(res pcommon.Resource, lr plog.LogRecord) {
		assert.NotZero(t, lr.ObservedTimestamp())
		if s, ok := otelmap.LogToRankState(res, lr, nil, &p); ok {
			e.states[s.Rank.Rank] = append(e.states[s.Rank.Rank], s)
		}
		if r, a, ok := otelmap.LogToAbsence(res, lr, &p); ok {
			e.absent[r.Rank] = append(e.absent[r.Rank], a)
			e.ranks = append(e.ranks, r)
		}
		if o, ok := otelmap.LogToOpen(lr, &p); ok {
			e.open = append(e.open, o)
		}
	})
	require.Empty(t, p.List())
	return e
}

func each(batches []plog.Logs, do func(pcommon.Resource, plog.LogRecord)) {
	for _, ld := range batches {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					do(rl.Resource(), lr)
				}
			}
		}
	}
}

// waitFor waits until what came is as expected.
func (b *bench) waitFor(t *testing.T, what string, ok func(events) bool) events {
	t.Helper()
	require.Eventually(t, func() bool { return ok(b.events(t)) }, patience, 5*time.Millisecond, what)
	return b.events(t)
}

// counter returns a counter of the component, over all its attributes, or of one reason.
func (b *bench) counter(t *testing.T, name string, why ...string) int64 {
	t.Helper()
	m, err := b.tel.GetMetric("otelcol_receiver_flight_recorder_" + name)
	if err != nil {
		return 0 // never added to
	}
	var sum int64
	for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints {
		value, _ := dp.Attributes.Value(attribute.Key("reason"))
		if len(why) == 0 || value.AsString() == why[0] {
			sum += dp.Value
		}
	}
	return sum
}

// waitCount waits until a counter has come to n.
func (b *bench) waitCount(t *testing.T, n int64, name string, why ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return b.counter(t, name, why...) >= n }, patience, 5*time.Millisecond, "%s %v", name, why)
	require.Equal(t, n, b.counter(t, name, why...))
}

// when the dumps of these tests begin, Unix ns.
const epoch = int64(1_790_000_000_000_000_000)

const (
	ms  = int64(1e6)
	sec = int64(1e9)
)

// dumpOf is what rank of four writes: an all_reduce that took 20 ms by the device's events,
// seen to start 5 ms after it was enqueued, and one that is open, of which rank 3 knows
// nothing.
func dumpOf(rank int64) *frwrite.Dump {
	took := 20.0
	d := &frwrite.Dump{
		LibVersion: "2.29.2", Stacks: true,
		Groups: []frwrite.Group{{Name: "0", Desc: "default_pg", Ranks: []int64{0, 1, 2, 3}}},
		Status: []frwrite.Status{{PGID: 0, Enqueued: 2, Started: -1, Completed: 1}},
		Entries: []frwrite.Entry{{
			RecordID: 0, Group: "0", Desc: "default_pg", ThreadName: "pt_main_thread", ThreadID: "4711",
			CollectiveSeq: 1, OpID: 1, Name: "nccl:all_reduce", Created: epoch + rank*ms, Duration: &took,
			In: [][]int64{{1024, 2}}, Out: [][]int64{{1024, 2}}, InTypes: []string{"Float"}, OutTypes: []string{"Float"},
			State: frwrite.Completed, Started: epoch + (rank+5)*ms, Completed: epoch + (rank+100)*ms, Retired: true, TimeoutMS: 600000,
		}},
	}
	if rank != 3 {
		d.Entries = append(d.Entries, frwrite.Entry{
			RecordID: 1, Group: "0", Desc: "default_pg", CollectiveSeq: 2, OpID: 2, Name: "nccl:all_reduce", Created: epoch + sec,
			In: [][]int64{{8}}, Out: [][]int64{{8}}, InTypes: []string{"Float"}, OutTypes: []string{"Float"}, State: frwrite.Scheduled, TimeoutMS: 600000,
			Frames: []frwrite.Frame{{Name: "train_step", File: "/job/train.py", Line: 42}},
		})
	} else {
		d.Status[0].Enqueued = 1
	}
	return d
}

func dumpPath(dir string, rank int64) string {
	return filepath.Join(dir, "comm_lib_trace_rank_"+string(rune('0'+rank)))
}

// writeDump writes a dump as PyTorch does: into the file itself.
func writeDump(tb testing.TB, path string, data []byte) {
	tb.Helper()
	require.NoError(tb, os.WriteFile(path, data, 0o644))
}

// jobDir is an empty folder with the name of a job.
func jobDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run-17")
	require.NoError(t, os.Mkdir(dir, 0o755))
	return dir
}

func (b *bench) saidThat(texts ...string) bool {
	return slices.ContainsFunc(b.said.All(), func(e observer.LoggedEntry) bool {
		line, err := zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "msg"}).EncodeEntry(e.Entry, e.Context)
		return err == nil && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line.String(), text) })
	})
}
