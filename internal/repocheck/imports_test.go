// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"go/build"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A receiver emits what it observed: none imports an engine that concludes, by itself or by way
// of others.
func TestReceivers_ImportNoAnalysis(t *testing.T) {
	for _, receiver := range packagesBelow(t, "receiver") {
		imported := importsOf(t, receiver)
		for _, engine := range []string{"straggler", "desync", "causality", "incident", "kair"} {
			assert.NotContains(t, imported, "internal/"+engine, "imports of %s", receiver)
		}
	}
}

// What every engine may use knows no engine.
func TestStats_ImportsNothingOfTheProject(t *testing.T) {
	assert.Empty(t, importsOf(t, "internal/stats"))
}

// packagesBelow returns the packages in a folder of the root module, its tests' data left out.
func packagesBelow(t *testing.T, folder string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if p, err := build.ImportDir(path, 0); err == nil && len(p.GoFiles) > 0 {
			rel, err := filepath.Rel(root, path)
			out = append(out, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, out)
	return out
}

// importsOf returns the packages of the root module that one imports, by way of others too, by
// their folders.
func importsOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for queue := []string{folder}; len(queue) > 0; queue = queue[1:] {
		p, err := build.ImportDir(filepath.Join(root, queue[0]), 0)
		require.NoError(t, err)
		for _, path := range p.Imports {
			if own, ok := strings.CutPrefix(path, ownModule+"/"); ok && !out[own] {
				out[own] = true
				queue = append(queue, own)
			}
		}
	}
	return out
}
