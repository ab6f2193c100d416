// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ncclinspectorreceiver

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// returns fails the test where a call does not come back: it waits for a pipe's writer.
func returns(t *testing.T, call func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		require.FailNow(t, "the receiver still waits for a writer of the pipe")
	}
}

// A file may become a pipe between the look at its name and its opening.
func TestOpen_FileBecamePipe_IsCountedUnreadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n-pid100.log")
	require.NoError(t, os.WriteFile(path, []byte(lines(0, 0, 3)), 0o600))
	b := build(t, config(path), nil)
	l := b.rd.cfg.list()
	require.Len(t, l.files, 1)
	require.NoError(t, os.Remove(path))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	returns(t, func() { b.rd.open(l.files[0], time.Now()) })
	assert.Equal(t, int64(1), b.counter("oddities", "unreadable"))
}

// So may a copy, from which the end of a log that was cut is read.
func TestTryCopy_CopyBecamePipe_IsNoCopy(t *testing.T) {
	dir := t.TempDir()
	path, pipe := filepath.Join(dir, "n-pid100.log"), filepath.Join(dir, "n-pid100-1.log")
	require.NoError(t, os.WriteFile(path, []byte(lines(0, 0, 3)), 0o600))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	b := build(t, config(path), nil)
	b.rd.look(time.Now())
	require.Len(t, b.rd.files, 1)
	returns(t, func() { assert.False(t, b.rd.tryCopy(b.rd.files[0], pipe)) })
}
