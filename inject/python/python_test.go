// Package python holds lockstep_scope, a Python package, and has its tests run.
package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The package's own tests run with the library as it is compiled now. PYTHON
// names an interpreter; those that need PyTorch skip where it has none.
func TestPackage(t *testing.T) {
	python := interpreter(t)
	cmd := exec.CommandContext(t.Context(), python, "-B", "-m", "unittest", "discover", "-v", "-t", ".", "-s", "tests")
	cmd.Env = append(os.Environ(), "LOCKSTEP_TEST_LIBRARY="+library(t))
	out, err := cmd.CombinedOutput()
	t.Logf("%s\n%s", python, out)
	if err != nil {
		t.Fatalf("run tests with %s: %v", python, err)
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
	for _, tool := range []string{"make", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("find %s: %v", tool, err)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "libnccl-profiler-lockstep.so")
	make := exec.CommandContext(t.Context(), "make", "-s", "-C", "../nccl", "BUILD="+filepath.Join(dir, "objects"), "OUT="+dir, "plugin")
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("compile library: %v\n%s", err, out)
	}
	return path
}
