// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// partOfTwo is what one of two ranks sends of a step: a collective, and at its end the step.
func partOfTwo(rank int64, ended bool) ptrace.Traces {
	r := model.Rank{JobName: "job", JobID: "job", Incarnation: "life", Rank: rank, WorldSize: model.Some(int64(2)), HostName: "h", ClockID: "c"}
	at, step := int64(1000*time.Second), model.Some(int64(3))
	ops := []model.Op{
		{
			Kind: model.KindCollective, Name: "all_reduce", Start: at + 1000, End: at + 9000, Step: step,
			Comm: model.Comm{ID: "w", Size: model.Some(int64(2))}, Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(int64(7)), SeqScope: model.ScopeComm},
		},
		{Kind: model.KindStep, Name: "step", Start: at, End: at + 10000, Step: step, StepOps: model.Some(int64(1))},
	}
	if !ended {
		ops = ops[:1]
	}
	return otelmap.OpsToTraces(&r, ops)
}

// The step trace of a step has all spans, though the step lasts longer than its deadline, which counts from the last.
func TestTick_StepLastsLong_StepTraceIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := newDefaultConfig()
		s := newSteps(cfg, zap.NewNop())
		require.NoError(t, s.start(t.Context(), nil, hub.Outputs{Logs: true, Traces: true}))
		require.Empty(t, s.read(partOfTwo(0, true)).Apply(time.Now()).StepTraces)
		for range 5 { // the same twice is as good as something else
			require.Empty(t, s.read(partOfTwo(1, false)).Apply(time.Now()).StepTraces)
			for end := time.Now().Add(cfg.Analysis.Deadline - time.Second); time.Now().Before(end); time.Sleep(cfg.FlushInterval) {
				require.Empty(t, s.tick(time.Now()).StepTraces)
			}
		}
		out := s.read(partOfTwo(1, true)).Apply(time.Now())
		require.Len(t, out.StepTraces, 1)
		assert.Equal(t, 1+2*2, out.StepTraces[0].SpanCount())
		assert.Zero(t, s.held.Dropped())
	})
}

// The step trace of a step that was open during a cut-off has the spans of before it, however long it lasted.
func TestSuspend_LongerThanTheDeadline_StepTraceIsWhole(t *testing.T) {
	for _, cutOff := range []time.Duration{time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s := newSteps(newDefaultConfig(), zap.NewNop())
			require.NoError(t, s.start(t.Context(), nil, hub.Outputs{Logs: true, Traces: true}))
			require.Empty(t, s.read(partOfTwo(0, true)).Apply(time.Now()).StepTraces)
			time.Sleep(5 * time.Second)
			s.suspend(true)
			time.Sleep(cutOff)
			s.suspend(false)
			require.Empty(t, s.tick(time.Now()).StepTraces)
			time.Sleep(time.Second)
			out := s.read(partOfTwo(1, true)).Apply(time.Now())
			require.Len(t, out.StepTraces, 1)
			assert.Equal(t, 1+2*2, out.StepTraces[0].SpanCount(), "the root, and two of each rank, after %v", cutOff)
			assert.Zero(t, s.held.Dropped())
		})
	}
}

// The process is stopped in the midst of a step, as by SIGSTOP. What waits in its sockets comes after the first tick.
func TestTick_ProcessWasStopped_OpenStepsWaitAnew(t *testing.T) {
	for stopped, concluded := range map[time.Duration]bool{2 * time.Second: true, 5 * time.Minute: false} {
		synctest.Test(t, func(t *testing.T) {
			cfg := newDefaultConfig()
			s := newSteps(cfg, zap.NewNop())
			require.NoError(t, s.start(t.Context(), nil, hub.Outputs{Logs: true, Traces: true}))
			require.Empty(t, s.read(partOfTwo(0, true)).Apply(time.Now()).StepTraces)
			for end := time.Now().Add(cfg.Analysis.Deadline - time.Second); time.Now().Before(end); time.Sleep(cfg.FlushInterval) {
				require.Empty(t, s.tick(time.Now()).StepTraces)
			}
			time.Sleep(stopped)
			assert.Equal(t, concluded, len(s.tick(time.Now()).StepTraces) > 0, "after %v", stopped)
		})
	}
}
