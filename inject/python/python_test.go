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

// The package's own tests run with the library as it is compiled now, each file in a
// process of its own. PYTHON names an interpreter. Tests that need PyTorch skip where it has
// none, and lie in test_torch*.py: `make e2e-torch` runs those alone.
func TestPackage(t *testing.T) {
	python, library := interpreter(t), library(t)
	files, err := filepath.Glob("tests/test_*.py")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".py")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, strings.Contains(string(text), "@needs_torch"), strings.HasPrefix(name, "test_torch"), "%s: tests that need PyTorch lie in test_torch*.py", file)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), python, "-B", "-m", "unittest", "-v", "tests."+name)
			cmd.Env = append(os.Environ(), "LOCKSTEP_TEST_LIBRARY="+library)
			out, err := cmd.CombinedOutput()
			t.Logf("%s\n%s", python, out)
			require.NoError(t, err)
		})
	}
}

func interpreter(t *testing.T) string {
	t.Helper()
	name := os.Getenv("PYTHON")
	if name == "" {
		name = "python3"
	}
	path, err := exec.LookPath(name)
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
