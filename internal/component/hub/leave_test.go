// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// allOf concludes with a step trace and metrics besides the findings of a name.
func allOf(name string) Output {
	out := findings(name)
	out.FindingSpans = out.Findings
	out.StepTraces, out.Measured = []ptrace.Traces{stepTrace(name)}, true
	return out
}

// The engine is flushed as an output ends, and again where input came since; what comes later reaches the other
// outputs.
func TestLeave_OthersGetLaterInput_FlushedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude, r.Metrics = findings, r.toy.metrics
		flushes := []string{"a9", "b9"}
		r.Flush = func(time.Time) Output {
			out := findings(flushes[0])
			out.FindingSpans = out.Findings
			flushes = flushes[1:]
			return out
		}
		logs, spans, metrics, traces := r.logsToLogs(r.logs), r.tracesToLogs(consumertest.NewNop()), r.logsToMetrics(r.metrics), r.logsToTraces(r.traces)
		r.begin()
		require.NoError(t, metrics.Shutdown(t.Context()))
		assert.Len(t, flushes, 1)
		assert.Equal(t, []int64{1}, valuesOf(r.metrics))
		assert.Equal(t, []string{"a9"}, delivered(r.logs), "the other outputs get what was left, too")

		require.NoError(t, logs.Shutdown(t.Context()))
		assert.Len(t, flushes, 1, "another instance emits logs")
		require.NoError(t, spans.ConsumeTraces(t.Context(), spanBatch("d1")))
		synctest.Wait()
		assert.Equal(t, []string{"a9", "d1"}, delivered(r.logs))

		require.NoError(t, spans.Shutdown(t.Context()))
		assert.Equal(t, []string{"a9", "d1", "b9"}, delivered(r.logs))
		require.NoError(t, traces.Shutdown(t.Context()))
		assert.Empty(t, flushes)
		assert.Len(t, spansOf(r.traces), 2, "nothing came since the last flush")
		assert.Equal(t, []string{"a9", "d1", "b9"}, delivered(r.logs), "it has ended")
		assert.Zero(t, r.counts.EventsLost.Load())
	})
}

// The flush of another output gives spans as well: their next component has time to read them before it stops,
// though nothing is left when its own output ends.
func TestLeave_OtherOutputFlushed_NextHasTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Flush = func(time.Time) Output { return Output{FindingSpans: findingsIn("a1")} }
		logs, traces := r.logsToLogs(r.logs), r.logsToTraces(r.traces)
		r.begin()
		began := time.Now()
		require.NoError(t, logs.Shutdown(t.Context()))
		synctest.Wait()
		assert.Len(t, spansOf(r.traces), 1)
		assert.Zero(t, time.Since(began), "no log event was given")
		require.NoError(t, traces.Shutdown(t.Context()))
		assert.Equal(t, 200*time.Millisecond, time.Since(began))
	})
}

// An output that has ended gets nothing more: its next component may have stopped.
func TestLeave_OutputHasEnded_IsNotCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.FlushInterval, r.conclude, r.Metrics = tickEvery, allOf, r.toy.metrics
		r.start()
		r.tracesToLogs(consumertest.NewNop())
		require.NoError(t, r.instances[1].Shutdown(t.Context()))
		require.NoError(t, r.instances[2].Shutdown(t.Context()))
		metrics, traces := r.metrics.Calls(), r.traces.Calls()
		r.sendEach("a1")
		time.Sleep(2 * tickEvery)
		synctest.Wait()
		assert.Equal(t, []string{"a1"}, delivered(r.logs))
		assert.Equal(t, metrics, r.metrics.Calls())
		assert.Equal(t, traces, r.traces.Calls())
		assert.Equal(t, int64(3), r.counts.SpansLost.Load(), "a finding, and a step trace of two")
		r.stop()
	})
}

// A connector ends in time, whatever its next components do, and counts what it could not deliver.
func TestLeave_NextIsStuck_EndsInTimeAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Wait, r.conclude, r.Metrics = true, allOf, r.toy.metrics
		r.Flush = func(time.Time) Output { return allOf("z1") }
		stuck := delivertest.NewStuck(t)
		r.logsToLogs(stuck)
		r.logsToMetrics(stuck)
		r.logsToTraces(stuck)
		r.begin()
		began := time.Now()
		require.Error(t, r.send(t.Context(), "a1 b1"))
		assert.Equal(t, deliver.Patience, time.Since(began))
		for _, i := range r.instances {
			began = time.Now()
			require.ErrorIs(t, i.Shutdown(context.Background()), context.DeadlineExceeded)
			assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit)
		}
		assert.Equal(t, int64(2+1), r.counts.EventsLost.Load(), "a, b, and z of the flush")
		assert.Equal(t, int64(2+2+1*(1+2)), r.counts.SpansLost.Load(), "of findings, and of step traces")
	})
}

func TestLeave_Deadline_IsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = findings
		r.logsToLogs(delivertest.NewStuck(t))
		r.begin()
		r.sendEach("a1")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		require.Error(t, r.instances[0].Shutdown(ctx))
		assert.LessOrEqual(t, time.Since(began), 300*time.Millisecond)
		assert.Equal(t, int64(1), r.counts.EventsLost.Load())
	})
}

// What was refused is sent a last time at the end.
func TestLeave_FindingsAreKept_SentALastTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := &refusing{}
		refuse.on.Store(true)
		r := findingsRig(t, refuse.answer)
		r.Flush = func(time.Time) Output { return findings("a2") }
		r.sendEach("a1", "b1")
		refuse.on.Store(false)
		r.stop()
		assert.Equal(t, []string{"b1 a2"}, delivered(r.logs))
		assert.Zero(t, r.counts.EventsLost.Load())
	})
}

func TestLeave_LastFindingsAreRefused_ReportedAndLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := findingsRig(t, delivertest.Refuses(1000, assert.AnError))
		r.sendEach("a1 b1", "a2")
		err := r.instances[0].Shutdown(t.Context())
		require.ErrorIs(t, err, assert.AnError)
		require.ErrorContains(t, err, "deliver the last events: 2 are lost: ")
		assert.Equal(t, int64(2), r.counts.EventsLost.Load())
	})
}

// Findings that come while the last ones are sent are sent as well.
func TestLeave_FindingsComeMeanwhile_AreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = findings
		refuse := &refusing{}
		refuse.on.Store(true)
		r.logs = delivertest.NewNext(func(ctx context.Context, call int64) error {
			if !refuse.on.Load() {
				return delivertest.TakesAfter(time.Second)(ctx, call)
			}
			return assert.AnError
		})
		r.logsToLogs(r.logs)
		r.logsToMetrics(r.metrics)
		r.begin()
		r.sendEach("a1 b1")
		refuse.on.Store(false)
		stopped := make(chan error, 1)
		go func() { stopped <- r.instances[0].Shutdown(context.Background()) }()
		synctest.Wait()
		r.sendEach("a2", "c1")
		require.NoError(t, <-stopped)
		assert.Equal(t, []string{"a1 b1", "a2 c1"}, delivered(r.logs))
		assert.Zero(t, r.counts.EventsLost.Load())
		r.stop()
	})
}

// An engine that is busy for some seconds is waited for, and loses nothing. One that is busy for long is left behind.
func TestLeave_EngineIsBusy_IsWaitedForOrLeftBehind(t *testing.T) {
	for name, c := range map[string]struct {
		busy, took time.Duration
		calls      []string
		sent       []string
	}{
		"seconds": {5 * time.Second, 5*time.Second + 200*time.Millisecond, []string{"a1", "b1", "flush", "stop"}, []string{"a1", "b1", "z1"}},
		"long":    {time.Hour, 2 * deliver.ShutdownLimit, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.conclude = findings
				r.Flush = func(time.Time) Output { r.note("flush"); return findings("z1") }
				r.Stop = func() { r.note("stop") }
				r.logsToLogs(r.logs)
				r.begin()
				r.takes.Store(int64(2*tickEvery + c.busy))
				go func() { _ = r.send(context.Background(), "a1") }()
				synctest.Wait()
				r.takes.Store(0)
				r.mustSend("b1")
				time.Sleep(2 * tickEvery) // a tick waits for the engine, too
				began := time.Now()
				err := r.instances[0].Shutdown(context.Background())
				assert.Equal(t, c.took, time.Since(began))
				assert.Equal(t, c.calls, r.noted())
				assert.ElementsMatch(t, c.sent, words(delivered(r.logs)))
				if c.calls == nil {
					require.ErrorContains(t, err, "the analysis is busy")
					require.ErrorContains(t, err, "1 batches wait")
				} else {
					require.NoError(t, err)
				}
				time.Sleep(2 * c.busy)
			})
		})
	}
}

// A long flush is waited for as well, within the same limit; the output has its own time after it.
func TestLeave_FlushTakesLong_IsWaitedForOrLeftBehind(t *testing.T) {
	for name, c := range map[string]struct {
		flush, took time.Duration
		sent        []string
	}{
		"seconds": {8 * time.Second, 10*time.Second + 200*time.Millisecond, []string{"z1"}},
		"long":    {time.Hour, 2 * deliver.ShutdownLimit, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.Flush = func(time.Time) Output { time.Sleep(c.flush); return findings("z1") }
				r.logs = delivertest.NewNext(delivertest.TakesAfter(2 * time.Second))
				r.logsToLogs(r.logs)
				r.begin()
				began := time.Now()
				err := r.instances[0].Shutdown(context.Background())
				assert.Equal(t, c.took, time.Since(began))
				assert.Equal(t, c.sent, delivered(r.logs))
				assert.Equal(t, c.sent == nil, err != nil, "%v", err)
				time.Sleep(2 * c.flush)
			})
		})
	}
}

// A flush that ends in time is not lost for a storage that is slow behind it.
func TestLeave_FlushIsInTimeAndStorageSlow_LastEventsAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, state := &slowStorage{}, &counter{}
		disk.takes.Store(int64(700 * time.Millisecond))
		r := newRig(t)
		r.Storage, r.States = &id, map[string]State{"counter": state}
		r.Flush = func(time.Time) Output { time.Sleep(8500 * time.Millisecond); state.n++; return findings("z1") }
		r.host = host{componenttest.NewNopHost(), map[component.ID]component.Component{id: disk}}
		r.logsToLogs(r.logs)
		r.begin()
		require.NoError(t, r.instances[0].Shutdown(context.Background()))
		assert.Equal(t, []string{"z1"}, delivered(r.logs))
	})
}

// An engine that was left behind is not waited for again with each output.
func TestLeave_EngineIsBusy_FurtherOutputsEndSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.takes.Store(int64(time.Hour))
		go func() { _ = r.send(context.Background(), "busy") }()
		synctest.Wait()
		var took []time.Duration
		for _, i := range r.instances {
			began := time.Now()
			require.ErrorContains(t, i.Shutdown(context.Background()), "the analysis is busy")
			took = append(took, time.Since(began))
		}
		assert.Equal(t, []time.Duration{9 * time.Second, time.Second, 2 * time.Second}, took, "the last ends the engine, too")
		time.Sleep(2 * time.Hour)
	})
}

// Events that are refused for now cost no others at the end.
func TestLeave_OneIsRefusedForNow_OthersAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		next := newPicky(t, 0, assert.AnError, "c1", "g1")
		r.Flush = func(time.Time) Output { return findings("a1 b1 c1 d1 e1 f1 g1 h1") }
		r.logsToLogs(next)
		r.begin()
		require.ErrorContains(t, r.instances[0].Shutdown(t.Context()), "2 are lost")
		assert.ElementsMatch(t, []string{"a1", "b1", "d1", "e1", "f1", "h1"}, words(next.got))
		assert.Equal(t, int64(2), r.counts.EventsLost.Load())
		assert.Equal(t, int64(8+(8+4+4+2+1)+(5+3+2+1)), r.counts.EventsRefused.Load(), "as they were flushed; abcdefgh abcd cdef cd c; defgh fgh gh g")
	})
}

// A deadline leaves half of the time to the output.
func TestLeave_EngineIsBusyAndDeadline_LastEventsAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := &refusing{}
		refuse.on.Store(true)
		r := findingsRig(t, refuse.answer)
		r.sendEach("a1")
		refuse.on.Store(false)
		r.takes.Store(int64(time.Hour))
		go func() { _ = r.send(context.Background(), "busy") }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		require.ErrorContains(t, r.instances[0].Shutdown(ctx), "the analysis is busy")
		assert.Equal(t, []string{"a1"}, delivered(r.logs))
		time.Sleep(2 * time.Hour)
	})
}

// The call with what was flushed is cancelled before it is left behind, and no log record promises that it is sent again.
func TestLeave_NextTakesLong_LastCallIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Flush = func(time.Time) Output { return findings("a1") }
		r.logsToLogs(delivertest.NewNext(delivertest.TakesAfter(time.Hour)))
		r.begin()
		err := r.instances[0].Shutdown(context.Background())
		require.ErrorContains(t, err, "deliver the last events: 1 are lost")
		assert.NotContains(t, err.Error(), "did not return")
		assert.Zero(t, r.log.FilterMessageSnippet("sent again").Len(), "%v", r.log.All())
	})
}

// An output that ends takes nothing from one that has not.
func TestLeave_OtherOutputIsSlow_KeepsItsStepTraces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Wait = true
		r.Flush = func(time.Time) (out Output) {
			for range 4 {
				out.StepTraces = append(out.StepTraces, stepTrace("x"))
			}
			return out
		}
		r.traces = delivertest.NewNext(delivertest.TakesAfter(900 * time.Millisecond))
		logs, traces := r.logsToLogs(r.logs), r.logsToTraces(r.traces)
		r.begin()
		began := time.Now()
		require.NoError(t, logs.Shutdown(t.Context()))
		assert.Zero(t, time.Since(began))
		require.NoError(t, traces.Shutdown(t.Context()))
		assert.Len(t, spansOf(r.traces), 4)
		assert.Zero(t, r.counts.SpansLost.Load())
	})
}

// The end of an output does not wait for what the flush gave another.
func TestLeave_OtherOutputIsSlow_DoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Flush = func(time.Time) Output { return Output{FindingSpans: findingsIn("a1")} }
		r.traces = delivertest.NewNext(delivertest.TakesAfter(900 * time.Millisecond))
		logs, traces := r.logsToLogs(r.logs), r.logsToTraces(r.traces)
		r.begin()
		began := time.Now()
		require.NoError(t, logs.Shutdown(t.Context()))
		assert.Zero(t, time.Since(began))
		require.NoError(t, traces.Shutdown(t.Context()))
		assert.Len(t, spansOf(r.traces), 1)
	})
}

// One event that is refused for good costs no other one at the end, either.
func TestLeave_OneIsRefusedForGood_OthersAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = findings
		down := true
		var got []string
		next, err := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error {
			text := textOf(ld)
			switch {
			case down:
				return assert.AnError
			case strings.Contains(text, "c1"):
				return consumererror.NewPermanent(assert.AnError)
			}
			got = append(got, strings.Fields(text)...)
			return nil
		})
		require.NoError(t, err)
		r.logsToLogs(next)
		r.begin()
		r.sendEach("a1 b1 c1 d1 e1")
		down = false
		require.ErrorContains(t, r.instances[0].Shutdown(t.Context()), "deliver the last events: 1 are lost")
		assert.ElementsMatch(t, []string{"a1", "b1", "d1", "e1"}, got)
		assert.Equal(t, int64(1), r.counts.EventsLost.Load())
	})
}

// The error of the end has one reason, however many calls were refused.
func TestLeave_ManyCallsAreRefused_OneReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = func(string) Output { return Output{Findings: numbered(20_000, 1)} }
		r.logsToLogs(delivertest.NewNext(delivertest.Refuses(math.MaxInt64, assert.AnError)))
		r.begin()
		r.sendEach("all")
		err := r.instances[0].Shutdown(t.Context())
		require.ErrorContains(t, err, "20000 are lost")
		assert.Less(t, len(err.Error()), 300)
	})
}
