// SPDX-License-Identifier: Apache-2.0

package stragglerprocessor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/processor/stragglerprocessor/internal/metadata"
)

const (
	ms    = int64(time.Millisecond)
	world = 4
	slow  = 2
)

// ofRank is one rank's step: compute, an all-reduce that ends for all at once,
// the step. Rank slow computes for 30 ms, the others for 10.
func ofRank(n, r int64) ptrace.Traces {
	start := time.Unix(1_700_000_000, 0).UnixNano() + n*100*ms
	compute := 10 * ms
	if r == slow {
		compute = 30 * ms
	}
	rank := model.Rank{JobID: "job", Incarnation: "inc", Rank: r, WorldSize: model.Some(int64(world))}
	return otelmap.OpsToTraces(&rank, []model.Op{
		{Kind: model.KindCompute, Name: "gemm", Start: start, End: start + compute, Step: model.Some(n), Stream: model.Some(int64(7))},
		{
			Kind: model.KindCollective, Name: "all_reduce", Start: start + compute, End: start + 31*ms, Step: model.Some(n), Stream: model.Some(int64(20)),
			Comm:       model.Comm{ID: "c", Size: model.Some(int64(world))},
			Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(n), SeqScope: model.ScopeCommFunc},
		},
		{Kind: model.KindStep, Name: "step", Start: start, End: start + 31*ms, Step: model.Some(n)},
	})
}

// ofAll is one step of all ranks in one batch.
func ofAll(n int64) ptrace.Traces {
	td := ptrace.NewTraces()
	for r := range int64(world) {
		ofRank(n, r).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	}
	return td
}

func foreign() ptrace.Traces {
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("GET /")
	return td
}

func start(t *testing.T, next consumer.Traces, change func(*Config)) processor.Traces {
	t.Helper()
	return startWith(t, processortest.NewNopSettings(metadata.Type), next, change)
}

func startWith(t *testing.T, set processor.Settings, next consumer.Traces, change func(*Config)) processor.Traces {
	t.Helper()
	cfg := newDefaultConfig()
	if change != nil {
		change(cfg)
	}
	p, err := NewFactory().CreateTraces(context.Background(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, p.Start(context.Background(), componenttest.NewNopHost()))
	return p
}

func consume(t *testing.T, p processor.Traces, td ptrace.Traces) {
	t.Helper()
	require.NoError(t, p.ConsumeTraces(context.Background(), td))
}

func stop(t *testing.T, p processor.Traces) {
	t.Helper()
	require.NoError(t, p.Shutdown(context.Background()))
	require.NoError(t, p.Shutdown(context.Background()), "a second shutdown does nothing")
}

// having counts the spans that carry an attribute.
func having(sink *consumertest.TracesSink, attribute string) (n int) {
	for _, td := range sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if _, ok := s.Attributes().Get(attribute); ok {
						n++
					}
				}
			}
		}
	}
	return n
}

func hold(maxSpans int, interval time.Duration) func(*Config) {
	return func(c *Config) {
		h := c.Hold.GetOrInsertDefault()
		h.MaxSpans, h.FlushInterval = maxSpans, interval
	}
}

func TestACompleteStepIsAnnotatedInTheSameCall(t *testing.T) {
	var sink consumertest.TracesSink
	p := start(t, &sink, nil)
	consume(t, p, ofAll(0))
	assert.Equal(t, 3*world, sink.SpanCount())
	assert.Equal(t, world, having(&sink, "lockstep.wait.owed_to"))
	assert.Equal(t, world, having(&sink, "lockstep.summary.wait"))
	assert.Equal(t, world, having(&sink, "lockstep.summary.histograms"))
	stop(t, p)
}

func TestHistogramsCanBeLeftOut(t *testing.T) {
	var sink consumertest.TracesSink
	p := start(t, &sink, func(c *Config) { c.Histograms = false })
	consume(t, p, ofAll(0))
	assert.Equal(t, world, having(&sink, "lockstep.summary.wait"))
	assert.Zero(t, having(&sink, "lockstep.summary.histograms"))
	stop(t, p)
}

// Without hold nothing waits: what came before the step was complete is passed
// on as it is.
func TestWithoutHoldNothingWaits(t *testing.T) {
	var sink consumertest.TracesSink
	p := start(t, &sink, nil)
	for r := range int64(world) {
		consume(t, p, ofRank(0, r))
		assert.Equal(t, 3*int(r+1), sink.SpanCount())
	}
	assert.Equal(t, 1, having(&sink, "lockstep.wait.owed_to"), "the last rank's")
	stop(t, p)
}

// A finding that stands is written on spans of steps that are not complete, too.
func TestStandingFindingsAreWrittenInTheSameCall(t *testing.T) {
	var sink consumertest.TracesSink
	p := start(t, &sink, nil)
	for n := range int64(8) {
		consume(t, p, ofAll(n))
	}
	sink.Reset()
	consume(t, p, ofRank(8, slow))
	consume(t, p, ofRank(8, slow+1))
	assert.Equal(t, 6, sink.SpanCount())
	assert.Equal(t, 2, having(&sink, "lockstep.straggler.class"), "the step of the slow rank, and what is slow in it")
	assert.Equal(t, 1, having(&sink, "lockstep.finding.id"))
	assert.Equal(t, 1, having(&sink, "lockstep.straggler.excess"), "what is typical of the rank")
	assert.Zero(t, having(&sink, "lockstep.summary.wait"), "the step has not been analysed")
	stop(t, p)
}

func TestHoldAnnotatesEverything(t *testing.T) {
	var sink consumertest.TracesSink
	p := start(t, &sink, hold(1000, time.Hour))
	for r := range int64(world - 1) {
		consume(t, p, ofRank(0, r))
	}
	assert.Zero(t, sink.SpanCount())
	consume(t, p, ofRank(0, world-1))
	assert.Equal(t, 3*world, sink.SpanCount())
	assert.Equal(t, world, having(&sink, "lockstep.wait.owed_to"))
	assert.Equal(t, world, having(&sink, "lockstep.summary.wait"))
	stop(t, p)
	assert.Equal(t, 3*world, sink.SpanCount())
}

func TestHoldPassesForeignSpansAtOnce(t *testing.T) {
	var sink consumertest.TracesSink
	p := start(t, &sink, hold(1000, time.Hour))
	td := ofRank(0, 0)
	foreign().ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	consume(t, p, td)
	assert.Equal(t, 1, sink.SpanCount())
	stop(t, p)
}

func TestForeignSpansPassUntouched(t *testing.T) {
	for name, change := range map[string]func(*Config){"in the same call": nil, "held": hold(10, time.Hour)} {
		t.Run(name, func(t *testing.T) {
			var sink consumertest.TracesSink
			p := start(t, &sink, change)
			consume(t, p, foreign())
			require.Len(t, sink.AllTraces(), 1)
			assert.Equal(t, foreign(), sink.AllTraces()[0])
			stop(t, p)
		})
	}
}

// The resource, scope and order of held spans survive.
func TestHeldSpansAreWhole(t *testing.T) {
	var sink consumertest.TracesSink
	p := start(t, &sink, hold(1000, time.Hour))
	in := ofRank(0, 1)
	in.ResourceSpans().At(0).SetSchemaUrl("schema")
	want := ptrace.NewTraces()
	in.CopyTo(want)
	consume(t, p, in)
	p.(*annotating).cfg.Histograms = false
	stop(t, p)
	require.Len(t, sink.AllTraces(), 1)
	got := sink.AllTraces()[0]
	require.Equal(t, want.SpanCount(), got.SpanCount())
	rs, wantRS := got.ResourceSpans().At(0), want.ResourceSpans().At(0)
	assert.Equal(t, wantRS.Resource().Attributes().AsRaw(), rs.Resource().Attributes().AsRaw())
	assert.Equal(t, "schema", rs.SchemaUrl())
	assert.Equal(t, wantRS.ScopeSpans().At(0).Scope().Name(), rs.ScopeSpans().At(0).Scope().Name())
	for i, s := range wantRS.ScopeSpans().At(0).Spans().All() {
		assert.Equal(t, s.SpanID(), rs.ScopeSpans().At(0).Spans().At(i).SpanID())
	}
}

func TestHoldIsBounded(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	var sink consumertest.TracesSink
	p := startWith(t, set, &sink, hold(7, time.Hour))
	for n := range int64(3) {
		consume(t, p, ofRank(n, 0))
	}
	assert.Equal(t, 3, sink.SpanCount(), "the oldest step")
	assert.Zero(t, having(&sink, "lockstep.summary.wait"))
	m, err := telemetry.GetMetric("otelcol_processor_straggler_steps_unannotated")
	require.NoError(t, err)
	assert.Equal(t, int64(1), m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
	m, err = telemetry.GetMetric("otelcol_processor_straggler_spans_held")
	require.NoError(t, err)
	assert.Equal(t, int64(6), m.Data.(metricdata.Gauge[int64]).DataPoints[0].Value)
	stop(t, p)
	assert.Equal(t, 9, sink.SpanCount())
	require.NoError(t, telemetry.Shutdown(context.Background()))
}

func TestHoldEndsWithTheDeadline(t *testing.T) {
	var sink consumertest.TracesSink
	p := start(t, &sink, func(c *Config) {
		hold(1000, 5*time.Millisecond)(c)
		c.Analysis.Deadline = 20 * time.Millisecond
	})
	consume(t, p, ofRank(0, 0))
	require.Eventually(t, func() bool { return sink.SpanCount() == 3 }, 5*time.Second, time.Millisecond)
	assert.Equal(t, 1, having(&sink, "lockstep.summary.wait"), "annotated as far as is known")
	consume(t, p, ofRank(0, 1)) // late: the step has been analysed
	require.Eventually(t, func() bool { return sink.SpanCount() == 6 }, 5*time.Second, time.Millisecond)
	stop(t, p)
}

func TestErrors(t *testing.T) {
	p := start(t, consumertest.NewErr(errors.New("no")), nil)
	err := p.ConsumeTraces(context.Background(), ofAll(0))
	require.Error(t, err)
	assert.False(t, consumererror.IsPermanent(err), "nothing is kept: the sender may repeat")
	stop(t, p)

	p = start(t, consumertest.NewErr(errors.New("no")), hold(1000, time.Hour))
	consume(t, p, ofRank(0, 0))
	assert.True(t, consumererror.IsPermanent(p.ConsumeTraces(context.Background(), foreign())), "the rest of the batch may be held")
	require.Error(t, p.Shutdown(context.Background()), "what is held is lost")
}
