// SPDX-License-Identifier: Apache-2.0

// Package python holds lockstep_scope, a Python package, and has its tests run.
package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/cbuild"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// The package's own tests run with the library as it is compiled now, each class in a
// process of its own. PYTHON names an interpreter. Tests that need PyTorch skip where it has
// none, and lie in test_torch*.py: `make e2e-torch` runs those alone.
func TestPackage(t *testing.T) {
	t.Parallel()
	python, library := interpreter(t), library(t)
	for _, class := range classes(t) {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), python, "-B", "-m", "unittest", "-v", "tests."+class)
			cmd.Env = append(os.Environ(), "LOCKSTEP_TEST_LIBRARY="+library)
			out, err := cmd.CombinedOutput()
			t.Logf("%s\n%s", python, out)
			require.NoError(t, err)
		})
	}
}

// classes returns the classes of tests, such as test_commit.TimeTest.
func classes(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("tests/test_*.py")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		module := strings.TrimSuffix(filepath.Base(file), ".py")
		require.Equal(t, strings.Contains(string(text), "@needs_torch"), strings.HasPrefix(module, "test_torch"), "%s: tests that need PyTorch lie in test_torch*.py", file)
		found := 0
		for _, class := range strings.Split("\n"+string(text), "\nclass ")[1:] {
			if strings.Contains(class, "\n    def test_") {
				name, _, _ := strings.Cut(class, "(")
				names = append(names, module+"."+name)
				found++
			}
		}
		require.Positive(t, found, "%s: classes of tests", file)
	}
	return names
}

func interpreter(t *testing.T) string {
	t.Helper()
	testdata.Sources(t, "lockstep_scope/*.py", "lockstep_scope/hooks/*.py", "testdata/*.py", "tests/*.py")
	name := os.Getenv("PYTHON")
	if name == "" {
		name = "python3"
	}
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("PYTHON") != "" {
		t.Fatalf("find the interpreter that PYTHON names: %v", err)
	}
	if err != nil {
		t.Skipf("find %s: %v", name, err)
	}
	return path
}

func library(t *testing.T) string {
	t.Helper()
	cbuild.Make(t, "inject/nccl", "plugin")
	return filepath.Join(testdata.Root(t), "bin", "libnccl-profiler-lockstep.so")
}
