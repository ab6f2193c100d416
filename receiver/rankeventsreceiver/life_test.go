// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

func onlyRing(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.ring"))
	require.NoError(t, err)
	require.Len(t, paths, 1)
	return paths[0]
}

// Who closes all descriptors loses the lock, and lives.
func TestALostLockEndsNoRing(t *testing.T) {
	t.Parallel() // it takes as long as a death
	dir := t.TempDir()
	cfg := config(dir)
	cfg.deadAfter = 0
	b := start(t, cfg, nil)
	startJob(t, dir, 1, 3, "unlock")
	require.Eventually(t, func() bool { return len(b.openOf(6)) > 0 }, patience, time.Millisecond)
	time.Sleep(ring.DeathSilence + 2*time.Second)
	assert.Zero(t, b.counter(t, "rings_ended"))
	assert.FileExists(t, onlyRing(t, dir))
}

// The collector's end leaves a living job as it was: its own level of detail, and
// its open steps to the next reader.
func TestShutdownLeavesALivingJob(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir)
	cfg.Level = "all"
	b := start(t, cfg, nil)
	startJob(t, dir, 1, 3, "hang")
	require.Eventually(t, func() bool { return len(b.openOf(6)) > 0 && b.counter(t, "steps_closed") == 3 }, patience, time.Millisecond)
	r, err := ring.Open(onlyRing(t, dir), ring.Options{})
	require.NoError(t, err)
	defer r.Close()
	require.Eventually(t, func() bool { return r.Level() == ring.LevelAll }, patience, time.Millisecond)
	b.stop()
	assert.Equal(t, int64(1), b.counter(t, "oddities", "steps_unfinished"))
	assert.Equal(t, int64(3), b.counter(t, "steps_closed"))
	require.Eventually(t, func() bool { return r.Level() == ring.LevelCollectives }, patience, time.Millisecond)
}

// Rings that ended take no room of those that live.
func TestMaxRingsCountsOpenOnes(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir)
	cfg.MaxRings = 1
	b := start(t, cfg, nil)
	for n := range 3 {
		startJob(t, dir, 1, 3, "close").wait()
		require.Eventually(t, func() bool { return b.counter(t, "rings_ended", "closed") == int64(n+1) }, patience, time.Millisecond)
	}
	assert.Zero(t, b.counter(t, "rings_refused"))
	startJob(t, dir, 2, 3, "hang")
	require.Eventually(t, func() bool { return b.counter(t, "rings_refused", "max_rings") == 1 }, patience, time.Millisecond)
}

func TestRefusedEventsAreCounted(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir)
	never, err := consumer.NewLogs(func(context.Context, plog.Logs) error { return errors.New("memory is short") })
	require.NoError(t, err)
	cfg.RetryOnFailure.Enabled = false
	b := startWith(t, cfg, nil, never)
	startJob(t, dir, 1, 3, "hang")
	require.Eventually(t, func() bool { return b.counter(t, "events_dropped") > 0 }, patience, 5*time.Millisecond)
}

// A ring that says nothing of its rank is told of once and read for its loss.
func TestARingWithoutARankIsToldOfOnce(t *testing.T) {
	dir := t.TempDir()
	b := start(t, config(dir), nil)
	startJob(t, dir, 1, 3, "anonymous", "RANK=", "WORLD_SIZE=", "LOCAL_RANK=").wait()
	require.Eventually(t, func() bool { return b.counter(t, "oddities", "no_rank") > 0 }, patience, 5*time.Millisecond)
	assert.Positive(t, b.counter(t, "records_read"))
	b.stop()
	assert.Equal(t, 1, b.said("says neither its rank"))
}

// A ring that was just closed is read once more before it is over.
func TestAClosedRingIsOverAtTheSecondLook(t *testing.T) {
	dir := t.TempDir()
	startJob(t, dir, 1, 3, "close").wait()
	r, err := ring.Open(onlyRing(t, dir), ring.Options{})
	require.NoError(t, err)
	defer r.Close()
	tr := &tracked{ring: r}
	for _, want := range []bool{false, true} {
		over, closed := tr.over()
		assert.True(t, closed)
		assert.Equal(t, want, over)
	}
}
