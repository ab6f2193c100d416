// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// witness runs a job of ten steps whose kernels come late, until it hangs in a scope,
// and kills it.
func witness(t *testing.T, cfg *Config) *bench {
	t.Helper()
	b := start(t, cfg, nil)
	j := startJob(t, cfg.Directory, 1, 10, "witness")
	require.Eventually(t, func() bool { return len(b.openOf(20)) > 0 }, patience, 5*time.Millisecond)
	require.NoError(t, j.ranks[0].Process.Kill())
	j.wait()
	require.Eventually(t, func() bool { return b.counter(t, "rings_ended", "died") == 1 }, patience, 10*time.Millisecond)
	b.stop()
	return b
}

func TestKernelsOfAJobThatDies(t *testing.T) {
	b := witness(t, config(t.TempDir()))
	ops := b.received(t)[0].Ops
	assert.Equal(t, 11, countOps(ops, model.KindStep))
	assert.Equal(t, 11, countOps(ops, model.KindCompute))
	assert.Equal(t, 10, countOps(ops, model.KindCopy))
	checkStepsHoldTheirKernels(t, ops)
	assert.Equal(t, int64(21), b.counter(t, "kernels_folded"))
	assert.Equal(t, int64(10), b.counter(t, "kernels_of_collectives"))
	for _, odd := range []string{"kernel_without_clock", "kernel_without_launch", "late", "without_step", "not_mapped", "bad_time"} {
		assert.Zero(t, b.counter(t, "oddities", odd), odd)
	}
	checkSplits(t, b)
	checkScope(t, b)
}

// checkStepsHoldTheirKernels asserts that kernels are of the step whose host time holds
// their launch, and come before its span.
func checkStepsHoldTheirKernels(t *testing.T, ops []model.Op) {
	t.Helper()
	kernels := map[int64][]model.Op{}
	for i := range ops {
		op := &ops[i]
		switch op.Kind {
		case model.KindCompute, model.KindCopy:
			kernels[op.Step.V] = append(kernels[op.Step.V], *op)
			assert.Equal(t, model.Some(int64(7)), op.Stream)
			assert.False(t, op.ThreadID.OK)
			assert.True(t, op.Clock.Bound.OK)
		case model.KindStep:
			assert.NotEmpty(t, kernels[op.Step.V], "step %d", op.Step.V)
			for _, k := range kernels[op.Step.V] {
				assert.GreaterOrEqual(t, k.Start, op.Start, "step %d", op.Step.V)
				assert.LessOrEqual(t, k.End, op.End, "step %d", op.Step.V)
				assert.InDelta(t, 500e3, k.Duration(), 10)
			}
		}
	}
}

func checkSplits(t *testing.T, b *bench) {
	t.Helper()
	for _, s := range b.all() {
		if kind, _ := otelmap.KindOf(s); kind != model.KindStep {
			continue
		}
		sum := otelmap.ReadSummary(s, nil)
		took := float64(s.EndTimestamp()-s.StartTimestamp()) * 1e-9
		assert.InDelta(t, took, sum.Compute+sum.ComputeOverlapped+sum.Transfer+sum.Copy+sum.LaunchIdle+sum.DependencyIdle, 1e-6)
		assert.Positive(t, sum.Compute+sum.ComputeOverlapped)
		assert.Contains(t, sum.Histograms, `"gemm"`)
	}
}

func checkScope(t *testing.T, b *bench) {
	t.Helper()
	open := b.openOf(20)
	first, last := open[0], open[len(open)-1]
	assert.Equal(t, "data_loading", first.Scope)
	assert.GreaterOrEqual(t, first.ScopeFor.V, first.Age, "it is in it since before the operation")
	assert.True(t, last.ProcessDied)
	assert.Equal(t, "data_loading", last.Scope)
	assert.Positive(t, last.ScopeFor.V)
}

// all returns all spans that came.
func (b *bench) all() (out []ptrace.Span) {
	for _, td := range b.spans.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

func TestRequestsLeadToTheirSteps(t *testing.T) {
	for _, shown := range []bool{true, false} {
		cfg := config(t.TempDir())
		cfg.RequestSpans = shown
		b := witness(t, cfg)
		steps, requests := map[pcommon.SpanID]ptrace.Span{}, []ptrace.Span{}
		for _, s := range b.all() {
			if _, ok := s.Attributes().Get(semconv.RequestSpan); ok {
				requests = append(requests, s)
			} else if kind, _ := otelmap.KindOf(s); kind == model.KindStep {
				steps[s.SpanID()] = s
			}
		}
		require.Len(t, steps, 11)
		for _, s := range steps {
			require.Equal(t, 1, s.Links().Len())
			assert.Equal(t, pcommon.TraceID{0: 1, 8: 2}, s.Links().At(0).TraceID())
		}
		if !shown {
			assert.Empty(t, requests)
			continue
		}
		require.Len(t, requests, 11)
		for _, s := range requests {
			step, ok := steps[s.Links().At(0).SpanID()]
			require.True(t, ok)
			assert.Equal(t, step.Links().At(0).SpanID(), s.ParentSpanID())
			assert.Equal(t, pcommon.TraceID{0: 1, 8: 2}, s.TraceID())
			assert.Equal(t, step.EndTimestamp(), s.EndTimestamp())
		}
	}
}

func TestKernelsOnlyInSummaries(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Kernels = kernelSummary
	b := witness(t, cfg)
	ops := b.received(t)[0].Ops
	assert.Zero(t, countOps(ops, model.KindCompute)+countOps(ops, model.KindCopy))
	assert.Equal(t, int64(21), b.counter(t, "kernels_folded"))
	checkSplits(t, b)
}
