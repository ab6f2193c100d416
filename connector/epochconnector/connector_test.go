// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"context"
	"errors"
	"fmt"
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
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/epochconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
)

// rig is a connector of both pairs of signals with everything around it.
type rig struct {
	telemetry *componenttest.Telemetry
	faces     []connector.Logs
	logs      consumertest.LogsSink
	metrics   consumertest.MetricsSink
	traces    consumertest.TracesSink
	refuses   atomic.Pointer[func(context.Context) error] // stands for the consumer of spans where it is set
	revision  int64
	beats     map[int64]plog.Logs // what was told last, by save
	sent      int64               // observations
}

func newRig(t *testing.T, logs consumer.Logs) *rig {
	t.Helper()
	return newRigWith(t, logs, nil, componenttest.NewNopHost())
}

func newRigWith(t *testing.T, logs consumer.Logs, storage *component.ID, host component.Host) *rig {
	t.Helper()
	r := &rig{telemetry: componenttest.NewTelemetry(), beats: map[int64]plog.Logs{}}
	if logs == nil {
		logs = &r.logs
	}
	f, cfg := NewFactory(), newDefaultConfig()
	cfg.StorageID = storage
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	toLogs, err := f.CreateLogsToLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	toMetrics, err := f.CreateLogsToMetrics(t.Context(), set, cfg, &r.metrics)
	require.NoError(t, err)
	spans, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		if refuse := r.refuses.Load(); refuse != nil {
			return (*refuse)(ctx)
		}
		return r.traces.ConsumeTraces(ctx, td)
	})
	require.NoError(t, err)
	toTraces, err := f.CreateLogsToTraces(t.Context(), set, cfg, spans)
	require.NoError(t, err)
	r.faces = []connector.Logs{toLogs, toMetrics, toTraces}
	for _, face := range r.faces {
		require.NoError(t, face.Start(t.Context(), host))
	}
	return r
}

// apply has watches read records, and take what was read.
func apply(w *watches, ld plog.Logs) {
	if in := w.read(ld); in.Apply != nil {
		in.Apply(time.Now())
	}
}

func (r *rig) stop(t *testing.T) {
	t.Helper()
	for _, f := range r.faces {
		require.NoError(t, f.Shutdown(context.Background()))
	}
	require.NoError(t, r.telemetry.Shutdown(context.Background()))
}

func (r *rig) send(t *testing.T, ld plog.Logs) {
	t.Helper()
	for _, f := range r.faces { // the collector sends all instances the same
		require.NoError(t, f.ConsumeLogs(t.Context(), ld))
	}
}

// tell has the ranks' observers tell of a save: 0 is tentative, -1 lost, else the epoch is held.
func (r *rig) tell(t *testing.T, save int64, holds ...int64) {
	t.Helper()
	r.revision++
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	epochmap.JobToResource("job", "llama", rl.Resource())
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	for rank, h := range holds {
		o := model.EpochObservation{
			JobID: "job", Generation: "2 ranks", Save: save, Domain: model.Domain{Kind: model.DomainModel, ID: fmt.Sprint("rank ", rank)},
			State: model.DomainCommitted, Epoch: model.Some(h), Observer: fmt.Sprint("node", rank), Revision: r.revision, Confidence: 1,
		}
		switch h {
		case 0:
			o.State, o.Epoch = model.DomainTentative, model.Optional[int64]{}
		case -1:
			o.State, o.Epoch = model.DomainAbsent, model.Some(save)
		}
		epochmap.ObservationToLog(&o, records.AppendEmpty())
	}
	r.beats[save] = ld
	r.sent += int64(ld.LogRecordCount())
	r.send(t, ld)
}

// said are the findings that were told, in words, each revision once.
func (r *rig) said(t *testing.T) (out []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, ld := range r.logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				f, ok := otelmap.LogToFinding(lr, nil)
				require.True(t, ok)
				if k := fmt.Sprint(f.ID, f.Revision); !seen[k] {
					seen[k] = true
					out = append(out, f.Status+": "+lr.Body().Str())
				}
			}
		}
	}
	return out
}

func (r *rig) gauges() map[string]float64 {
	got := map[string]float64{}
	all := r.metrics.AllMetrics()
	if len(all) == 0 {
		return got
	}
	for _, m := range all[len(all)-1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		got[m.Name()] = m.Gauge().DataPoints().At(0).DoubleValue()
	}
	return got
}

func (r *rig) counter(t *testing.T, name string) int64 {
	t.Helper()
	m, err := r.telemetry.GetMetric("otelcol_connector_epoch_" + name)
	require.NoError(t, err)
	return m.Data.(metricdata.Sum[int64]).DataPoints[0].Value
}

// pass lets time pass; observers send their heartbeats.
func (r *rig) pass(t *testing.T, d time.Duration) {
	t.Helper()
	const heartbeat = 5 * time.Minute
	for ; d > heartbeat; d -= heartbeat {
		time.Sleep(heartbeat)
		for _, ld := range r.beats {
			r.sent += int64(ld.LogRecordCount())
			r.send(t, ld)
		}
	}
	time.Sleep(d)
	synctest.Wait()
}

func TestSaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.tell(t, 10, 10, 10)
		r.pass(t, time.Minute)
		assert.Equal(t, map[string]float64{"lockstep.epoch.frontier": 10, "lockstep.epoch.lag": 0, "lockstep.epoch.mixed": 0}, r.gauges())
		r.tell(t, 20, 20, 10)
		r.pass(t, 9*time.Minute)
		assert.Empty(t, r.said(t))
		r.pass(t, 90*time.Second)
		assert.Equal(t, []string{
			"open: job job: epoch (mixed): save 20 is mixed: 1 domain holds 10 (model rank 1), 1 domain holds 20 (model rank 0); the newest that can be recovered is 10 (confidence 1.00)",
		}, r.said(t))
		assert.Equal(t, map[string]float64{"lockstep.epoch.frontier": 10, "lockstep.epoch.lag": 10, "lockstep.epoch.mixed": 1}, r.gauges())
		r.tell(t, 20, 20, 20)
		r.pass(t, time.Minute)
		said := r.said(t)
		require.Len(t, said, 2)
		assert.Contains(t, said[1], "closed: job job: epoch (mixed): save 20 is mixed")
		assert.InDelta(t, 20, r.gauges()["lockstep.epoch.frontier"], 0)

		r.tell(t, 30, 30, 0)
		r.pass(t, 11*time.Minute)
		said = r.said(t)
		require.Len(t, said, 3)
		assert.Equal(t, "open: job job: epoch (partial): save 30 is not whole, and nothing of it moves: 1 of 2 domains do not confirm it, the first model rank 1, which is tentative; the newest that can be recovered is 20 (confidence 1.00)", said[2])
		assert.Equal(t, r.sent, r.counter(t, "observations"))
		assert.EqualValues(t, 2, r.counter(t, "findings_opened"))
		r.stop(t)
	})
}

func TestTheNewestIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.tell(t, 10, 10, 10)
		r.pass(t, time.Minute)
		r.tell(t, 10, 10, -1)
		r.pass(t, 11*time.Minute)
		assert.Equal(t, []string{
			"open: job job: epoch (revoked): save 10, the newest that could be recovered, can be no more: 1 of 2 domains do not confirm it, the first model rank 1, which is absent; no save is known that can be recovered (confidence 1.00)",
		}, r.said(t))
		_, ok := r.gauges()["lockstep.epoch.frontier"]
		assert.False(t, ok)
		r.stop(t)
	})
}

// What stands is told again, and what was refused, too: nobody would hear of its end otherwise.
func TestWhatIsRefusedIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refuse atomic.Bool
		refuse.Store(true)
		var r *rig
		next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
			if refuse.Load() {
				return errors.New("memory is short")
			}
			return r.logs.ConsumeLogs(ctx, ld)
		})
		require.NoError(t, err)
		r = newRig(t, next)
		r.tell(t, 10, 10, 0)
		r.pass(t, 11*time.Minute)
		assert.Positive(t, r.counter(t, "findings_refused"))
		refuse.Store(false)
		r.pass(t, newDefaultConfig().RepeatInterval)
		require.Len(t, r.said(t), 1)
		refuse.Store(true)
		r.tell(t, 10, 10, 10)
		r.pass(t, time.Minute)
		refuse.Store(false)
		r.pass(t, newDefaultConfig().CheckInterval)
		said := r.said(t)
		require.Len(t, said, 2)
		assert.Contains(t, said[1], "closed: ")
		n := r.logs.LogRecordCount()
		r.pass(t, 10*time.Minute)
		assert.Equal(t, n, r.logs.LogRecordCount(), "once")
		r.stop(t)
	})
}

func TestBadInputIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		ld := plog.NewLogs()
		records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		records.AppendEmpty().Body().SetStr("hello")
		records.AppendEmpty().SetEventName("lockstep.epoch.observation")
		r.send(t, ld)
		r.pass(t, time.Minute)
		assert.EqualValues(t, 1, r.counter(t, "foreign_records"))
		assert.EqualValues(t, 1, r.counter(t, "unread"))
		assert.Zero(t, r.counter(t, "observations"))
		r.stop(t)
	})
}

// What stands, and was refused, is told at the end; a consumer that takes nothing does not hold it up.
func TestWhatIsRefusedIsToldAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refuse, hang atomic.Bool
		refuse.Store(true)
		var r *rig
		next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
			if hang.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			if refuse.Load() {
				return errors.New("memory is short")
			}
			return r.logs.ConsumeLogs(ctx, ld)
		})
		require.NoError(t, err)
		for _, hangs := range []bool{false, true} {
			refuse.Store(true)
			hang.Store(false)
			r = newRig(t, next)
			r.tell(t, 10, 10, 0)
			r.pass(t, 11*time.Minute)
			require.Empty(t, r.said(t))
			refuse.Store(false)
			hang.Store(hangs)
			at := time.Now()
			for _, f := range r.faces {
				err := f.Shutdown(t.Context())
				if !hangs {
					require.NoError(t, err)
				}
			}
			require.LessOrEqual(t, time.Since(at), deliver.ShutdownLimit)
			if !hangs {
				require.Len(t, r.said(t), 1)
			}
			require.NoError(t, r.telemetry.Shutdown(t.Context()))
		}
	})
}

// Of jobs that were left for others no name is kept; who is heard meanwhile has its name from the
// next look on.
func TestNamesOfJobs(t *testing.T) {
	c := newDefaultConfig()
	c.MaxJobs = 3
	w := newWatches(c, zap.NewNop())
	hear := func(id, name string) {
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		epochmap.JobToResource(id, name, rl.Resource())
		o := model.EpochObservation{JobID: id, Save: 1, Domain: model.Domain{Kind: model.DomainModel}, State: model.DomainTentative, Observer: "o"}
		epochmap.ObservationToLog(&o, rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
		apply(w, ld)
	}
	for i := range 6 {
		id := fmt.Sprint("job", i)
		hear(id, "of "+id)
		w.conclude(time.Now())
		hear(id, "name of "+id)
		require.Equal(t, "name of "+id, w.saves.NameOf(id))
	}
}
