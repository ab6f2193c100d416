// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nobody is the id of a user that, unlike root, may not read every file.
const nobody = 65534

// Of each directory that the configuration names, health is not green while it is missing or unreadable, and the
// answer names it.
func TestHealth_DirectoryMissingOrUnreadable_IsNotGreen(t *testing.T) {
	t.Parallel()
	program, health := built(t, "otelcol-lockstep"), freePorts(t, 1)[0]
	dir, err := os.MkdirTemp("", "lockstep-health-") //nolint:usetesting // nobody may not enter the folder above t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	names := []string{"rings", "traces", "dumps", "inspector", "checkpoints", "root"}
	for _, name := range names {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "rings")))
	c := startAs(t, unprivileged(), map[string]string{"DIR": dir, "LOCKSTEP_HEALTH_ENDPOINT": health}, program, "--config", filepath.Join("e2e", "testdata", "health.yaml"))
	green := func() {
		t.Helper()
		eventually(t, readyLimit, func() error {
			_, err := get("http://" + health + "/")
			return err
		}, c)
	}
	red := func(path, why string) {
		t.Helper()
		eventually(t, readyLimit, func() error {
			_, err := get("http://" + health + "/")
			if want := "read " + path + ": " + why; err == nil || !strings.Contains(err.Error(), "status 500: ") || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("ask for health: got %w; want status 500 and %q", err, want)
			}
			return nil
		}, c)
	}
	rings := filepath.Join(dir, "rings")
	red(rings, "no such file or directory; create it")
	require.NoError(t, os.Mkdir(rings, 0o755))
	green()
	for _, name := range names {
		path := filepath.Join(dir, name)
		require.NoError(t, os.Chmod(path, 0))
		red(path, "permission denied; let user ")
		require.NoError(t, os.Chmod(path, 0o755))
		green()
		require.NoError(t, os.Rename(path, path+".away"))
		red(path, "no such file or directory; create it")
		require.NoError(t, os.Rename(path+".away", path))
		green()
	}
	assert.Zero(t, c.terminate(t, stopLimit))
}

// unprivileged runs a process as the user nobody if this process runs as root.
func unprivileged() *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}
