// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadFile_LargerThanTheLimit_NamesFileSizeAndLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "truth.json")
	require.NoError(t, os.WriteFile(path, []byte("1234567"), 0o600))
	content, err := ReadFile(path, 7)
	require.NoError(t, err)
	assert.Equal(t, "1234567", string(content))
	_, err = ReadFile(path, 5)
	require.EqualError(t, err, "read file "+path+": got 7 bytes; want at most 5")
	_, err = ReadFile(path+".gone", 5)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestReadFile_NotARegularFile_Error(t *testing.T) {
	_, err := ReadFile(t.TempDir(), 1)
	assert.ErrorContains(t, err, "want a regular file")
}

func TestFileEntry_LargeFile_Error(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, maxFile+1))
	_, err := FileEntry(path)
	assert.ErrorContains(t, err, "got 67108865 bytes; want at most 67108864")
}

func TestRun_TimeIsOver_NamesTheLimit(t *testing.T) {
	k := newKit(t)
	_, err := k.Run(t.Context(), sh("sleep 600", 20*time.Millisecond))
	require.ErrorIs(t, err, ErrLimit)
	assert.NotErrorIs(t, err, ErrNoTime)

	part, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for _, limit := range []time.Duration{0, time.Minute} {
		_, err = k.Run(part, sh("sleep 600", limit))
		require.ErrorIs(t, err, ErrNoTime)
		assert.NotErrorIs(t, err, ErrLimit)
	}
}
