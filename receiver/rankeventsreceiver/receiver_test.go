// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/rankevents"
)

func TestStepsOfALiveJob(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rings")
	cfg := config(dir)
	cfg.StallAfter = time.Minute
	b := start(t, cfg, nil)
	require.Eventually(t, func() bool { return b.said("not there yet") == 1 }, patience, time.Millisecond)
	require.NoError(t, os.Mkdir(dir, 0o700))
	startJob(t, dir, 2, 30, "close").wait()
	require.Eventually(t, func() bool { return b.counter(t, "rings_ended", "closed") == 2 }, patience, 10*time.Millisecond)
	b.stop()

	ranks := b.received(t)
	require.Len(t, ranks, 2)
	for n, r := range ranks {
		assert.Equal(t, "job-7", r.Rank.JobID)
		assert.Equal(t, model.Incarnation(model.World{CommHash: "0xabcdef0123456789"}), r.Rank.Incarnation)
		assert.Equal(t, model.Some(int64(2)), r.Rank.WorldSize)
		assert.Equal(t, ranks[0].Rank.ClockID, r.Rank.ClockID, "one clock for the node")
		assert.Equal(t, 30, countOps(r.Ops, model.KindStep), "rank %d", n)
		assert.Equal(t, 60, countOps(r.Ops, model.KindCollective))
		assert.Equal(t, 30, countOps(r.Ops, model.KindScope))
		checkSteps(t, r.Ops)
	}
	assert.Zero(t, b.counter(t, "records_lost"))
	assert.Equal(t, int64(120), b.counter(t, "operations_folded"))
	assert.Equal(t, int64(60), b.counter(t, "steps_closed"))
	assert.Empty(t, b.open())
	assert.Equal(t, 1, b.said("not there yet"))
}

// checkSteps asserts that each step comes behind its operations, as many as it
// announces, and covers them.
func checkSteps(t *testing.T, ops []model.Op) {
	t.Helper()
	came := map[int64]int64{}
	for i := range ops {
		op := &ops[i]
		require.True(t, op.Step.OK)
		if op.Kind == model.KindStep {
			assert.Equal(t, op.StepOps, model.Some(came[op.Step.V]), "step %d", op.Step.V)
			assert.Positive(t, op.Duration())
			continue
		}
		came[op.Step.V]++
		if op.Kind == model.KindCollective {
			assert.Equal(t, model.AllReduce, op.Collective.Name)
			assert.GreaterOrEqual(t, op.Duration(), int64(3.5e6), "4 ms, or more where the machine is busy")
			assert.LessOrEqual(t, op.Launch.V, op.Start)
			assert.True(t, op.Clock.Bound.OK)
			assert.Equal(t, "float32", op.Collective.DType)
		}
	}
}

func TestTheSummarySumsToTheStep(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir)
	cfg.Level = "summary"
	b := start(t, cfg, nil)
	startJob(t, dir, 1, 10, "close").wait()
	require.Eventually(t, func() bool { return b.counter(t, "rings_ended", "closed") == 1 }, patience, 10*time.Millisecond)
	b.stop()
	steps := 0
	for _, td := range b.spans.AllTraces() {
		for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			steps++
			sum := otelmap.ReadSummary(s, nil)
			took := float64(s.EndTimestamp()-s.StartTimestamp()) * 1e-9
			assert.InDelta(t, took, sum.Compute+sum.Transfer+sum.LaunchIdle, 1e-6)
			assert.Equal(t, int64(2), sum.Ops)
			assert.Greater(t, sum.Transfer, 7e-3, "two operations of 4 ms, or more where the machine is busy")
			assert.LessOrEqual(t, sum.Transfer, took)
			assert.Contains(t, sum.Histograms, "all_reduce world")
			assert.Contains(t, sum.Histograms, "data_loading")
		}
	}
	assert.Equal(t, 10, steps, "at level summary only steps are handed on")
}

func TestAStalledOperationIsToldOfAndSoIsDeath(t *testing.T) {
	dir := t.TempDir()
	b := start(t, config(dir), nil)
	j := startJob(t, dir, 1, 3, "hang")
	require.Eventually(t, func() bool { return len(b.openOf(6)) >= 2 }, patience, 10*time.Millisecond)
	first, again := b.openOf(6)[0], b.openOf(6)[1]
	assert.Equal(t, model.StatusOpen, first.Status)
	assert.GreaterOrEqual(t, first.Age, 0.3)
	assert.Equal(t, model.Some(int64(6)), first.Op.Collective.Seq)
	assert.Equal(t, "scheduled", first.Op.Collective.State)
	assert.Equal(t, model.Some(int64(6)), first.Enqueued)
	assert.Equal(t, model.Some(int64(3)), first.Op.Step)
	assert.Equal(t, model.StatusUpdated, again.Status)
	require.NoError(t, j.ranks[0].Process.Kill())
	j.wait()
	require.Eventually(t, func() bool { return b.counter(t, "rings_ended", "died") == 1 }, patience, 10*time.Millisecond)
	open := b.open()
	last := open[len(open)-1]
	assert.True(t, last.ProcessDied)
	assert.Equal(t, int64(1), last.InFlight)
	b.stop()
	assert.Equal(t, 4, countOps(b.received(t)[0].Ops, model.KindStep), "the step it died in is closed too")
}

func TestRestartOfARank(t *testing.T) {
	dir := t.TempDir()
	b := start(t, config(dir), nil)
	startJob(t, dir, 1, 3, "die", "TORCHELASTIC_RESTART_COUNT=0").wait()
	startJob(t, dir, 1, 4, "close", "TORCHELASTIC_RESTART_COUNT=1").wait()
	require.Eventually(t, func() bool {
		return b.counter(t, "rings_ended", "died") == 1 && b.counter(t, "rings_ended", "closed") == 1
	}, patience, 10*time.Millisecond)
	b.stop()
	assert.Equal(t, 4+4, countOps(b.received(t)[0].Ops, model.KindStep))
}

func TestRingsOfEndedProcessesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	startJob(t, dir, 1, 3, "close").wait()
	cfg := config(dir)
	cfg.RemoveDead = 50 * time.Millisecond
	b := start(t, cfg, nil)
	require.Eventually(t, func() bool {
		names, err := os.ReadDir(dir)
		return err == nil && len(names) == 0
	}, patience, 10*time.Millisecond)
	b.stop()
	assert.Equal(t, 3, countOps(b.received(t)[0].Ops, model.KindStep), "not before it was read")
}

func TestReplacedFile(t *testing.T) {
	dir, aside := t.TempDir(), t.TempDir()
	startJob(t, aside, 1, 5, "close").wait()
	b := start(t, config(dir), nil)
	startJob(t, dir, 1, 3, "hang")
	require.Eventually(t, func() bool { return b.said("Ring opened") == 1 }, patience, 10*time.Millisecond)
	here, _ := filepath.Glob(filepath.Join(dir, "*.ring"))
	there, _ := filepath.Glob(filepath.Join(aside, "*.ring"))
	require.Len(t, here, 1)
	require.Len(t, there, 1)
	require.NoError(t, os.Rename(there[0], here[0]))
	require.Eventually(t, func() bool { return b.counter(t, "rings_ended", "closed") == 1 }, patience, 10*time.Millisecond)
	assert.Equal(t, 1, b.said("Ring replaced"))
}

func TestBadFilesAreRefusedOnceAndCounted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.ring"), []byte("no ring"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.ring"), make([]byte, 8192), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(dir, "b.ring"), filepath.Join(dir, "c.ring")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d.ring"), 0o700))
	rd, b := readerOf(t, dir)
	for range 3 {
		rd.look()
	}
	assert.Equal(t, int64(4), b.counter(t, "rings_refused"))
	assert.Equal(t, int64(1), b.counter(t, "rings_refused", "magic"))
	assert.Equal(t, int64(2), b.counter(t, "rings_refused", "type"))
	assert.Equal(t, 4, b.said("Ring refused"))
	assert.Equal(t, 1, b.said("/a.ring"))
}

func TestTwoProcessesOfOneRankAreToldOf(t *testing.T) {
	dir := t.TempDir()
	b := start(t, config(dir), nil)
	startJob(t, dir, 2, 3, "hang", "RANK=0")
	require.Eventually(t, func() bool { return b.said("Two processes say that they are one rank") == 1 }, patience, 10*time.Millisecond)
}

// A log drops lines of one message that come too fast; what is wrong with many
// files must be said in few.
func TestManyBadFilesAreToldOfTogether(t *testing.T) {
	dir := t.TempDir()
	for i := range 50 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.ring", i)), []byte("no ring"), 0o600))
	}
	rd, b := readerOf(t, dir)
	rd.look()
	assert.Equal(t, int64(50), b.counter(t, "rings_refused"))
	assert.Equal(t, 4, b.said("Ring refused"))
	assert.Equal(t, 1, b.said("46 more than those above"))
	// One that grows is refused for the same reason as before.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "00.ring"), []byte("still no ring"), 0o600))
	rd.look()
	assert.Equal(t, int64(50), b.counter(t, "rings_refused"))
	// What is gone is forgotten: the next of its name is told of again.
	require.NoError(t, os.Remove(filepath.Join(dir, "00.ring")))
	rd.look()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "00.ring"), []byte("no ring"), 0o600))
	rd.look()
	assert.Equal(t, int64(51), b.counter(t, "rings_refused"))
}

func TestRefusedDataAreOfferedAgain(t *testing.T) {
	dir := t.TempDir()
	sink := &consumertest.TracesSink{}
	var calls atomic.Int64
	grudging, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		if calls.Add(1)%3 != 0 {
			return errors.New("memory is short")
		}
		return sink.ConsumeTraces(ctx, td)
	})
	require.NoError(t, err)
	b := start(t, config(dir), grudging)
	startJob(t, dir, 1, 20, "close").wait()
	require.Eventually(t, func() bool { return b.counter(t, "rings_ended", "closed") == 1 }, patience, 10*time.Millisecond)
	b.spans = sink
	assert.Equal(t, 20, countOps(b.received(t)[0].Ops, model.KindStep))
	assert.Positive(t, b.counter(t, "delivery_retries"))
	assert.Zero(t, b.counter(t, "operations_dropped"))
}

// Detail that was not asked for stays in the ring, and can be had when it is
// needed.
func TestDetailOfWhatStalls(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir)
	cfg.DetailOnStall, cfg.StallRepeat = true, time.Hour
	startJob(t, dir, 1, 3, "hang").hung(t) // so that nothing before it seems to stall
	b := start(t, cfg, nil)
	proxies := func() int {
		r := b.received(t)[0]
		if r == nil {
			return 0
		}
		return countOps(r.Ops, model.KindHost)
	}
	require.Eventually(t, func() bool { return proxies() > 0 }, patience, 20*time.Millisecond)
	assert.Equal(t, 6, proxies())
	assert.Equal(t, int64(6), b.counter(t, "records_skipped"))
	time.Sleep(50 * time.Millisecond)
	assert.Equal(t, 6, proxies(), "once")
}

func TestLevelAll(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir)
	cfg.Level = "all"
	b := start(t, cfg, nil)
	startJob(t, dir, 1, 3, "close").wait()
	require.Eventually(t, func() bool { return b.counter(t, "rings_ended", "closed") == 1 }, patience, 10*time.Millisecond)
	ops := b.received(t)[0].Ops
	assert.Equal(t, 6, countOps(ops, model.KindHost))
	assert.Equal(t, model.Some(int64(5)), ops[len(ops)-1].StepOps, "scope, two operations, two chunks")
}

// Who refuses for ever does not keep the collector from ending.
func TestShutdownWhileRefused(t *testing.T) {
	dir := t.TempDir()
	var calls atomic.Int64
	never, err := consumer.NewTraces(func(context.Context, ptrace.Traces) error {
		calls.Add(1)
		return errors.New("memory is short")
	})
	require.NoError(t, err)
	cfg := config(dir)
	cfg.RetryOnFailure.MaxInterval, cfg.RetryOnFailure.InitialInterval = time.Hour, time.Hour
	b := start(t, cfg, never)
	startJob(t, dir, 1, 3, "close").wait()
	require.Eventually(t, func() bool { return calls.Load() > 0 }, patience, time.Millisecond)
	stopped := make(chan struct{})
	go func() { b.stop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(patience):
		require.Fail(t, "it waits for who refuses")
	}
	assert.Equal(t, 6+3+3, int(b.counter(t, "operations_dropped")))
}

func TestEveryOddityIsDocumented(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, o := range oddities(&rankevents.Stats{}, &rankevents.Stats{}) {
		assert.Contains(t, string(readme), "`"+o.reason+"`")
	}
}
