// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFolderThatCanNotBeLookedInto: copies are kept all the same, and are counted once.
func TestFolderThatCanNotBeLookedInto(t *testing.T) {
	dir := t.TempDir()
	locked := filepath.Join(dir, "19700101T000000Z-locked")
	open := filepath.Join(dir, "19700101T000000Z-open")
	for _, f := range []string{open, locked} {
		require.NoError(t, os.Mkdir(f, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(f, "rank_0"), make([]byte, 10), 0o644))
	}
	require.NoError(t, os.Chmod(dir, 0o777))
	require.NoError(t, os.Chmod(locked, 0))
	t.Cleanup(func() { _ = os.Chmod(locked, 0o755) })
	if os.Getuid() == 0 {
		// Root may look into everything, but for a thread that gives it up.
		const nobody = 65534
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		require.NoError(t, syscall.Chmod(filepath.Dir(dir), 0o755))
		require.NoError(t, syscall.Setfsuid(nobody))
		defer func() { _ = syscall.Setfsuid(0) }()
		if _, err := os.ReadDir(dir); err != nil {
			t.Skipf("nobody can not reach the folder of the test: %v", err)
		}
	}
	_, err := os.ReadDir(locked)
	require.Error(t, err, "the folder is locked")
	k := &Keeper{Directory: dir, MaxBytes: 100, MaxFiles: 10}
	for i := range 3 {
		require.NoError(t, k.Keep(at(0), "run", "/d/"+string(rune('a'+i)), []byte("first")))
	}
	assert.Equal(t, 4, k.copies.Len(), "that of the open folder, and three")
	assert.Equal(t, 25, k.copies.Bytes())
}
