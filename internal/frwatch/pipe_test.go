// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRequestByPipe(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "fr[1]_")
	pipe := func(rank string) string {
		path := prefix + rank + PipeSuffix
		require.NoError(t, syscall.Mkfifo(path, 0o666))
		return path
	}
	// As PyTorch's heartbeat monitor has it open.
	fd, err := syscall.Open(pipe("2"), syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer func() { _ = syscall.Close(fd) }()
	pipe("10")
	write(t, prefix+"3"+PipeSuffix, "an ordinary file")
	pipe("1x")

	got, err := RequestByPipe(prefix)
	require.NoError(t, err)
	require.Len(t, got, 3)
	assert.Equal(t, []int64{2, 3, 10}, []int64{got[0].Rank, got[1].Rank, got[2].Rank})
	assert.NoError(t, got[0].Err)
	assert.ErrorContains(t, got[1].Err, "want a named pipe")
	assert.ErrorContains(t, got[2].Err, "nobody reads it")
	var b [8]byte
	n, err := syscall.Read(fd, b[:])
	require.NoError(t, err)
	assert.Equal(t, 1, n, "one byte asks for one dump")
	content, err := os.ReadFile(prefix + "3" + PipeSuffix)
	require.NoError(t, err)
	assert.Equal(t, "an ordinary file", string(content), "nothing is written to what is no pipe")
}

// Requests that nobody reads must not make us wait for room in the pipe.
func TestRequestByFullPipe(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "p")
	require.NoError(t, syscall.Mkfifo(prefix+"0"+PipeSuffix, 0o666))
	fd, err := syscall.Open(prefix+"0"+PipeSuffix, syscall.O_RDWR|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer func() { _ = syscall.Close(fd) }()
	chunk := make([]byte, 4096)
	for {
		if _, err := syscall.Write(fd, chunk); err != nil {
			break
		}
	}
	got, err := RequestByPipe(prefix)
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.ErrorContains(t, got[0].Err, "write to pipe")
}
