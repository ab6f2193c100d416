// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

var slowChecks = []string{"hooks", "saves", "models"}

func TestTouched_AFileChanged_OnlyWhatDependsOnIt(t *testing.T) {
	dir := module(t, map[string]string{
		"internal/preflight": "", "internal/ckpt": "", "internal/ckptsim": "", "internal/other": "", "inject/python": "", "docs/models": "",
	})
	touched := func(base string) (list []string) {
		for _, what := range slowChecks {
			out, err := in(dir, "scripts/touched.sh", what, base).Output()
			require.NoError(t, err, string(out))
			switch strings.TrimSpace(string(out)) {
			case "touched":
				list = append(list, what)
			case "untouched":
			default:
				t.Fatalf("touched.sh %s: got %q; want touched or untouched", what, out)
			}
		}
		return list
	}
	assert.Empty(t, touched("HEAD"))
	assert.Equal(t, slowChecks, touched(""), "no commit")
	assert.Equal(t, slowChecks, touched("none"), "a commit that is not there")
	for file, want := range map[string][]string{
		"internal/other/a.go":     nil,
		"inject/python/a_test.go": nil,
		"inject/python/a.go":      {"hooks"},
		"inject/python/new.py":    {"hooks"},
		"internal/preflight/a.go": {"saves"},
		"docs/models/new.pml":     {"models"},
	} {
		path := filepath.Join(dir, file)
		before, err := os.ReadFile(path)
		require.NoError(t, os.WriteFile(path, append(before[:len(before):len(before)], "\n// More.\n"...), 0o600))
		assert.Equal(t, want, touched("HEAD"), file)
		if err != nil {
			require.NoError(t, os.Remove(path))
			continue
		}
		require.NoError(t, os.WriteFile(path, before, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("modul toy\n"), 0o600))
	assert.Equal(t, []string{"saves"}, touched("HEAD"), "a module that cannot be read")
}

func TestTouched_WhatItNames_IsThere(t *testing.T) {
	root := testdata.Root(t)
	for _, what := range slowChecks {
		out, err := in(root, "scripts/touched.sh", "-n", what).CombinedOutput()
		require.NoError(t, err, string(out))
		for path := range strings.Lines(string(out)) {
			_, err := os.Stat(filepath.Join(root, strings.TrimSpace(path)))
			assert.NoError(t, err, what)
		}
	}
}
