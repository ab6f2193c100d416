// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/lockstep-otel/lockstep/internal/replay"
	"github.com/lockstep-otel/lockstep/internal/testdata"
	"github.com/lockstep-otel/lockstep/receiver/torchtracereceiver/internal/metadata"
)

// refuser answers the first calls with an error and passes the others on.
type refuser struct {
	consumertest.TracesSink
	times atomic.Int64
	err   func(td ptrace.Traces) error
}

func (r *refuser) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if r.times.Add(-1) >= 0 {
		return r.err(td)
	}
	return r.TracesSink.ConsumeTraces(ctx, td)
}

func spansOf(t *testing.T, rank int) int {
	t.Helper()
	var sink consumertest.TracesSink
	start(t, config(recorded(t, rank)), &sink).finish(t)
	return sink.SpanCount()
}

func TestRefusedForNowIsOfferedAgain(t *testing.T) {
	sink := &refuser{err: func(ptrace.Traces) error { return errors.New("no memory now") }}
	sink.times.Store(3)
	b := start(t, config(recorded(t, 0)), sink)
	b.finish(t)
	assert.Equal(t, spansOf(t, 0), sink.SpanCount())
	assert.EqualValues(t, 3, b.counter(t, "delivery_retries"))
	assert.Zero(t, b.counter(t, "operations_dropped"))
}

func TestOnlyTheRefusedPartIsOfferedAgain(t *testing.T) {
	const kept = 1
	sink := &refuser{}
	sink.err = func(td ptrace.Traces) error {
		part := ptrace.NewTraces()
		td.CopyTo(part)
		spans := part.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		seen := 0
		spans.RemoveIf(func(ptrace.Span) bool { seen++; return seen <= kept })
		return consumererror.NewTraces(errors.New("full"), part)
	}
	sink.times.Store(1)
	b := start(t, config(recorded(t, 0)), sink)
	b.finish(t)
	assert.Equal(t, spansOf(t, 0)-kept, sink.SpanCount())
	assert.EqualValues(t, spansOf(t, 0), b.counter(t, "operations_emitted"), "the rest had been accepted before")
}

func TestRefusedForGoodIsDroppedAndCounted(t *testing.T) {
	sink := &refuser{}
	refused := 0
	sink.err = func(td ptrace.Traces) error {
		refused += td.SpanCount()
		return consumererror.NewPermanent(errors.New("no such span"))
	}
	sink.times.Store(2)
	b := start(t, config(recorded(t, 0)), sink)
	b.finish(t)
	assert.Positive(t, refused)
	assert.EqualValues(t, refused, b.counter(t, "operations_dropped"))
	assert.Equal(t, spansOf(t, 0)-refused, sink.SpanCount(), "the other steps arrive")
	assert.Zero(t, b.counter(t, "delivery_retries"))
	assert.True(t, b.said("Operations refused", "no such span"))
}

func TestRetryingEnds(t *testing.T) {
	cfg := config(recorded(t, 0))
	cfg.RetryOnFailure.MaxElapsedTime = 5 * time.Millisecond
	b := start(t, cfg, consumertest.NewErr(errors.New("never")))
	b.finish(t)
	assert.EqualValues(t, spansOf(t, 0), b.counter(t, "operations_dropped"))
	assert.True(t, b.said("retry_on_failure::max_elapsed_time", "never"))
}

func TestShutdownInterruptsRetrying(t *testing.T) {
	replay.Reset()
	t.Cleanup(replay.Reset)
	cfg := config(recorded(t, 0))
	cfg.RetryOnFailure.InitialInterval = time.Hour
	cfg.RetryOnFailure.MaxInterval = time.Hour
	cfg.RetryOnFailure.MaxElapsedTime = 0
	refused := make(chan struct{}, 1)
	next, err := consumer.NewTraces(func(context.Context, ptrace.Traces) error {
		select {
		case refused <- struct{}{}:
		default:
		}
		return errors.New("never")
	})
	require.NoError(t, err)
	b := start(t, cfg, next)
	<-refused
	assert.False(t, replayOver(), "what was read has not been accepted")
	require.NoError(t, b.Shutdown(t.Context()))
	assert.True(t, replayOver())
}

func TestShutdownKeepsItsDeadline(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	next, err := consumer.NewTraces(func(context.Context, ptrace.Traces) error {
		close(entered)
		<-release
		return nil
	})
	require.NoError(t, err)
	b := start(t, config(recorded(t, 0)), next)
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.Shutdown(ctx), context.DeadlineExceeded)
	close(release)
}

func TestShutdownWithoutStartAndTwice(t *testing.T) {
	replay.Reset()
	t.Cleanup(replay.Reset)
	cfg := config(testdata.Recording(t, "slow"))
	never, err := newReceiver(receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	started, err := newReceiver(receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	assert.Len(t, replay.Pending(), 2, "registered before any starts")

	require.NoError(t, never.Shutdown(t.Context()))
	require.NoError(t, never.Shutdown(t.Context()))
	assert.False(t, replayOver())
	require.NoError(t, started.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, started.Shutdown(t.Context()))
	require.NoError(t, started.Shutdown(t.Context()))
	assert.True(t, replayOver())
}

// The context of Start ends with the call.
func TestStartContextIsNotKept(t *testing.T) {
	var sink consumertest.TracesSink
	r, err := newReceiver(receivertest.NewNopSettings(metadata.Type), config(recorded(t, 0)), &sink)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Start(ctx, componenttest.NewNopHost()))
	<-r.finished
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Positive(t, sink.SpanCount())
}

func TestReceivedSpansAreReported(t *testing.T) {
	var sink consumertest.TracesSink
	b := start(t, config(recorded(t, 0)), &sink)
	b.finish(t)
	m, err := b.tel.GetMetric("otelcol_receiver_accepted_spans")
	require.NoError(t, err)
	assert.EqualValues(t, sink.SpanCount(), sumOf(t, m))
}
