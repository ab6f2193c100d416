// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A disk that is full refuses, costs no operation that was taken and no file that was there, and leaves nothing
// behind that is not whole.
func TestSpool_FullDisk_RefusesUntilThereIsRoom(t *testing.T) {
	c := testConfig(t)
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mount a small disk: %v; root can", err)
	}
	defer func() { require.NoError(t, unix.Unmount(disk, 0)) }()
	c.Directory = filepath.Join(disk, "ring")
	s, seen := opened(t, c)
	require.NoError(t, s.Add(steps("job", 1), begin))
	require.NoError(t, s.Tick(begin.Add(c.MaxAge)))
	ballast := filepath.Join(disk, "ballast")
	require.Error(t, os.WriteFile(ballast, make([]byte, 2<<20), 0o600), "the disk is full from now on")

	now := begin.Add(time.Hour)
	require.NoError(t, s.Add(steps("job", 2), now))
	now = now.Add(c.MaxAge)
	require.ErrorIs(t, s.Tick(now), unix.ENOSPC)
	held := s.Memory()
	for range 50 {
		now = now.Add(retryAfter)
		require.ErrorIs(t, s.Add(steps("job", 3), now), unix.ENOSPC)
		require.Equal(t, held, s.Memory())
	}
	assert.Len(t, files(t, c.Directory), 1, "whole files alone, and no temporary one")

	require.NoError(t, os.Remove(ballast))
	require.NoError(t, s.Add(steps("job", 3), now.Add(retryAfter)))
	require.NoError(t, s.Close(now))
	var got []int64
	for _, in := range files(t, c.Directory) {
		got = append(got, in...)
	}
	assert.ElementsMatch(t, []int64{1, 2, 3}, got)
	assert.Empty(t, seen.dropped)
}
