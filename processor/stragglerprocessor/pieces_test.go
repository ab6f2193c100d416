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
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/processor/stragglerprocessor/internal/metadata"
)

// openStep is n operations of a step that the other ranks never end.
func openStep(n int) ptrace.Traces {
	rank := model.Rank{JobID: "job", Incarnation: "inc", WorldSize: model.Some(int64(world))}
	begin := time.Unix(1_700_000_000, 0).UnixNano()
	ops := make([]model.Op, n)
	for i := range ops {
		at := begin + int64(i)*int64(time.Microsecond)
		ops[i] = model.Op{Kind: model.KindCompute, Name: "gemm", Start: at, End: at + 900, Step: model.Some(int64(0)), Stream: model.Some(int64(7))}
	}
	return otelmap.OpsToTraces(&rank, ops)
}

// sizes are how many spans each call brought.
func sizes(sink *consumertest.TracesSink) (all []int) {
	for _, td := range sink.AllTraces() {
		all = append(all, td.SpanCount())
	}
	return all
}

func TestShutdownPassesOnWhatIsHeldInPieces(t *testing.T) {
	var sink consumertest.TracesSink
	p := start(t, &sink, hold(1<<20, time.Hour))
	consume(t, p, openStep(2*otelmap.MaxPieceSpans+1))
	require.Empty(t, sink.AllTraces(), "all of it is held")
	stop(t, p)
	assert.Equal(t, []int{otelmap.MaxPieceSpans, otelmap.MaxPieceSpans, 1}, sizes(&sink))
}

func TestAStepTooManyIsPassedOnInPieces(t *testing.T) {
	var sink consumertest.TracesSink
	p := start(t, &sink, hold(1, time.Hour))
	consume(t, p, openStep(otelmap.MaxPieceSpans+1))
	assert.Equal(t, []int{otelmap.MaxPieceSpans, 1}, sizes(&sink))
	stop(t, p)
}

// refusesFirst refuses the first call only.
type refusesFirst struct {
	consumertest.TracesSink
	err error
}

func (r *refusesFirst) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	err := r.err
	r.err = nil
	if err != nil {
		return err
	}
	return r.TracesSink.ConsumeTraces(ctx, td)
}

func TestARefusedPieceCostsTheOthersNothing(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	refused := errors.New("full")
	next := &refusesFirst{err: refused}
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	p := startWith(t, set, next, hold(1, time.Hour))
	require.ErrorIs(t, p.ConsumeTraces(context.Background(), openStep(otelmap.MaxPieceSpans+3)), refused)
	assert.Equal(t, []int{3}, sizes(&next.TracesSink))
	m, err := tel.GetMetric("otelcol_processor_straggler_spans_lost")
	require.NoError(t, err)
	assert.Equal(t, int64(otelmap.MaxPieceSpans), m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
	stop(t, p)
}
