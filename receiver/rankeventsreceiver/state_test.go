// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// states returns the states of ranks that came.
func (b *bench) states(t *testing.T) (out []model.RankState) {
	t.Helper()
	for _, ld := range b.events.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					var p otelmap.Problems
					if s, ok := otelmap.LogToRankState(rl.Resource(), lr, nil, &p); ok {
						out = append(out, s)
					}
					require.Empty(t, p.List())
				}
			}
		}
	}
	return out
}

// last is the newest state; what it says of the process is the kernel's own word.
func (b *bench) last(t *testing.T) model.RankState {
	t.Helper()
	if s := b.states(t); len(s) > 0 {
		return s[len(s)-1]
	}
	return model.RankState{}
}

func TestStatesOfARealProcess(t *testing.T) {
	t.Parallel() // it takes as long as a death
	dir := t.TempDir()
	cfg := config(dir)
	cfg.deadAfter, cfg.StateInterval = 0, 50*time.Millisecond
	b := start(t, cfg, nil)
	j := startJob(t, dir, 1, 3, "hang")
	is := func(want model.ProcessState) {
		t.Helper()
		require.Eventually(t, func() bool { return b.last(t).Process == want }, patience, 10*time.Millisecond, "%s", want)
	}
	hangs := func(s model.RankState) bool { return len(s.Ops) == 1 && s.Ops[0].Seq == 6 }
	require.Eventually(t, func() bool { return hangs(b.last(t)) }, patience, 10*time.Millisecond)
	is(model.ProcessRunning)
	s := b.last(t)
	assert.Equal(t, onlyRing(t, dir), s.Name)
	assert.Equal(t, model.Some(int64(j.ranks[0].Process.Pid)), s.Rank.PID)
	assert.Equal(t, "job-7", s.Rank.JobID)
	assert.Equal(t, model.Some(int64(6)), s.Comms[s.Ops[0].Comm].Frontiers[0].Enqueued)

	require.NoError(t, j.ranks[0].Process.Signal(syscall.SIGSTOP))
	is(model.ProcessStopped)
	require.NoError(t, j.ranks[0].Process.Signal(syscall.SIGCONT))
	is(model.ProcessRunning)
	require.NoError(t, j.ranks[0].Process.Kill())
	j.wait()
	is(model.ProcessDead)
	s = b.last(t)
	assert.True(t, hangs(s))
	// A process is dead after 3 s. The state counts until the reader began to look, which is earlier where it waits
	// for a processor.
	assert.GreaterOrEqual(t, s.Silent.V, 2.0, "about as long as one must be silent to be dead")
	n := len(b.states(t))
	time.Sleep(3 * cfg.StateInterval)
	assert.Len(t, b.states(t), n, "a death is told of once")
}

func TestStateOfAnOrdinaryEnd(t *testing.T) {
	dir := t.TempDir()
	b := start(t, config(dir), nil)
	startJob(t, dir, 1, 3, "close").wait()
	require.Eventually(t, func() bool { return b.counter(t, "rings_ended", "closed") == 1 }, patience, 10*time.Millisecond)
	s := b.last(t)
	assert.Equal(t, model.ProcessEnded, s.Process)
	assert.Empty(t, s.Ops)
}

// A rank that works is told of when it ends, and not before.
func TestNoStateOfARankThatWorks(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir)
	cfg.StallAfter = 10 * time.Second // the machine may be busy
	b := start(t, cfg, nil)
	startJob(t, dir, 2, 100, "close").wait()
	require.Eventually(t, func() bool { return b.counter(t, "rings_ended", "closed") == 2 }, patience, 10*time.Millisecond)
	var ended []model.ProcessState
	for _, s := range b.states(t) {
		ended = append(ended, s.Process)
	}
	assert.Equal(t, []model.ProcessState{model.ProcessEnded, model.ProcessEnded}, ended)
}
