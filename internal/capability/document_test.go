package capability

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
// source of the tree names such a class, so that none can be emitted. Who adds an
// engine adds the class's constant to internal/model, and changes the table.
func TestNobodyTellsOfOtherClasses(t *testing.T) {
	var told, literals []string
	walk(t, func(file string, n ast.Node) {
		switch x := n.(type) {
		case *ast.ValueSpec:
			if filepath.ToSlash(file) != root+"/internal/model/finding.go" {
				return
			}
			for i, name := range x.Names {
				if strings.HasPrefix(name.Name, "Finding") || strings.HasPrefix(name.Name, "Class") {
					told = append(told, strings.Trim(x.Values[i].(*ast.BasicLit).Value, `"`))
				}
			}
		case *ast.KeyValueExpr:
			literals = append(literals, literal(x.Key, x.Value)...)
		case *ast.AssignStmt:
			for i := range x.Lhs {
				if i < len(x.Rhs) {
					literals = append(literals, literal(x.Lhs[i], x.Rhs[i])...)
				}
			}
		}
	})
	slices.Sort(told)
	assert.Equal(t, append(slices.Clone(judged), "straggler"), told, "kinds and classes that the tree can tell of")
	for _, c := range Classes() {
		assert.NotContains(t, literals, c.Name, "a class is named by its constant in internal/model")
	}
}

// literal returns the text that a field Class or Kind is given.
func literal(field, value ast.Expr) []string {
	name := ""
	switch f := field.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING && (name == "Class" || name == "Kind") {
		return []string{strings.Trim(lit.Value, `"`)}
	}
	return nil
}

// walk visits every node of the tree's Go sources, but for tests and this package.
func walk(t *testing.T, visit func(file string, n ast.Node)) {
	t.Helper()
	files := 0
	for _, dir := range []string{"internal", "cmd", "receiver", "processor", "connector"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == "capability" {
				return filepath.SkipDir
			}
			if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			files++
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool { visit(path, n); return true })
			return nil
		})
		require.NoError(t, err)
	}
	assert.Greater(t, files, 100, "the tree was looked at")
}

// Nothing reads Flight Recorder dumps. Who adds a reader changes its row.
func TestFlightRecorderIsNotRead(t *testing.T) {
	for _, dir := range []string{"internal", "receiver"} {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		require.NoError(t, err)
		for _, e := range entries {
			name := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(e.Name()))
			assert.NotContains(t, name, "flight", "%s", dir)
		}
	}
	for _, c := range Classes() {
		cell, ok := Of(FlightRecorder, c)
		require.True(t, ok)
		assert.Equal(t, NotJudged, cell.Verdict)
	}
}

func TestOfKnowsItsRowsAndClasses(t *testing.T) {
	_, ok := Of("divination", Classes()[0])
	assert.False(t, ok)
	_, ok = Of(CUPTI, Class{Kind: "straggler", Name: "nobody"})
	assert.False(t, ok)
	// The data model has 9, 15, 4, 10, 4 and 1 classes, and 4 causes are told of a host.
	assert.Len(t, Classes(), 9+4+15+4+10+4+1)
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
