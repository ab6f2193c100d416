// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

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
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// rig is the connector with all its outputs.
type rig struct {
	faces   []connector.Traces
	logs    consumertest.LogsSink
	metrics consumertest.MetricsSink
	traces  consumertest.TracesSink
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	r := &rig{}
	cfg := newDefaultConfig()
	if change != nil {
		change(cfg)
	}
	r.attach(t, connectortest.NewNopSettings(metadata.Type), cfg, &r.logs)
	r.start(t, componenttest.NewNopHost())
	return r
}

func (r *rig) start(t *testing.T, host component.Host) {
	t.Helper()
	for _, f := range r.faces {
		require.NoError(t, f.Start(context.Background(), host))
	}
}

func (r *rig) attach(t *testing.T, set connector.Settings, cfg *Config, logs consumer.Logs) {
	t.Helper()
	ctx, f := context.Background(), NewFactory()
	l, err := f.CreateTracesToLogs(ctx, set, cfg, logs)
	require.NoError(t, err)
	m, err := f.CreateTracesToMetrics(ctx, set, cfg, &r.metrics)
	require.NoError(t, err)
	tr, err := f.CreateTracesToTraces(ctx, set, cfg, &r.traces)
	require.NoError(t, err)
	r.faces = []connector.Traces{l, m, tr}
}

// consume does what the collector's fan-out does: it sends all instances the same.
func (r *rig) consume(t *testing.T, td ptrace.Traces) {
	t.Helper()
	for _, f := range r.faces {
		require.NoError(t, f.ConsumeTraces(context.Background(), td))
	}
}

func (r *rig) stop(t *testing.T) {
	t.Helper()
	for _, f := range r.faces {
		require.NoError(t, f.Shutdown(context.Background()))
		require.NoError(t, f.Shutdown(context.Background()), "a second shutdown does nothing")
	}
}

func (r *rig) findings() []model.Finding {
	var all []model.Finding
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

const (
	ms    = int64(time.Millisecond)
	world = 8
	slow  = 5
)

// step is one step of all ranks, one batch a rank: compute, an all-reduce that
// ends for all at once, the step. Rank slow computes for 30 ms, the others for 10
// to 12. Without marks the step operation is missing.
func step(n int64, marks bool) []ptrace.Traces { return stepOf(n, marks, slow) }

// stepOf is step with another slow rank; below 0 it is none.
func stepOf(n int64, marks bool, slow int64) []ptrace.Traces {
	var batches []ptrace.Traces
	start := time.Unix(1_700_000_000, 0).UnixNano() + n*100*ms
	for r := range int64(world) {
		compute := 10*ms + r%3*ms
		if r == slow {
			compute = 30 * ms
		}
		rank := model.Rank{JobName: "train", JobID: "job", Incarnation: "inc", Rank: r, HostName: "node0", WorldSize: model.Some(int64(world))}
		ops := []model.Op{
			{Kind: model.KindCompute, Name: "gemm", Start: start, End: start + compute, Step: model.Some(n), Stream: model.Some(int64(7))},
			{
				Kind: model.KindCollective, Name: "all_reduce", Start: start + compute, End: start + 31*ms, Step: model.Some(n), Stream: model.Some(int64(20)),
				Comm:       model.Comm{ID: "c", Size: model.Some(int64(world))},
				Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(n), SeqScope: model.ScopeCommFunc},
			},
			{Kind: model.KindStep, Name: "step", Start: start, End: start + 31*ms, Step: model.Some(n)},
		}
		if !marks {
			ops = ops[:2]
		}
		batches = append(batches, otelmap.OpsToTraces(&rank, ops))
	}
	return batches
}

func (r *rig) run(t *testing.T, steps int64) {
	t.Helper()
	for n := range steps {
		for _, td := range step(n, true) {
			r.consume(t, td)
		}
	}
}

// life delivers four steps of one incarnation, in which each operation of rank slow
// takes so long, and those of the others a millisecond.
func (r *rig) life(t *testing.T, incarnation string, slowOp int64) {
	t.Helper()
	for n := range int64(4) {
		start := time.Unix(1_700_000_000, 0).UnixNano() + n*100*ms
		for k := range int64(world) {
			each := ms
			if k == slow {
				each = slowOp
			}
			rank := model.Rank{JobName: "train", JobID: "job", Incarnation: incarnation, Rank: k, HostName: "node0", WorldSize: model.Some(int64(world))}
			var ops []model.Op
			for i := range int64(10) {
				at := start + i*each
				ops = append(ops, model.Op{Kind: model.KindCompute, Name: "gemm", Start: at, End: at + each, Step: model.Some(n), Stream: model.Some(int64(7)), Seq: i})
			}
			ops = append(ops, model.Op{Kind: model.KindStep, Name: "step", Start: start, End: start + 31*ms, Step: model.Some(n)})
			r.consume(t, otelmap.OpsToTraces(&rank, ops))
		}
	}
}

// divergence returns that of each rank in the metrics sent last.
func (r *rig) divergence() map[int64]float64 {
	out := map[int64]float64{}
	all := r.metrics.AllMetrics()
	for _, m := range all[len(all)-1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if m.Name() != semconv.MetricStragglerDivergence {
			continue
		}
		for _, p := range m.Gauge().DataPoints().All() {
			rank, _ := p.Attributes().Get(semconv.Rank)
			out[rank.Int()] = p.DoubleValue()
		}
	}
	return out
}

// A job that was started again writes the series of the life that runs.
func TestDivergenceIsOfTheLifeThatRuns(t *testing.T) {
	for _, lives := range [][2]string{{"a", "z"}, {"z", "a"}} {
		r := newRig(t, func(c *Config) { c.FlushInterval = time.Hour })
		r.life(t, lives[0], 3*ms)
		r.life(t, lives[1], ms)
		r.stop(t)
		got := r.divergence()
		require.Len(t, got, world)
		assert.Zero(t, got[slow], "lives %v, of which the second is healthy", lives)
	}
}

func TestDivergenceOfAJobThatEndedExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.FlushInterval, c.SeriesExpiration = 30*time.Second, time.Minute })
		r.life(t, "inc", 3*ms)
		time.Sleep(31 * time.Second)
		require.Len(t, r.divergence(), world)
		time.Sleep(time.Minute)
		r.metrics.Reset()
		time.Sleep(time.Minute)
		assert.Empty(t, r.metrics.AllMetrics(), "no series is left")
		r.stop(t)
	})
}

func TestFindingEvent(t *testing.T) {
	r := newRig(t, nil)
	r.run(t, 6)
	got := r.findings()
	require.NotEmpty(t, got)
	assert.Equal(t, model.Some(int64(slow)), got[0].Rank)
	assert.Equal(t, "compute", got[0].Class)
	assert.Equal(t, "open", got[0].Status)
	r.stop(t)
}

// What stands is repeated under its revision, with the last step seen.
func TestStandingFindingsAreRepeated(t *testing.T) {
	r := newRig(t, func(c *Config) { c.FlushInterval, c.RepeatInterval = 2*time.Millisecond, 5*time.Millisecond })
	r.run(t, 6)
	first := r.findings()
	require.NotEmpty(t, first)
	require.Eventually(t, func() bool { return len(r.findings()) > len(first)+1 }, 5*time.Second, time.Millisecond)
	all := r.findings()
	again := all[len(all)-1]
	assert.Equal(t, first[len(first)-1].Revision, again.Revision)
	assert.Equal(t, model.Some(int64(5)), again.StepLast)
	r.stop(t)
}

func points(t *testing.T, r *rig, name string) pmetric.NumberDataPointSlice {
	t.Helper()
	all := r.metrics.AllMetrics()
	require.NotEmpty(t, all)
	for _, m := range all[len(all)-1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if m.Name() == name {
			return m.Sum().DataPoints()
		}
	}
	t.Fatalf("no metric %s", name)
	return pmetric.NumberDataPointSlice{}
}

// Eight ranks are eight series, told apart by data-point attributes.
func TestEightRanksAreEightSeries(t *testing.T) {
	r := newRig(t, nil)
	r.run(t, 2)
	assert.Len(t, r.metrics.AllMetrics(), 1, "the first step is told at once, the next with the interval")
	r.stop(t)
	caused := points(t, r, "lockstep.wait.caused")
	require.Equal(t, world, caused.Len())
	ranks := map[any]float64{}
	for _, p := range caused.All() {
		assert.Equal(t, "job", p.Attributes().AsRaw()["lockstep.job.id"])
		ranks[p.Attributes().AsRaw()["lockstep.rank"]] = p.DoubleValue()
	}
	require.Len(t, ranks, world)
	// Per step, the seven others wait 20, 19, 18, 20, 19, 20 and 19 ms.
	assert.InDelta(t, 2*0.135, ranks[int64(slow)], 1e-9)
	assert.InDelta(t, 2*0.020, points(t, r, "lockstep.wait.suffered").At(0).DoubleValue(), 1e-9)
}

func TestStoryIsEmittedOncePerStep(t *testing.T) {
	r := newRig(t, nil)
	r.run(t, 3)
	for _, td := range step(1, true) { // delivered again
		r.consume(t, td)
	}
	r.stop(t)
	roots := map[pcommon.SpanID]int{}
	for _, td := range r.traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				if s.ParentSpanID().IsEmpty() {
					roots[s.SpanID()]++
				}
			}
		}
	}
	want := map[pcommon.SpanID]int{}
	for n := range int64(3) {
		want[pcommon.SpanID(model.RootSpanID(model.StepTraceID("inc", n)))] = 1
	}
	assert.Equal(t, want, roots)
}

func TestStoryLimit(t *testing.T) {
	r := newRig(t, func(c *Config) { c.StorySpans = 3 })
	r.run(t, 1)
	require.Len(t, r.traces.AllTraces(), 1)
	assert.Equal(t, 1+3, r.traces.SpanCount())
	r.stop(t)
}

// Nothing marks the end of the step: it is analysed when the collector stops.
func TestShutdownFlushes(t *testing.T) {
	r := newRig(t, nil)
	for _, td := range step(0, false) {
		r.consume(t, td)
	}
	assert.Empty(t, r.metrics.AllMetrics())
	r.stop(t)
	assert.Equal(t, world, points(t, r, "lockstep.wait.caused").Len())
	assert.NotZero(t, r.traces.SpanCount())
}

func TestDeadlineClosesAStep(t *testing.T) {
	r := newRig(t, func(c *Config) { c.FlushInterval, c.Analysis.Deadline = 5*time.Millisecond, 10*time.Millisecond })
	for _, td := range step(0, false) {
		r.consume(t, td)
	}
	require.Eventually(t, func() bool { return len(r.metrics.AllMetrics()) > 1 && r.traces.SpanCount() > 0 }, 5*time.Second, time.Millisecond)
	r.stop(t)
}

// A refused finding is no matter of the sender: it is sent until it is taken. One consumer that refuses costs
// the others nothing.
func TestConsume_LogsRefuse_AreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telemetry, r, set := componenttest.NewTelemetry(), &rig{}, connectortest.NewNopSettings(metadata.Type)
		set.TelemetrySettings = telemetry.NewTelemetrySettings()
		var takes atomic.Bool
		next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
			if !takes.Load() {
				return errors.New("no")
			}
			return r.logs.ConsumeLogs(ctx, ld)
		})
		require.NoError(t, err)
		r.attach(t, set, newDefaultConfig(), next)
		r.start(t, componenttest.NewNopHost())
		r.run(t, 6)
		assert.Empty(t, r.findings())
		assert.NotEmpty(t, r.metrics.AllMetrics())
		assert.NotZero(t, r.traces.SpanCount())
		takes.Store(true)
		time.Sleep(time.Minute)
		assert.NotEmpty(t, r.findings())
		for name, want := range map[string]int64{"findings_lost": 0, "steps_analysed": 6, "unread": 0} {
			assert.Equal(t, want, counted(t, telemetry, name), name)
		}
		r.stop(t)
		require.NoError(t, telemetry.Shutdown(context.Background()))
	})
}

// A step trace that is refused is lost, and the sender gets to know. The same spans again would be
// duplicates, so the error is permanent.
func TestConsume_StepTracesRefused_ErrorIsPermanent(t *testing.T) {
	telemetry, set := componenttest.NewTelemetry(), connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	toTraces, err := NewFactory().CreateTracesToTraces(t.Context(), set, newDefaultConfig(), consumertest.NewErr(errors.New("no")))
	require.NoError(t, err)
	require.NoError(t, toTraces.Start(t.Context(), componenttest.NewNopHost()))
	var refused error
	for n := range int64(6) {
		for _, td := range step(n, true) {
			refused = errors.Join(refused, toTraces.ConsumeTraces(t.Context(), td))
		}
	}
	require.Error(t, refused)
	assert.True(t, consumererror.IsPermanent(refused))
	assert.Positive(t, counted(t, telemetry, "story_spans_lost"))
	for _, td := range step(6, false) {
		require.NoError(t, toTraces.ConsumeTraces(t.Context(), td))
	}
	require.Error(t, toTraces.Shutdown(t.Context()), "the last ones are refused as well")
	require.NoError(t, telemetry.Shutdown(context.Background()))
}

func counted(t *testing.T, telemetry *componenttest.Telemetry, name string) int64 {
	t.Helper()
	m, err := telemetry.GetMetric("otelcol_connector_straggler_" + name)
	require.NoError(t, err)
	return m.Data.(metricdata.Sum[int64]).DataPoints[0].Value
}

func TestForeignSpansAreCounted(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	r := &rig{}
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	r.attach(t, set, newDefaultConfig(), &r.logs)
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("GET /")
	r.consume(t, td)
	m, err := telemetry.GetMetric("otelcol_connector_straggler_unread")
	require.NoError(t, err)
	assert.Equal(t, int64(1), m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
	r.stop(t)
	assert.Empty(t, r.logs.AllLogs())
	require.NoError(t, telemetry.Shutdown(context.Background()))
}

func TestLossesAreToldInTheLog(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	r := &rig{}
	set := connectortest.NewNopSettings(metadata.Type)
	set.Logger = zap.New(core)
	cfg := newDefaultConfig()
	cfg.Analysis.MaxRanks = 2
	r.attach(t, set, cfg, &r.logs)
	r.start(t, componenttest.NewNopHost())
	for _, td := range step(0, true) {
		r.consume(t, td)
	}
	r.stop(t)
	require.Positive(t, logs.FilterMessageSnippet("beyond max_ranks were left out").Len())
}
