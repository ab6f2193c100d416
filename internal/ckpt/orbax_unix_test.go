// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ckpt_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What of Orbax's is listed under its name, and is no file that a loader can read, is not taken for it.
func TestOrbaxFilesAreOpened(t *testing.T) {
	instead := map[string]struct {
		make func(t *testing.T, name string) error
		want string
	}{
		"a folder":          {func(_ *testing.T, name string) error { return os.Mkdir(name, 0o700) }, "got a folder; want a regular file"},
		"a pipe":            {func(_ *testing.T, name string) error { return syscall.Mkfifo(name, 0o600) }, "got a pipe; want a regular file"},
		"a link to nothing": {func(_ *testing.T, name string) error { return os.Symlink("nothing", name) }, "which is not there; want the file"},
		"a link that leads out": {func(t *testing.T, name string) error {
			t.Helper()
			out := filepath.Join(t.TempDir(), "out")
			require.NoError(t, os.WriteFile(out, []byte("{}"), 0o600))
			return os.Symlink(out, name)
		}, "which lies outside of the folder"},
	}
	marked := func(t *testing.T) string {
		t.Helper()
		dir := saves(t, "orbax", 100)
		for _, in := range []string{".", "state", "iter"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "100", in, "commit_success.txt"), []byte("done"), 0o600))
		}
		r := judgeDir(t, dir)
		require.True(t, r.OK(), r.Why)
		return dir
	}
	for _, file := range []string{"state/_METADATA", "state/_sharding", "state/commit_success.txt", "commit_success.txt", "iter/process_0-of-2.json"} {
		for name, tc := range instead {
			t.Run(file+", "+name, func(t *testing.T) {
				dir := marked(t)
				path := filepath.Join(dir, "100", file)
				require.NoError(t, os.Remove(path))
				require.NoError(t, tc.make(t, path))
				r := judgeDir(t, dir)
				require.False(t, r.OK())
				require.Contains(t, told(r), tc.want)
			})
		}
	}
	dir := marked(t)
	sharding := filepath.Join(dir, "100", "state", "_sharding")
	overwrite(t, sharding, []byte("{"))
	r := judgeDir(t, dir)
	require.False(t, r.OK())
	require.Contains(t, told(r), "read JSON")
	require.NoError(t, os.Remove(sharding))
	require.True(t, judgeDir(t, dir).OK(), "a resume can do without it")

	state := filepath.Join(dir, "100", "state")
	require.NoError(t, os.Rename(filepath.Join(state, "_METADATA"), filepath.Join(state, "described")))
	require.NoError(t, os.Symlink("described", filepath.Join(state, "_METADATA")))
	require.True(t, judgeDir(t, dir).OK(), "a link within the save is as good as the file")
}
