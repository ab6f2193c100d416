// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

const base = int64(1_700_000_000_123_456_789)

// known are clocks that stand by a constant offset, ns, known to 1 µs.
type known map[string]int64

func (k known) Place(id string, reading int64) (clock.Placement, bool) {
	offset, ok := k[id]
	if !ok {
		return clock.Placement{}, false
	}
	return clock.Placement{Time: reading + offset, Offset: offset, Bound: 1000, Bounded: true, Timeline: "timeline:x"}, true
}

func (k known) PlaceAll(id string, readings []int64, to []clock.Placement) []clock.Placement {
	for _, r := range readings {
		p, _ := k.Place(id, r)
		to = append(to, p)
	}
	return to
}

func (k known) Between(a string, _ int64, b string, _ int64) (int64, bool) {
	if a == b {
		return 0, true
	}
	return 2000, true
}
func (known) AddEdge(model.ClockEdge) error          { return nil }
func (known) Resolve(string) (string, bool)          { return "", false }
func (known) Advance(time.Time) (o timeline.Outcome) { return o }

// pair is a parent on host a, and a child on host b that starts after it by what
// is given, ns.
func pair(after int64) ptrace.Traces {
	td := ptrace.NewTraces()
	for i, host := range []string{"a", "b"} {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(semconv.HostID, host)
		rs.Resource().Attributes().PutStr(semconv.ServiceName, "shop")
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID(pcommon.TraceID{1})
		s.SetSpanID(pcommon.SpanID{byte(i + 1)})
		s.SetStartTimestamp(pcommon.Timestamp(base + int64(i)*after))
		s.SetEndTimestamp(s.StartTimestamp() + 5_000_000)
		if i == 1 {
			s.SetParentSpanID(pcommon.SpanID{1})
		}
	}
	return td
}

func start(t *testing.T, mode string, c clocks) (*skew, *consumertest.TracesSink, *componenttest.Telemetry) {
	t.Helper()
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	cfg := newDefaultConfig()
	cfg.Mode = mode
	sink := new(consumertest.TracesSink)
	p, err := newSkew(cfg, tel.NewTelemetrySettings(), sink)
	require.NoError(t, err)
	p.use(c)
	return p, sink, tel
}

func startsOf(td ptrace.Traces) (out []int64) {
	for _, rs := range td.ResourceSpans().All() {
		out = append(out, int64(rs.ScopeSpans().At(0).Spans().At(0).StartTimestamp())-base)
	}
	return out
}

func TestModes(t *testing.T) {
	clocks := known{"host:a/?/realtime": 0, "host:b/?/realtime": 3_000_000}
	for mode, want := range map[string][]int64{ModeRealign: {0, 2_000_000}, ModeAnnotate: {0, -1_000_000}, ModeOff: {0, -1_000_000}} {
		t.Run(mode, func(t *testing.T) {
			p, sink, _ := start(t, mode, clocks)
			require.NoError(t, p.ConsumeTraces(t.Context(), pair(-1_000_000)))
			require.Len(t, sink.AllTraces(), 1)
			td := sink.AllTraces()[0]
			assert.Equal(t, want, startsOf(td))
			verdict, ok := td.ResourceSpans().At(1).ScopeSpans().At(0).Spans().At(0).Attributes().Get(semconv.CausalityVerdict)
			assert.Equal(t, mode != ModeOff, ok)
			if ok {
				assert.Equal(t, semconv.VerdictArtefact, verdict.Str())
			}
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
}

// Models of a timeline without a date move no span; those of a dated one do, also where several gateways share it.
func TestModels_Undated_MoveNoSpan(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for undated, want := range map[bool][]int64{true: {0, -1_000_000}, false: {0, 2_000_000}} {
			tl := timeline.New(timeline.Options{Shared: shared, Now: func() time.Time { return time.Unix(0, base+1e9) }})
			for host, offset := range map[string]int64{"a": 0, "b": 3_000_000} {
				require.NoError(t, tl.AddModel(model.ClockModel{
					Clock: "host:" + host + "/?/realtime", Timeline: "timeline:host:a/?/raw", From: base - 1e9, Until: base + 1e9, At: base,
					Offset: offset, Bound: 1000, Undated: undated,
				}))
			}
			p, sink, _ := start(t, ModeRealign, observer{tl})
			require.NoError(t, p.ConsumeTraces(t.Context(), pair(-1_000_000)))
			require.NoError(t, p.Shutdown(t.Context()))
			require.Len(t, sink.AllTraces(), 1)
			assert.Equal(t, want, startsOf(sink.AllTraces()[0]), "shared %t, undated %t", shared, undated)
		}
	}
}

func TestMetrics(t *testing.T) {
	p, _, tel := start(t, ModeRealign, known{"host:a/?/realtime": 0, "host:b/?/realtime": 0})
	require.NoError(t, p.ConsumeTraces(t.Context(), pair(-1_000_000)))
	points := func(name string) (out []metricdata.DataPoint[int64]) {
		m, err := tel.GetMetric(name)
		require.NoError(t, err)
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			return d.DataPoints
		case metricdata.Gauge[int64]:
			return d.DataPoints
		}
		return nil
	}
	violations := map[string]int64{}
	for _, dp := range points(semconv.MetricCausalityViolations) {
		verdict, _ := dp.Attributes.Value(semconv.PointVerdict)
		job, _ := dp.Attributes.Value(semconv.JobID)
		assert.Equal(t, "shop", job.AsString())
		violations[verdict.AsString()] = dp.Value
	}
	assert.Equal(t, map[string]int64{
		semconv.VerdictArtefact: 0, semconv.VerdictUndecided: 0, semconv.VerdictViolation: 1, semconv.VerdictIntroduced: 0,
	}, violations)
	require.Len(t, points(semconv.MetricCausalityHealth), 1)
	assert.Zero(t, points(semconv.MetricCausalityHealth)[0].Value)
	assert.EqualValues(t, 2, points("otelcol_processor_clock_skew_spans")[0].Value)
	assert.EqualValues(t, 2, points("otelcol_processor_clock_skew_clocks")[0].Value)
	assert.EqualValues(t, 1, points("otelcol_processor_clock_skew_samples")[0].Value)
	require.NoError(t, p.Shutdown(t.Context()))
}

// TestInstancesReportTogether: a collector has one for each pipeline, and their metrics
// are the same series. The healthy one does not hide the other, and whoever is gone is
// counted no more.
func TestInstancesReportTogether(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	clocks := known{"host:a/?/realtime": 0, "host:b/?/realtime": 0}
	value := func(name, verdict string) (sum int64, points int) {
		m, err := tel.GetMetric(name)
		if err != nil {
			return 0, 0
		}
		var all []metricdata.DataPoint[int64]
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			all = d.DataPoints
		case metricdata.Gauge[int64]:
			all = d.DataPoints
		}
		for _, dp := range all {
			if v, ok := dp.Attributes.Value(semconv.PointVerdict); !ok || v.AsString() == verdict {
				sum += dp.Value
				points++
			}
		}
		return sum, points
	}
	var all []*skew
	for _, after := range []int64{-1_000_000, 1_000_000} {
		p, err := newSkew(newDefaultConfig(), tel.NewTelemetrySettings(), consumertest.NewNop())
		require.NoError(t, err)
		p.use(clocks)
		require.NoError(t, p.ConsumeTraces(t.Context(), pair(after)))
		all = append(all, p)
	}
	health, _ := value(semconv.MetricCausalityHealth, "")
	assert.Zero(t, health, "one of two relations is wrong")
	violations, _ := value(semconv.MetricCausalityViolations, semconv.VerdictViolation)
	assert.EqualValues(t, 1, violations)
	spans, _ := value("otelcol_processor_clock_skew_spans", "")
	assert.EqualValues(t, 4, spans)

	require.NoError(t, all[0].Shutdown(t.Context()))
	health, _ = value(semconv.MetricCausalityHealth, "")
	assert.EqualValues(t, 1, health)
	require.NoError(t, all[1].Shutdown(t.Context()))
	_, points := value(semconv.MetricCausalityHealth, "")
	assert.Zero(t, points, "nobody is left to report")
	collectors.mu.Lock()
	defer collectors.mu.Unlock()
	for _, in := range collectors.of {
		assert.NotContains(t, in.all, all[0])
		assert.NotContains(t, in.all, all[1])
	}
}

// host has extensions.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

type provider struct {
	component.StartFunc
	component.ShutdownFunc
	t *timeline.Timeline
}

func (p provider) Timeline() *timeline.Timeline { return p.t }

type stranger struct {
	component.StartFunc
	component.ShutdownFunc
}

func TestTheTimelineIsLookedUp(t *testing.T) {
	id := component.MustNewID("timeline")
	cfg := newDefaultConfig()
	cfg.Timeline = &id
	p, err := newSkew(cfg, componenttest.NewNopTelemetrySettings(), consumertest.NewNop())
	require.NoError(t, err)
	require.ErrorContains(t, p.Start(t.Context(), host{}), `find timeline: no extension "timeline"; want one that is listed under service::extensions`)
	require.ErrorContains(t, p.Start(t.Context(), host{id: stranger{}}), `find timeline: extension "timeline" is a clockskewprocessor.stranger; want one of type timeline`)
	shared := timeline.New(timeline.Options{})
	require.NoError(t, p.Start(t.Context(), host{id: provider{t: shared}}))
	assert.Equal(t, observer{shared}, p.clocks)
	require.NoError(t, p.Shutdown(t.Context()))
}
