// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// steps concludes with a step trace of two spans for each batch, a finding, and metrics.
func steps(name string) Output {
	return Output{Findings: findingsIn("a1"), StepTraces: []ptrace.Traces{stepTrace(name), ptrace.NewTraces()}, Measured: true}
}

func stepTrace(name string) ptrace.Traces {
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	spans.AppendEmpty().SetName(name)
	spans.AppendEmpty().SetName("child")
	return td
}

// stepsRig is a rig with all outputs, whose senders wait.
func stepsRig(t *testing.T, traces delivertest.Answer) *rig {
	t.Helper()
	r := newRig(t)
	r.Wait, r.conclude, r.Metrics = true, steps, r.toy.metrics
	r.traces = delivertest.NewNext(traces)
	r.start()
	return r
}

func TestStepTraces_NextTakes_EachIsSentOnceInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stepsRig(t, delivertest.Takes)
		r.mustSend("1", "2", "3")
		assert.Equal(t, []string{"1 child", "2 child", "3 child"}, spansOf(r.traces))
		assert.Equal(t, int64(3), r.traces.Calls(), "no call without spans")
		assert.Zero(t, r.counts.SpansLost.Load())
		r.stop()
	})
}

// The engine has used the spans: the same again would be duplicates.
func TestStepTraces_Refused_SenderGetsAPermanentError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, used := stepsRig(t, delivertest.Refuses(1, assert.AnError)), 0
		r.Used = func(context.Context) { used++ }
		err := r.send(t.Context(), "1")
		assert.Equal(t, 1, used)
		require.ErrorIs(t, err, assert.AnError)
		require.ErrorContains(t, err, "deliver step traces of data that were analysed")
		assert.True(t, consumererror.IsPermanent(err))
		assert.Equal(t, int64(2), r.counts.SpansLost.Load())
		r.mustSend("2")
		assert.Equal(t, []string{"2 child"}, spansOf(r.traces), "it is not sent again")
		assert.Equal(t, []string{"a1", "a1"}, delivered(r.logs), "the other outputs are")
		r.stop()
		assert.Equal(t, int64(2), r.counts.SpansLost.Load())
	})
}

func TestStepTraces_NextIsSlow_SenderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := stepsRig(t, delivertest.TakesAfter(deliver.Patience*9/10)), time.Now()
		r.mustSend("1", "2")
		assert.Equal(t, 2*deliver.Patience*9/10, time.Since(began))
		r.stop()
	})
}

// One sender waits for as long as a call may take, and nothing waits after that: each sender gets an error.
func TestStepTraces_NextIsStuck_SendersGetAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := stepsRig(t, delivertest.TakesAfter(time.Hour)), time.Now()
		for _, name := range []string{"1", "2", "3"} {
			err := r.send(t.Context(), name)
			require.ErrorIs(t, err, deliver.ErrStuck)
			assert.True(t, consumererror.IsPermanent(err))
		}
		assert.Equal(t, deliver.Patience, time.Since(began), "once")
		assert.Equal(t, int64(4), r.counts.SpansLost.Load(), "the first may still be taken")
		assert.Len(t, delivered(r.logs), 3)
		assert.Equal(t, []int64{1, 2, 3}, valuesOf(r.metrics))
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []string{"1 child"}, spansOf(r.traces))
		assert.Equal(t, int64(4), r.counts.SpansLost.Load())
		r.stop()
	})
}

// What a tick concludes has no sender: its refusal is logged.
func TestStepTraces_OfATickRefused_IsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Tick = func(time.Time) Output { return Output{StepTraces: []ptrace.Traces{stepTrace("1")}} }
		r.traces = delivertest.NewNext(delivertest.Refuses(1, assert.AnError))
		r.logsToTraces(r.traces)
		r.begin()
		time.Sleep(2 * tickEvery)
		synctest.Wait()
		assert.Equal(t, 1, r.log.FilterMessage("Step traces were refused").Len())
		assert.Equal(t, int64(2), r.counts.SpansLost.Load())
		assert.Equal(t, []string{"1 child"}, spansOf(r.traces))
		r.stop()
	})
}

func TestStepTraces_SenderLeaves_WhatWaitsIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stepsRig(t, delivertest.TakesAfter(deliver.Patience*9/10))
		go func() { assert.NoError(t, r.send(context.Background(), "1")) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), deliver.Patience/2)
		defer cancel()
		err := r.send(ctx, "2")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.True(t, consumererror.IsPermanent(err))
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"1 child"}, spansOf(r.traces))
		assert.Equal(t, int64(2), r.counts.SpansLost.Load())
		r.stop()
	})
}

func TestStepTraces_OfAFlushRefused_ShutdownReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Flush = func(time.Time) Output { return Output{StepTraces: []ptrace.Traces{stepTrace("1")}} }
		r.logsToTraces(delivertest.NewNext(delivertest.Refuses(1, assert.AnError)))
		r.begin()
		require.ErrorIs(t, r.instances[0].Shutdown(t.Context()), assert.AnError)
		assert.Equal(t, int64(2), r.counts.SpansLost.Load())
	})
}

// Without Wait, no sender would bound what waits.
func TestStepTraces_EngineDoesNotWait_AreDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = func(name string) Output { return Output{StepTraces: []ptrace.Traces{stepTrace(name)}} }
		r.logsToTraces(r.traces)
		r.begin()
		r.sendEach("1", "2")
		assert.Zero(t, r.traces.Calls())
		assert.Equal(t, int64(4), r.counts.SpansLost.Load())
		assert.Equal(t, 1, r.log.Len())
		r.stop()
	})
}

func TestStepTraces_NoPipeline_AreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = func(name string) Output { return Output{StepTraces: []ptrace.Traces{stepTrace(name)}} }
		r.logsToLogs(r.logs)
		r.begin()
		r.sendEach("1")
		assert.Zero(t, r.counts.SpansLost.Load())
		assert.Zero(t, r.log.Len())
		r.stop()
	})
}

func TestStepTraces_OfOtherOutputsFlushRefused_ShutdownReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Flush = func(time.Time) Output { return Output{StepTraces: []ptrace.Traces{stepTrace("1")}} }
		logs, traces := r.logsToLogs(r.logs), r.logsToTraces(delivertest.NewNext(delivertest.Refuses(1, assert.AnError)))
		r.begin()
		require.NoError(t, logs.Shutdown(t.Context()))
		require.ErrorIs(t, traces.Shutdown(t.Context()), assert.AnError)
		assert.Equal(t, int64(2), r.counts.SpansLost.Load())
	})
}

// Settled is called once what came of a batch was taken, or refused for good, and before its sender learns it.
func TestStepTraces_TakenOrRefused_AreSettledOnce(t *testing.T) {
	for name, answer := range map[string]delivertest.Answer{"taken": delivertest.Takes, "refused": delivertest.Refuses(9, assert.AnError)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				settled, calls := 0, int64(0)
				r.Wait = true
				r.traces = delivertest.NewNext(answer)
				conclude := func(name string) Output {
					return Output{StepTraces: []ptrace.Traces{stepTrace(name)}, Settled: func() { settled, calls = settled+1, r.traces.Calls() }}
				}
				r.conclude = conclude
				r.Flush = func(time.Time) Output { return conclude("end") }
				r.start()
				_ = r.send(t.Context(), "1")
				assert.Equal(t, 1, settled)
				assert.Equal(t, int64(1), calls, "after the call")
				for _, i := range r.instances {
					_ = i.Shutdown(context.Background())
				}
				assert.Equal(t, 2, settled, "of the flush")
			})
		})
	}
}
