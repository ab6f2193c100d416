// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/ring"
	"github.com/lockstep-otel/lockstep/receiver/rankeventsreceiver/internal/metadatatest"
)

// readerOf is a reader that looks only when it is told to.
func readerOf(t *testing.T, dir string) (*reader, *bench) {
	t.Helper()
	b := &bench{tel: componenttest.NewTelemetry()}
	set := metadatatest.NewSettings(b.tel)
	core, logs := observer.New(zapcore.DebugLevel)
	set.Logger, b.log = zap.New(core), logs
	rd, err := newReader(set, config(dir))
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, rd.stop(context.Background()))
		assert.NoError(t, b.tel.Shutdown(context.Background()))
	})
	return rd, b
}

func TestLookingTakesAFewPercentOfACore(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0:                      minLook,
		5 * time.Millisecond:   500 * time.Millisecond,
		20 * time.Millisecond:  time.Second,
		500 * time.Millisecond: 10 * time.Second,
		time.Hour:              time.Minute,
	} {
		assert.Equal(t, want, pauseAfter(took), took)
	}
}

// The wait for a pipeline that refuses is none of the look's cost: a ring that was
// replaced meanwhile would be found late.
func TestALookPaysForLookingOnly(t *testing.T) {
	rd, _ := readerOf(t, t.TempDir())
	now := time.Now()
	rd.finishing = time.Hour
	rd.poll(now)
	assert.True(t, rd.lookNext.Before(now))
	assert.Zero(t, rd.finishing)
}

// What is refused for what it holds is opened again when its stamps say that it
// holds something else.
func TestWhatWasRefusedIsOpenedAgainWhenItHasChanged(t *testing.T) {
	dir := t.TempDir()
	startJob(t, dir, 1, 3, "close").wait()
	path := onlyRing(t, dir)
	was := time.Now().Add(-time.Hour)
	spoil := func(with byte) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte{with}, 0)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoError(t, os.Chtimes(path, was, was))
	}
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	spoil(good[0] + 1)
	rd, b := readerOf(t, dir)
	rd.look()
	spoil(good[0])
	rd.look()
	rd.look()
	assert.Equal(t, int64(1), b.counter(t, "rings_refused"))
	assert.Zero(t, b.said("Ring opened"), "its stamps say that it is as it was")
	was = was.Add(time.Second)
	spoil(good[0])
	rd.look()
	assert.Equal(t, 1, b.said("Ring opened"))
}

// A write that the stamps are too coarse to tell is not missed.
func TestWhatWasJustWrittenIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	startJob(t, dir, 1, 3, "close").wait()
	path := onlyRing(t, dir)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	now := time.Now().Add(time.Hour) // as just written, however long this takes
	junk := make([]byte, len(good))
	require.NoError(t, os.WriteFile(path, junk, 0o600))
	require.NoError(t, os.Chtimes(path, now, now))
	rd, b := readerOf(t, dir)
	rd.look()
	require.NoError(t, os.WriteFile(path, good, 0o600))
	require.NoError(t, os.Chtimes(path, now, now))
	rd.look()
	assert.Equal(t, 1, b.said("Ring opened"))
}

func TestRefusalsBeyondMemoryAreCounted(t *testing.T) {
	rd, b := readerOf(t, t.TempDir())
	look := func(first, n int) {
		for i := first; i < first+n; i++ {
			rd.refuse(&ring.Error{Path: fmt.Sprintf("%06d.ring", i), Field: "magic"})
		}
		rd.tellRefusals()
	}
	for range 3 {
		look(0, maxSaid+10)
		assert.Equal(t, int64(maxSaid), b.counter(t, "rings_refused", "magic"))
		assert.Equal(t, int64(10), b.counter(t, "rings_refused", beyondMemory))
	}
	look(0, maxSaid+15)
	look(0, maxSaid+12)
	assert.Equal(t, int64(15), b.counter(t, "rings_refused", beyondMemory), "what is fewer again is no refusal")
	assert.Equal(t, 1, b.said("Too many refusals to remember"))
	assert.LessOrEqual(t, len(rd.refused.known), maxSaid)
	// Those that are known keep their places.
	look(maxSaid-5, 10)
	assert.Equal(t, int64(maxSaid), b.counter(t, "rings_refused", "magic"))
}

// A ring beside junk is found.
func TestARingBesideJunk(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("x%03d.ring", i)), nil, 0o600))
	}
	b := start(t, config(dir), nil)
	require.Eventually(t, func() bool { return b.counter(t, "rings_refused") == 300 }, patience, 10*time.Millisecond)
	startJob(t, dir, 1, 3, "close").wait()
	require.Eventually(t, func() bool { return b.counter(t, "rings_ended", "closed") == 1 }, patience, 10*time.Millisecond)
}
