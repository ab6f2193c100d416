// SPDX-License-Identifier: Apache-2.0

package clocksconnector

import (
	"context"
	"errors"
	"strings"
	"testing"
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
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/connector/clocksconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// rig is the connector with all its outputs.
type rig struct {
	faces     []connector.Logs
	logs      consumertest.LogsSink
	metrics   consumertest.MetricsSink
	telemetry *componenttest.Telemetry
}

// An interval that no test reaches: what is given out comes with the end.
const never = time.Hour

func newRig(t *testing.T, logs consumer.Logs, host component.Host, change func(*Config), cores ...zapcore.Core) *rig {
	t.Helper()
	r := &rig{telemetry: componenttest.NewTelemetry()}
	t.Cleanup(func() { require.NoError(t, r.telemetry.Shutdown(context.Background())) })
	if logs == nil {
		logs = &r.logs
	}
	cfg := newDefaultConfig()
	cfg.SolveInterval = never
	if change != nil {
		change(cfg)
	}
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	if len(cores) > 0 {
		set.Logger = zap.New(zapcore.NewTee(cores...))
	}
	f := NewFactory()
	l, err := f.CreateLogsToLogs(context.Background(), set, cfg, logs)
	require.NoError(t, err)
	m, err := f.CreateLogsToMetrics(context.Background(), set, cfg, &r.metrics)
	require.NoError(t, err)
	r.faces = []connector.Logs{l, m}
	for _, face := range r.faces {
		require.NoError(t, face.Start(context.Background(), host))
	}
	return r
}

// consume does what the collector's fan-out does: it sends all instances the same.
func (r *rig) consume(t *testing.T, ld plog.Logs) {
	t.Helper()
	for _, f := range r.faces {
		require.NoError(t, f.ConsumeLogs(context.Background(), ld))
	}
}

func (r *rig) stop(t *testing.T) (errs error) {
	t.Helper()
	for _, f := range r.faces {
		errs = errors.Join(errs, f.Shutdown(context.Background()))
		require.NoError(t, f.Shutdown(context.Background()), "a second shutdown does nothing")
	}
	return errs
}

func (r *rig) counted(t *testing.T, name string) int64 {
	t.Helper()
	m, err := r.telemetry.GetMetric("otelcol_connector_clocks_" + name)
	require.NoError(t, err)
	return m.Data.(metricdata.Sum[int64]).DataPoints[0].Value
}

func (r *rig) models(t *testing.T) map[string]model.ClockModel {
	t.Helper()
	all := map[string]model.ClockModel{}
	for _, ld := range r.logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				if m, ok, err := clockmap.LogToModel(lr); ok {
					require.NoError(t, err)
					all[m.Clock] = m
				}
			}
		}
	}
	return all
}

const epoch = int64(1_795_000_000_000_000_000)

// edgeEvents are the pair of host a's clocks, whose real-time clock is skew ahead of
// those of hosts b and c, and probes between all.
func edgeEvents(skew int64) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("host.name", "node-a")
	rl.Resource().Attributes().PutStr("host.id", "a")
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	edge := func(src, dst string, offset int64, source string) {
		clockmap.EdgeToLog(&model.ClockEdge{
			Src: src, Dst: dst, At: 7e9, Span: 2e9, Lower: offset - 1000, Upper: offset + 1000, Offset: offset, Sigma: 50,
			DriftBound: 1e-8, Samples: 100, Source: source, Stamps: model.StampKernel,
		}, records.AppendEmpty())
	}
	edge("host:a/1/raw", "host:a/1/realtime", epoch+skew, model.EdgePair)
	edge("host:b/1/raw", "host:b/1/realtime", epoch, model.EdgePair)
	edge("host:c/1/raw", "host:c/1/realtime", epoch, model.EdgePair)
	edge("host:a/1/raw", "host:b/1/raw", 0, model.EdgeProbe)
	edge("host:a/1/raw", "host:c/1/raw", 0, model.EdgeProbe)
	edge("host:b/1/raw", "host:c/1/raw", 0, model.EdgeProbe)
	return ld
}

func TestEdgesBecomeModelsAndMetrics(t *testing.T) {
	r := newRig(t, nil, componenttest.NewNopHost(), nil)
	r.consume(t, edgeEvents(2_000_000))
	assert.Equal(t, int64(6), r.counted(t, "edges"), "one instance alone feeds the timeline")
	require.NoError(t, r.stop(t))
	models := r.models(t)
	require.Len(t, models, 6)
	a := models["host:a/1/realtime"]
	assert.InDelta(t, -2e6, float64(a.Offset), 300, "two of three agree")
	assert.GreaterOrEqual(t, a.Bound, int64(1000))
	assert.Equal(t, "timeline:", a.Timeline[:9])

	got := points(t, r.metrics.AllMetrics())
	assert.InDelta(t, -2e-3, got["lockstep.clock.offset"]["host:a/1/realtime"], 1e-6)
	assert.Len(t, got["lockstep.clock.offset"], 3, "of clocks that show Unix time")
	assert.Len(t, got["lockstep.clock.bound"], 6)
	assert.Len(t, got["lockstep.clock.drift"], 6)
	assert.InDelta(t, float64(a.Bound)/1e9, got["lockstep.clock.bound"]["host:a/1/realtime"], 1e-12)
}

// points returns the last values by metric and clock.
func points(t *testing.T, all []pmetric.Metrics) map[string]map[string]float64 {
	t.Helper()
	require.NotEmpty(t, all)
	got := map[string]map[string]float64{}
	md := all[len(all)-1]
	assert.Zero(t, md.ResourceMetrics().At(0).Resource().Attributes().Len())
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		got[m.Name()] = map[string]float64{}
		for _, p := range m.Gauge().DataPoints().All() {
			id, _ := p.Attributes().Get("lockstep.clock.id")
			got[m.Name()][id.Str()] = p.DoubleValue()
		}
	}
	return got
}

func TestSolvesOnTheInterval(t *testing.T) {
	r := newRig(t, nil, componenttest.NewNopHost(), func(c *Config) {
		c.SolveInterval, c.FlushInterval = time.Millisecond, time.Millisecond
	})
	r.consume(t, edgeEvents(0))
	require.Eventually(t, func() bool { return r.logs.LogRecordCount() >= 6 && len(r.metrics.AllMetrics()) > 3 }, 10*time.Second, time.Millisecond)
	require.NoError(t, r.stop(t))
	assert.Equal(t, 6, r.logs.LogRecordCount(), "a model is given out once")
}

func TestFindingsComeOut(t *testing.T) {
	r := newRig(t, nil, componenttest.NewNopHost(), func(c *Config) { c.SolveInterval = time.Millisecond })
	r.consume(t, edgeEvents(5_000_000))
	require.Eventually(t, func() bool { return r.logs.LogRecordCount() >= 6 }, 10*time.Second, time.Millisecond)
	later := edgeEvents(5_000_000)
	for _, lr := range later.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
		lr.Attributes().PutInt("lockstep.clock.at_nano", 9e9)
	}
	r.consume(t, later)
	require.NoError(t, r.stop(t))
	var found []model.Finding
	for _, ld := range r.logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				if f, ok := otelmap.LogToFinding(lr, nil); ok {
					found = append(found, f)
				}
			}
		}
	}
	require.Len(t, found, 1)
	// Other findings know a host by its name.
	assert.Equal(t, []string{"clock", "skew", "host:a/1/realtime", "node-a"}, []string{found[0].Kind, found[0].Class, found[0].Clock, found[0].Host})
}

// holder is a timeline extension.
type holder struct {
	component.StartFunc
	component.ShutdownFunc
	tl *timeline.Timeline
}

func (h holder) Timeline() *timeline.Timeline { return h.tl }

type hostWith map[component.ID]component.Component

func (h hostWith) GetExtensions() map[component.ID]component.Component { return h }

func TestUsesTheExtension(t *testing.T) {
	id := component.MustNewID("timeline")
	tl := timeline.New(timeline.Options{})
	r := newRig(t, nil, hostWith{id: holder{tl: tl}}, func(c *Config) { c.Timeline = &id })
	r.consume(t, edgeEvents(0))
	tl.Advance(time.Now()) // the extension's own interval
	require.NoError(t, r.stop(t))
	assert.Len(t, r.models(t), 6, "whoever solves, the connector gives it out")
	clock, ok := tl.Resolve("node-a")
	assert.True(t, ok)
	assert.Equal(t, "host:a/1/realtime", clock)
}

func TestExtensionMustHoldATimeline(t *testing.T) {
	id := component.MustNewID("timeline")
	cfg := newDefaultConfig()
	cfg.Timeline = &id
	for want, host := range map[string]hostWith{
		`find timeline: got no extension "timeline"`: {},
		"which holds none": {id: struct {
			component.StartFunc
			component.ShutdownFunc
		}{}},
	} {
		c, err := NewFactory().CreateLogsToLogs(context.Background(), connectortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.ErrorContains(t, c.Start(context.Background(), host), want)
		require.NoError(t, c.Shutdown(context.Background()))
	}
}

// What another gateway solved places clocks here, and is not given out again.
func TestModelsOfOthers(t *testing.T) {
	id := component.MustNewID("timeline")
	tl := timeline.New(timeline.Options{})
	r := newRig(t, nil, hostWith{id: holder{tl: tl}}, func(c *Config) { c.Timeline = &id })
	ld := plog.NewLogs()
	m := model.ClockModel{Clock: "host:a/1/raw", Timeline: "timeline:x", From: 0, Until: 2000, At: 1000, Offset: 500, Bound: 7}
	clockmap.ModelToLog(&m, ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
	r.consume(t, ld)
	p, ok := tl.Place("host:a/1/raw", 1500)
	require.True(t, ok)
	assert.Equal(t, int64(2000), p.Time)
	assert.Equal(t, "timeline:x", p.Timeline)
	assert.Equal(t, int64(1), r.counted(t, "models"))
	require.NoError(t, r.stop(t))
	assert.Zero(t, r.logs.LogRecordCount())
}

func TestBadEventsAreRefusedAndCounted(t *testing.T) {
	core, logged := observer.New(zapcore.WarnLevel)
	r := newRig(t, nil, componenttest.NewNopHost(), func(c *Config) { c.SolveInterval = time.Millisecond }, core)
	ld := edgeEvents(0)
	records := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	records.At(0).Attributes().PutInt("lockstep.clock.lower_nano", epoch+1001)
	records.At(1).Attributes().PutStr("lockstep.clock.source", "guess")
	clockmap.ModelToLog(&model.ClockModel{Clock: "c"}, records.AppendEmpty()) // no timeline
	records.AppendEmpty().Body().SetStr("hello")
	r.consume(t, ld)
	require.Eventually(t, func() bool { return logged.Len() > 0 }, 10*time.Second, time.Millisecond)
	assert.Contains(t, logged.All()[0].ContextMap()["error"], "read attribute lockstep.clock.timeline: got no name; want a timeline's", "the first that was read")
	assert.Equal(t, int64(3), r.counted(t, "refused"))
	assert.Equal(t, int64(1), r.counted(t, "foreign_records"))
	require.NoError(t, r.stop(t))
	assert.Len(t, r.models(t), 4, "the others count")
}

// A name that is no clock's is refused before it waits for the timeline.
func TestRead_LongNameOfAHost_IsRefused(t *testing.T) {
	long := strings.Repeat("x", model.MaxClockName+1)
	for name, names := range map[string][2]string{"name": {long, "a"}, "id": {"node-a", long}} {
		t.Run(name, func(t *testing.T) {
			c := &clocks{}
			ld := edgeEvents(0)
			with := c.read(ld).Bytes
			attributes := ld.ResourceLogs().At(0).Resource().Attributes()
			attributes.PutStr("host.name", names[0])
			attributes.PutStr("host.id", names[1])
			assert.Less(t, c.read(ld).Bytes, with)
			assert.Equal(t, int64(1), c.refused.Load())
		})
	}
}

func TestRefusalIsCounted(t *testing.T) {
	r := newRig(t, consumertest.NewErr(errors.New("no")), componenttest.NewNopHost(), nil)
	r.consume(t, edgeEvents(0))
	require.Error(t, r.faces[0].Shutdown(t.Context()))
	assert.Equal(t, int64(6), r.counted(t, "lost"))
	require.NoError(t, r.stop(t))
	assert.NotEmpty(t, r.metrics.AllMetrics(), "one that fails costs the others nothing")
}

func TestSeriesAreBoundedAndExpire(t *testing.T) {
	s := newMeasures(2)
	now := time.Unix(1000, 0)
	var models []model.ClockModel
	for _, id := range []string{"a", "b", "c"} {
		models = append(models, model.ClockModel{Clock: id, Offset: 5, Bound: model.NoBound})
	}
	models = append(models, model.ClockModel{Clock: "d", Untrusted: true})
	s.add(models, now)
	assert.Equal(t, 2, s.offset.Len())
	assert.Zero(t, s.bound.Len(), "nothing bounds them")
	md := pmetric.NewMetrics()
	otelmap.WriteMetrics(md, now, s.all()...)
	offsets := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
	require.Equal(t, 3, offsets.Len())
	assert.Equal(t, map[string]any{"otel.metric.overflow": true}, offsets.At(2).Attributes().AsRaw())
	s.expire(now.Add(time.Second))
	assert.Zero(t, s.offset.Len())
}

// Before anybody's time of day is known, a raw clock's offset is an epoch, however
// small it is.
func TestRawClocksHaveNoOffset(t *testing.T) {
	s := newMeasures(8)
	s.add([]model.ClockModel{
		{Clock: "host:a/b/raw", Offset: -4e12, Bound: 5},
		{Clock: "host:a/b/realtime", Offset: 7, Bound: 5},
	}, time.Unix(1000, 0))
	assert.Equal(t, 1, s.offset.Len())
	assert.Equal(t, 2, s.bound.Len())
}

// sharedTimeline is a timeline that several gateways have.
type sharedTimeline struct {
	component.StartFunc
	component.ShutdownFunc
	timeline *timeline.Timeline
}

func (s *sharedTimeline) Timeline() *timeline.Timeline { return s.timeline }

type hostOf map[component.ID]component.Component

func (h hostOf) GetExtensions() map[component.ID]component.Component { return h }

// What a gateway has observed itself goes out for all gateways; what comes from others does not go out again.
func TestSharedTimeline_OwnEdges_GoOut(t *testing.T) {
	id := component.MustNewID("timeline")
	shared := &sharedTimeline{timeline: timeline.New(timeline.Options{Shared: true})}
	r := newRig(t, nil, hostOf{id: shared}, func(c *Config) { c.Timeline = &id })
	own := model.ClockEdge{Src: "host:a/1/realtime", Dst: "host:b/1/realtime", At: epoch, Lower: -5, Upper: 9, Source: model.EdgeCall, Stamps: model.StampApplication}
	require.NoError(t, shared.timeline.Observe(own))
	r.consume(t, edgeEvents(0))
	require.NoError(t, r.stop(t))
	var got []model.ClockEdge
	for _, ld := range r.logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				e, ok, err := clockmap.LogToEdge(lr)
				require.NoError(t, err)
				require.True(t, ok, lr.EventName())
				got = append(got, e)
			}
		}
	}
	assert.Equal(t, []model.ClockEdge{own}, got)
}
