// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const root = "../.."

func TestTheDocumentIsWhatTheTableSays(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "capabilities.md"))
	require.NoError(t, err)
	assert.Equal(t, Document(), string(text), "stale: go generate ./internal/capability")
}

// Every test that the document names exists.
func TestTheDocumentNamesTests(t *testing.T) {
	names := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(Document(), -1)
	assert.NotEmpty(t, names)
	var sources strings.Builder
	for _, dir := range []string{"capability", "straggler"} {
		files, err := filepath.Glob(filepath.Join(root, "internal", dir, "*_test.go"))
		require.NoError(t, err)
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			sources.Write(text)
		}
	}
	for _, name := range names {
		assert.Contains(t, sources.String(), "func "+name+"(")
	}
}

// The masks are those of the C source, which is compiled and asked.
func TestMasks(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "masks")
	inject := filepath.Join(root, "inject")
	out, err := exec.CommandContext(t.Context(), "gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror",
		"-I"+inject, "-I"+filepath.Join(inject, "nccl"), "-x", "c", "testdata/masks.c", "-o", exe, "-pthread").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = []string{}
	got, err := cmd.Output()
	require.NoError(t, err)
	var want strings.Builder
	for _, m := range Masks {
		fmt.Fprintf(&want, "%d %d %d %d\n", m.ABI, m.Summary, m.Collectives, m.All)
	}
	assert.Equal(t, want.String(), string(got))
}

// TestNobodyTellsOfOtherClasses holds the cells of classes without an engine: no
// source of the tree holds the name of such a class or kind, so that none can be
// emitted, by whatever way a name goes. Who adds an engine adds the class's constant
// to internal/model, and changes the table.
func TestNobodyTellsOfOtherClasses(t *testing.T) {
	var told []string
	files := 0
	walk(t, func(path string, f *ast.File) {
		files++
		if path == "internal/model/finding.go" {
			told = vocabulary(f)
		}
		for _, name := range unjudgedIn(f) {
			assert.Contains(t, homonyms[name], path, "%q: nothing tells of it yet, says the table", name)
		}
	})
	assert.Greater(t, files, 100, "the tree was looked at")
	slices.Sort(told)
	want := slices.Concat(judged, elsewhere, ofDesync(), []string{model.FindingStraggler})
	slices.Sort(want)
	assert.Equal(t, want, told, "kinds and classes that the tree can tell of")
}

// The name of a class is found wherever it stands.
func TestANameOfAClassIsFound(t *testing.T) {
	for _, body := range []string{
		`tell("crash", x)`, `return "crash"`, "const kind = `crash`", `f := Finding{Kind: "crash"}`, `f.Kind = "crash"`, `if k == "crash" {}`,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() {"+body+"}", parser.SkipObjectResolution)
		require.NoError(t, err)
		assert.Equal(t, []string{"crash"}, unjudgedIn(f), body)
	}
}

// elsewhere are the kind and classes that are told from what no row has.
var elsewhere = []string{
	model.FindingClock, model.ClassSkew, model.ClassDrift, model.ClassStep, model.ClassUntrusted,
	model.FindingEpoch, model.ClassMixed, model.ClassPartial, model.ClassWeightsOnly, model.ClassRevoked, model.ClassFleetMixed,
}

// ofDesync are the kind and the classes of hangs, which have an engine.
func ofDesync() []string {
	out := []string{model.FindingDesync}
	for name := range hangs {
		out = append(out, name)
	}
	return out
}

// homonyms are files in which the name of a class stands for something else.
var homonyms = map[string][]string{
	"crash":     {"internal/ranklog/ending.go"}, // a word of logs
	"imbalance": {"internal/sim/training/scenario.go"},
	"fabric":    {"internal/desync/watch/witness.go", "bench/hang/suite/analyze.go"}, // of who else tells
}

// unjudgedIn returns the names of kinds and classes without an engine in a source.
func unjudgedIn(f *ast.File) (out []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if name, err := strconv.Unquote(lit.Value); err == nil && isUnjudged(name) {
				out = append(out, name)
			}
		}
		return true
	})
	return out
}

func isUnjudged(name string) bool {
	return !slices.Contains(elsewhere, name) && !slices.Contains(ofDesync(), name) && slices.ContainsFunc(Classes(), func(c Class) bool {
		return (c.Name == name && !slices.Contains(judged, name)) || (c.Kind == name && name != model.FindingStraggler)
	})
}

// vocabulary returns the kinds and classes that internal/model has constants of.
func vocabulary(f *ast.File) (out []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if x, ok := n.(*ast.ValueSpec); ok {
			for i, name := range x.Names {
				if strings.HasPrefix(name.Name, "Finding") || strings.HasPrefix(name.Name, "Class") {
					out = append(out, strings.Trim(x.Values[i].(*ast.BasicLit).Value, `"`))
				}
			}
		}
		return true
	})
	return out
}

// walk visits all Go sources of the tree, but for tests and this package; path is
// below the root.
func walk(t *testing.T, visit func(path string, f *ast.File)) {
	t.Helper()
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := len(path) > 1 && strings.HasPrefix(d.Name(), ".")
			if hidden || d.Name() == "testdata" || path == "internal/capability" || path == "shared" {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		visit(path, f)
		return nil
	})
	require.NoError(t, err)
}

func TestOfKnowsItsRowsAndClasses(t *testing.T) {
	_, ok := Of("divination", Classes()[0])
	assert.False(t, ok)
	_, ok = Of(CUPTI, Class{Kind: "straggler", Name: "nobody"})
	assert.False(t, ok)
	// The data model has 9, 16, 4, 10, 5 and 1 classes, and 4 causes are told of a host.
	assert.Len(t, Classes(), 9+4+16+4+10+5+1)
	for _, c := range Classes() {
		for _, r := range Rows {
			cell, ok := Of(r, c)
			require.True(t, ok)
			assert.NotEmpty(t, cell.Why, "%s %v", r, c)
			assert.NotContains(t, cell.Why, "\n")
			assert.NotEmpty(t, cell.Test)
			assert.Equal(t, cell.Verdict == Decides || cell.Verdict == Bounds, cell.Told != nil)
		}
	}
}
