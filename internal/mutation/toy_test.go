// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// write makes a module of the given files, by path, and returns its folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module toy\n\ngo 1.26.0\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// loadToy loads all packages of a module of the given files.
func loadToy(t *testing.T, files map[string]string) []*Package {
	t.Helper()
	packages, err := Load(t.Context(), write(t, files), []string{"./..."})
	require.NoError(t, err)
	return packages
}

// pick returns the mutant of kind whose changed line is after.
func pick(t *testing.T, p *Package, kind Kind, after string) Mutant {
	t.Helper()
	for _, m := range p.Find() {
		if m.Kind == kind && m.After == after {
			return m
		}
	}
	require.Failf(t, "no such mutant", "%s: %s", kind, after)
	return Mutant{}
}
