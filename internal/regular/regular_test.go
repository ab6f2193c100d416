// SPDX-License-Identifier: Apache-2.0

//go:build unix

package regular

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOpen_RegularFileAndLinkToIt_IsRead(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	require.NoError(t, os.Symlink(file, link))
	for _, path := range []string{file, link} {
		f, err := Open(path)
		require.NoError(t, err)
		b, err := io.ReadAll(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		assert.Equal(t, "text", string(b))
	}
}

// The kernel's log calls itself a regular file, and a process that reads it waits for the next message.
func TestOpen_FileOfTheKernel_IsRefused(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/proc is Linux's")
	}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink("/proc/self/mounts", link))
	_, err := Open(link)
	require.ErrorContains(t, err, "want a regular file")
}

func TestOpen_AnythingElse_IsRefused(t *testing.T) {
	dir := t.TempDir()
	pipe, device, loop := filepath.Join(dir, "pipe"), filepath.Join(dir, "device"), filepath.Join(dir, "loop")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink(os.DevNull, device))
	require.NoError(t, os.Symlink(loop, loop))
	for path, kind := range map[string]string{pipe: "a named pipe", device: "a device", dir: "a folder"} {
		_, err := Open(path)
		assert.EqualError(t, err, "open "+path+": got "+kind+"; want a regular file")
		var of *fs.PathError
		require.ErrorAs(t, err, &of, "callers drop the path of an error")
	}
	_, err := Open(loop)
	require.ErrorIs(t, err, syscall.ELOOP)
	_, err = Open(filepath.Join(dir, "nothing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
