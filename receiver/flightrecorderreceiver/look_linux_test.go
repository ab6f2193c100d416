// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Health names 64 folders, and reports that there are more.
func TestList_MoreUnreadableFoldersThanAreNamed_IsReported(t *testing.T) {
	dir := t.TempDir()
	for i := range 65 {
		locked := filepath.Join(dir, strconv.Itoa(i))
		require.NoError(t, os.Mkdir(locked, 0))
		t.Cleanup(func() { _ = os.Chmod(locked, 0o755) }) //nolint:gosec // the test removes it
	}
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // the locked folders alone are unreadable
	if os.Getuid() == 0 {
		// Root may look into everything, but for a thread that gives it up.
		const nobody = 65534
		require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) //nolint:gosec // the thread gets to the folder
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		require.NoError(t, syscall.Setfsuid(nobody))
		defer func() { _ = syscall.Setfsuid(0) }()
		if _, err := os.ReadDir(dir); err != nil {
			t.Skipf("another user cannot reach the folder of the test: %v", err)
		}
	}
	h := &dumpCollector{}
	l := h.of(filepath.Join(dir, "*"))
	require.Len(t, l.Unreadable, 1)
	lines := strings.Split(l.Unreadable[0].Error(), "\n")
	require.Len(t, lines, 65)
	assert.Equal(t, "more than 64 paths cannot be read; the others are not named", lines[64])
}
