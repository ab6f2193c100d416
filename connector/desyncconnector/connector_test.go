// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/connector/desyncconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// rig is the connector with all its faces, as one collector has them.
type rig struct {
	faces     []component.Component
	traces    []connector.Traces
	records   []connector.Logs
	logs      consumertest.LogsSink
	metrics   consumertest.MetricsSink
	telemetry *componenttest.Telemetry
}

func newRig(t *testing.T, logs consumer.Logs, change func(*Config)) *rig {
	t.Helper()
	r := &rig{telemetry: componenttest.NewTelemetry()}
	if logs == nil {
		logs = &r.logs
	}
	cfg := newDefaultConfig()
	if change != nil {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	ctx, f := context.Background(), NewFactory()
	tl, err := f.CreateTracesToLogs(ctx, set, cfg, logs)
	require.NoError(t, err)
	tm, err := f.CreateTracesToMetrics(ctx, set, cfg, &r.metrics)
	require.NoError(t, err)
	ll, err := f.CreateLogsToLogs(ctx, set, cfg, logs)
	require.NoError(t, err)
	lm, err := f.CreateLogsToMetrics(ctx, set, cfg, &r.metrics)
	require.NoError(t, err)
	r.traces, r.records = []connector.Traces{tl, tm}, []connector.Logs{ll, lm}
	r.faces = []component.Component{tl, tm, ll, lm}
	for _, face := range r.faces {
		require.NoError(t, face.Start(ctx, componenttest.NewNopHost()))
	}
	return r
}

// send does what the collector's fan-out does: it sends all instances of a signal the same.
func (r *rig) send(t *testing.T, ld plog.Logs) {
	t.Helper()
	for _, f := range r.records {
		require.NoError(t, f.ConsumeLogs(context.Background(), ld))
	}
}

func (r *rig) complete(t *testing.T, rank *model.Rank, ops ...model.Op) {
	t.Helper()
	for _, f := range r.traces {
		require.NoError(t, f.ConsumeTraces(context.Background(), otelmap.OpsToTraces(rank, ops)))
	}
}

func (r *rig) stop(t *testing.T) {
	t.Helper()
	for _, f := range r.faces {
		require.NoError(t, f.Shutdown(context.Background()))
		require.NoError(t, f.Shutdown(context.Background()), "a second shutdown does nothing")
	}
	require.NoError(t, r.telemetry.Shutdown(context.Background()))
}

func (r *rig) findings() (all []model.Finding) {
	for _, ld := range r.logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				if f, ok := otelmap.LogToFinding(lr, nil); ok {
					all = append(all, f)
				}
			}
		}
	}
	return all
}

// gauges returns the last value of each series without a phase, by metric.
func (r *rig) gauges() map[string]float64 {
	got := map[string]float64{}
	for _, md := range r.metrics.AllMetrics() {
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			for _, p := range m.Gauge().DataPoints().All() {
				got[m.Name()] = value(p)
			}
		}
	}
	return got
}

func value(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}

func rankOf(n int64) model.Rank {
	return model.Rank{JobName: "training", JobID: "job", Incarnation: "life", Rank: n, WorldSize: model.Some(int64(2)), HostName: "node"}
}

func reduce(seq int64, at time.Time) model.Op {
	return model.Op{
		Kind: model.KindCollective, Name: model.AllReduce, Start: at.UnixNano() - 1000, End: at.UnixNano(), Comm: model.Comm{ID: "0xabc"},
		Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(seq), SeqScope: model.ScopeCommFunc},
	}
}

// state is that of a rank which has come to the given operation, and is in it or not.
func state(rank, seq int64, in bool, since time.Time) *model.RankState {
	s := &model.RankState{
		Rank: rankOf(rank), Time: time.Now().UnixNano(), Source: model.StateRankEvents, Process: model.ProcessRunning,
		Comms: []model.CommState{{
			Comm: model.Comm{ID: "0xabc", Name: "world"}, Members: []int64{0, 1}, Scope: model.ScopeCommFunc,
			Frontiers: []model.Frontier{{Func: model.AllReduce, Enqueued: model.Some(seq - 1), Completed: model.Some(seq - 1)}},
		}},
	}
	if in {
		s.Comms[0].Frontiers[0].Enqueued = model.Some(seq)
		s.Ops = []model.StateOp{{Kind: model.KindCollective, Name: model.AllReduce, Seq: seq, Created: since.UnixNano()}}
	}
	return s
}

// hang has two ranks work for a while, and one of them never come to the next operation.
func (r *rig) hang(t *testing.T) {
	t.Helper()
	for seq := range int64(150) {
		time.Sleep(100 * time.Millisecond)
		for rank := range int64(2) {
			of := rankOf(rank)
			r.complete(t, &of, reduce(seq, time.Now()))
		}
	}
	since := time.Now()
	for range 6 {
		time.Sleep(2 * time.Second)
		ld := plog.NewLogs()
		otelmap.AppendRankState(ld, state(0, 150, true, since))
		otelmap.AppendRankState(ld, state(1, 150, false, since))
		r.send(t, ld)
	}
	time.Sleep(time.Second)
	synctest.Wait()
}

func TestHangOverAllFaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		r.hang(t)
		got := r.findings()
		require.NotEmpty(t, got)
		f := got[0]
		assert.Equal(t, []string{model.FindingDesync, model.ClassNotScheduled, model.StatusOpen}, []string{f.Kind, f.Class, f.Status})
		assert.Equal(t, model.Some(int64(1)), f.Rank)
		assert.Equal(t, "node", f.Host)
		assert.Equal(t, "all_reduce 150", f.Op)
		assert.Equal(t, []int64{0}, f.Waiting)
		assert.Equal(t, int64(1), f.Revision)
		for _, later := range got[1:] {
			assert.Greater(t, later.Revision, f.Revision, "one of four faces gives findings out")
		}
		assert.Equal(t, map[string]float64{"lockstep.hang.open": 1, "lockstep.hang.waiting": 1, "lockstep.hang.limit": 2}, r.gauges())
		assert.Equal(t, int64(300), counter(t, r, "otelcol_connector_desync_ops"), "each span counts once")
		assert.Equal(t, int64(12), counter(t, r, "otelcol_connector_desync_states"))
		assert.Equal(t, int64(1), counter(t, r, "otelcol_connector_desync_findings_opened"))

		// It goes on.
		for rank := range int64(2) {
			of := rankOf(rank)
			r.complete(t, &of, reduce(150, time.Now()))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		got = r.findings()
		assert.Equal(t, model.StatusClosed, got[len(got)-1].Status)
		assert.InDelta(t, 0, r.gauges()["lockstep.hang.open"], 0)
		r.stop(t)
	})
}

func TestWhatStandsIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, func(c *Config) { c.RepeatInterval = 10 * time.Second })
		r.hang(t)
		n := len(r.findings())
		time.Sleep(10 * time.Second)
		synctest.Wait()
		got := r.findings()
		require.Greater(t, len(got), n)
		assert.Equal(t, got[n-1].Revision, got[len(got)-1].Revision)
		r.stop(t)
	})
}

// Dumps that have come are judged when the collector ends, also where others are waited for.
func TestDumpsAreJudgedBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		ld := plog.NewLogs()
		dump := state(0, 7, true, time.Now().Add(-time.Minute))
		dump.Source = model.StateFlightRecorder
		otelmap.AppendRankState(ld, dump)
		r.send(t, ld)
		synctest.Wait()
		assert.Empty(t, r.findings())
		r.stop(t)
		got := r.findings()
		require.Len(t, got, 1)
		assert.Empty(t, got[0].Ranks)
		assert.Contains(t, got[0].Candidates, int64(1), "of rank 1 there is no dump")
	})
}

func TestRefusalIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, consumertest.NewErr(errors.New("no")), nil)
		r.hang(t)
		assert.Positive(t, counter(t, r, "otelcol_connector_desync_findings_lost"))
		var errs []error
		for _, f := range r.faces {
			errs = append(errs, f.Shutdown(t.Context()))
		}
		assert.ErrorContains(t, errors.Join(errs...), "no", "it is asked once more at the end")
	})
}

// That a finding is closed is told again where it was refused: nobody would hear of it otherwise.
func TestARefusedEndIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refuse atomic.Bool
		var r *rig
		next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
			if refuse.Load() {
				return errors.New("memory is short")
			}
			return r.logs.ConsumeLogs(ctx, ld)
		})
		require.NoError(t, err)
		r = newRig(t, next, nil)
		r.hang(t)
		require.NotEmpty(t, r.findings())
		refuse.Store(true)
		since := time.Now()
		for rank := range int64(2) {
			of := rankOf(rank)
			r.complete(t, &of, reduce(150, since), reduce(151, since.Add(time.Millisecond)))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		last := func() string { all := r.findings(); return all[len(all)-1].Status }
		require.NotEqual(t, model.StatusClosed, last())
		refuse.Store(false)
		time.Sleep(newDefaultConfig().RepeatInterval)
		synctest.Wait()
		assert.Equal(t, model.StatusClosed, last())
		n := len(r.findings())
		time.Sleep(3 * newDefaultConfig().RepeatInterval)
		synctest.Wait()
		assert.Len(t, r.findings(), n, "once")
		r.stop(t)
	})
}

func TestForeignAndBadRecordsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		ld := plog.NewLogs()
		otelmap.AppendRankState(ld, state(0, 7, true, time.Now()))
		sl := ld.ResourceLogs().At(0).ScopeLogs().At(0)
		sl.LogRecords().At(0).Attributes().PutEmptyBytes("lockstep.rank.state.data").FromRaw([]byte("no state"))
		sl.LogRecords().AppendEmpty().Body().SetStr("hello")
		r.send(t, ld)
		assert.Equal(t, int64(1), counter(t, r, "otelcol_connector_desync_unread"))
		assert.Equal(t, int64(1), counter(t, r, "otelcol_connector_desync_foreign_records"))
		assert.Zero(t, counter(t, r, "otelcol_connector_desync_states"))
		r.stop(t)
		assert.Empty(t, r.findings())
	})
}

// A pair of signals that is not used takes nothing from the others.
func TestLogsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, cfg, set := NewFactory(), newDefaultConfig(), connectortest.NewNopSettings(metadata.Type)
		var logs consumertest.LogsSink
		face, err := f.CreateLogsToLogs(context.Background(), set, cfg, &logs)
		require.NoError(t, err)
		require.NoError(t, face.Start(context.Background(), componenttest.NewNopHost()))
		ld := plog.NewLogs()
		dump := state(0, 7, true, time.Now().Add(-time.Minute))
		dump.Source = model.StateFlightRecorder
		otelmap.AppendRankState(ld, dump)
		require.NoError(t, face.ConsumeLogs(context.Background(), ld))
		time.Sleep(cfg.DumpWait + time.Second)
		synctest.Wait()
		assert.Equal(t, 1, logs.LogRecordCount())
		require.NoError(t, face.Shutdown(context.Background()))
	})
}

func counter(t *testing.T, r *rig, name string) int64 {
	t.Helper()
	m, err := r.telemetry.GetMetric(name)
	require.NoError(t, err)
	sum, ok := m.Data.(metricdata.Sum[int64])
	require.True(t, ok)
	require.Len(t, sum.DataPoints, 1)
	return sum.DataPoints[0].Value
}
