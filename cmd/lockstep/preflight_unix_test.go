// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPreflightOfBadInput: nothing of it is confirmed, and nothing of it is waited for.
func TestPreflightOfBadInput(t *testing.T) {
	shard := "iter_0001000/mp_rank_01/model_optim_rng.pt"
	outside := filepath.Join(t.TempDir(), "outside.pt")
	file, err := os.ReadFile("../../internal/torchsave/testdata/megatron.pt")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(outside, file, 0o644))
	for name, damage := range map[string]func(t *testing.T, path string){
		"a pipe":            func(t *testing.T, path string) { t.Helper(); require.NoError(t, syscall.Mkfifo(path, 0o644)) },
		"a folder":          func(t *testing.T, path string) { t.Helper(); require.NoError(t, os.Mkdir(path, 0o755)) },
		"a link out":        func(t *testing.T, path string) { t.Helper(); require.NoError(t, os.Symlink(outside, path)) },
		"a link to nothing": func(t *testing.T, path string) { t.Helper(); require.NoError(t, os.Symlink("nothing", path)) },
		"a link to itself":  func(t *testing.T, path string) { t.Helper(); require.NoError(t, os.Symlink(filepath.Base(path), path)) },
		"nothing":           func(*testing.T, string) {},
		"zeros": func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.WriteFile(path, make([]byte, 4096), 0o644))
		},
		"a hole": func(t *testing.T, path string) {
			t.Helper()
			f, err := os.Create(path)
			require.NoError(t, err)
			_, err = f.WriteAt(file, 1<<20)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := megatronSave(t)
			require.NoError(t, os.Remove(filepath.Join(dir, shard)))
			damage(t, filepath.Join(dir, shard))
			status, out, stderr := runPreflight(dir)
			require.Equal(t, exitFindings, status, out+stderr)
			require.Contains(t, out, "Not safe to resume")
			require.Contains(t, strings.ReplaceAll(out, "\n", " "), "mp_rank_01")
		})
	}
}

// A pipe in the place of the folder is refused at once.
func TestPreflightOfAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	status, out, stderr := runPreflight(pipe)
	require.Equal(t, exitUnusable, status)
	require.Empty(t, out)
	require.Contains(t, stderr, "want a folder")
}
