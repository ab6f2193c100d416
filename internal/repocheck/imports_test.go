// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/repocheck/layers"
)

// Imports point down: a package imports those of its own layer and of the layers below.
func TestImports_PointDown(t *testing.T) {
	for _, from := range packagesBelow(t, ".") {
		for _, to := range ownImports(t, from) {
			assert.False(t, layers.PointsUp(from, to), "%s, of the %s, imports %s, of the %s", from, layers.Of(from), to, layers.Of(to))
		}
	}
}

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

// packagesBelow returns the packages in a folder of the root module. It leaves out data of tests,
// other modules, and folders in which nothing is ours.
func packagesBelow(t *testing.T, folder string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" || skippedDirs[d.Name()] || path != root && exists(filepath.Join(path, "go.mod")) {
			return filepath.SkipDir
		}
		if p, err := build.ImportDir(path, 0); err == nil && len(p.GoFiles)+len(p.CgoFiles) > 0 {
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
		for _, own := range ownImports(t, queue[0]) {
			if !out[own] {
				out[own] = true
				queue = append(queue, own)
			}
		}
	}
	return out
}

// ownImports returns the packages of the root module that one imports, by their folders.
func ownImports(t *testing.T, folder string) (out []string) {
	t.Helper()
	p, err := build.ImportDir(filepath.Join(root, folder), 0)
	require.NoError(t, err)
	for _, path := range p.Imports {
		if own, ok := strings.CutPrefix(path, ownModule+"/"); ok {
			out = append(out, own)
		}
	}
	return out
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
