// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/rankevents"
)

// oneFirst takes the first event of its first batch and refuses the others of it.
type oneFirst struct {
	consumertest.LogsSink
	calls int
}

func (o *oneFirst) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	if o.calls++; o.calls > 1 {
		return o.LogsSink.ConsumeLogs(ctx, ld)
	}
	taken, rest := plog.NewLogs(), plog.NewLogs()
	ld.CopyTo(taken)
	ld.CopyTo(rest)
	n := 0
	records := func(of plog.Logs) plog.LogRecordSlice { return of.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords() }
	records(taken).RemoveIf(func(plog.LogRecord) bool { n++; return n > 1 })
	n = 0
	records(rest).RemoveIf(func(plog.LogRecord) bool { n++; return n == 1 })
	if err := o.LogsSink.ConsumeLogs(ctx, taken); err != nil {
		return err
	}
	return consumererror.NewLogs(errors.New("memory is short"), rest)
}

func TestDeliver_EventsRefusedInPart_OnlyThoseAgain(t *testing.T) {
	rd, _ := readerOf(t, t.TempDir())
	sink := &oneFirst{}
	rd.logsTo(sink)
	open := []model.OpenOp{{Status: model.StatusOpen}, {Status: model.StatusOpen}, {Status: model.StatusOpen}}
	rd.deliver(&tracked{}, &rankevents.Batch{Open: open})
	assert.Equal(t, 2, sink.calls)
	assert.Equal(t, len(open), sink.LogRecordCount())
}

// half takes every second span of its first batch, from the given one on, and refuses the others of it.
type half struct {
	consumertest.TracesSink
	from, calls int
}

func (h *half) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if h.calls++; h.calls > 1 {
		return h.TracesSink.ConsumeTraces(ctx, td)
	}
	part := func(remainder int) ptrace.Traces {
		out, n := ptrace.NewTraces(), 0
		td.CopyTo(out)
		out.ResourceSpans().At(0).ScopeSpans().At(0).Spans().RemoveIf(func(ptrace.Span) bool { n++; return n%2 != remainder })
		return out
	}
	if err := h.TracesSink.ConsumeTraces(ctx, part(h.from)); err != nil {
		return err
	}
	return consumererror.NewTraces(errors.New("memory is short"), part(1-h.from))
}

// distinct returns how many different spans a sink has.
func distinct(sink *consumertest.TracesSink) int {
	names := map[string]bool{}
	for _, td := range sink.AllTraces() {
		for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			names[s.SpanID().String()] = true
		}
	}
	return len(names)
}

// What two branches refuse of one batch differs: each must get what it refused.
func TestDeliver_TwoBranchesRefuseInPart_NothingIsLost(t *testing.T) {
	rd, b := readerOf(t, t.TempDir())
	odd, even := &half{from: 1}, &half{from: 0}
	branches := connector.NewTracesRouter(map[pipeline.ID]consumer.Traces{
		pipeline.NewIDWithName(pipeline.SignalTraces, "odd"):  odd,
		pipeline.NewIDWithName(pipeline.SignalTraces, "even"): even,
	})
	rd.tracesTo(branches)
	ops := make([]model.Op, 4)
	for i := range ops {
		ops[i] = model.Op{Kind: model.KindCollective, Name: "all_reduce", Start: int64(i + 1), End: int64(i + 2), Step: model.Some(int64(i))}
	}
	rd.deliver(&tracked{}, &rankevents.Batch{Rank: model.Rank{JobID: "job", Incarnation: "a"}, Ops: ops})
	require.Equal(t, []int{2, 2}, []int{odd.calls, even.calls})
	assert.Equal(t, []int{4, 4}, []int{distinct(&odd.TracesSink), distinct(&even.TracesSink)})
	assert.EqualValues(t, 4, b.counter(t, "operations_emitted"))
}
