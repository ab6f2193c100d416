// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// The layers are complete: what is in none of them may import anything.
func TestTopFolders_EachHasALayer(t *testing.T) {
	for _, folder := range topFolders(t, root) {
		assert.NotEqual(t, layers.Unknown, layers.Of(folder),
			"the top folder %s has Go files and no layer; add it to the list in internal/repocheck/layers", folder)
	}
}

func TestTopFolders_NestedGoFile_IsFound(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "new", "deep", "a.go"), "package deep")
	writeFile(t, filepath.Join(dir, "docs", "a.md"), "")
	writeFile(t, filepath.Join(dir, "testdata", "a.go"), "package a")
	writeFile(t, filepath.Join(dir, ".built", "a.go"), "package a")
	assert.Equal(t, []string{"new"}, topFolders(t, dir))
}

// The imports of a file count on every system.
func TestImportsIn_FileOfAnotherSystem_IsRead(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "a.go"), "package a\n\nimport \"io\"\n")
	writeFile(t, filepath.Join(dir, "other.go"), "//go:build !linux\n\npackage a\n\nimport \"os\"\n")
	writeFile(t, filepath.Join(dir, "a_windows.go"), "package a\n\nimport \"net\"\n")
	writeFile(t, filepath.Join(dir, "a_test.go"), "package a\n\nimport \"testing\"\n")
	assert.Equal(t, []string{"io", "net", "os"}, importsIn(t, dir))
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

// Incidents join findings of every analysis: they depend on none.
func TestIncident_ImportsNoAnalysis(t *testing.T) {
	imported := importsOf(t, "internal/incident")
	for _, engine := range []string{"straggler", "desync", "causality", "epoch", "kair"} {
		assert.NotContains(t, imported, "internal/"+engine)
	}
}

// The mapping keeps nothing between two calls: it has no maps with limits, no life cycle of findings and no
// locks, and of the engines it knows those whose types it maps.
func TestMapping_KeepsNoState(t *testing.T) {
	mapped := map[string][]string{
		"internal/otelmap":             {"internal/rankstate", "internal/intake/stepless"}, // the caller's decoder; the problems of one batch
		"internal/otelmap/sequencemap": {"internal/sequence"},                              // the numbers of an agent
		"internal/otelmap/skewmap":     {"internal/causality"},
		"internal/otelmap/stepmap":     {"internal/straggler", "internal/straggler/steptrace"},
	}
	for _, from := range packagesBelow(t, "internal/otelmap") {
		imported := importsIn(t, filepath.Join(root, from))
		for _, kept := range []string{"sync", "sync/atomic", ownModule + "/internal/bounded", ownModule + "/internal/finding"} {
			assert.NotContains(t, imported, kept, "imports of %s", from)
		}
		for _, to := range ownImports(t, from) {
			if layers.Of(to) == "engines" {
				assert.Contains(t, mapped[from], to, "%s imports an engine that it does not map", from)
			}
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
		if len(goFiles(t, path)) > 0 {
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
	for _, path := range importsIn(t, filepath.Join(root, folder)) {
		if own, ok := strings.CutPrefix(path, ownModule+"/"); ok {
			out = append(out, own)
		}
	}
	return out
}

// importsIn returns what the files of a package import, for whatever system they are built.
func importsIn(t *testing.T, dir string) []string {
	t.Helper()
	out := map[string]bool{}
	for _, file := range goFiles(t, dir) {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range f.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			out[path] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// goFiles returns the Go files in a folder that are no tests, with those of other systems.
func goFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	return slices.DeleteFunc(files, func(file string) bool {
		name := filepath.Base(file)
		return strings.HasSuffix(name, "_test.go") || name[0] == '_' || name[0] == '.'
	})
}

// topFolders returns the folders in a root that have Go files, at any depth, also as modules of their own.
func topFolders(t *testing.T, root string) []string {
	t.Helper()
	out := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "testdata" || skippedDirs[d.Name()] || d.Name()[0] == '.'):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if top, _, in := strings.Cut(filepath.ToSlash(rel), "/"); in {
			out[top] = true
		}
		return err
	}))
	return slices.Sorted(maps.Keys(out))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}
