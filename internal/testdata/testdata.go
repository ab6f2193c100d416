// Package testdata finds the files that tests read: the project's own
// recordings, and real traces of other projects that are not part of it.
package testdata

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// EnvData names the folder of real traces; without it, shared/data beside the
// repository is taken.
const EnvData = "LOCKSTEP_DATA"

// Root returns the repository's root folder.
func Root(tb testing.TB) string {
	tb.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		tb.Fatal("find repository root: no caller information")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Shared returns a folder of real traces, and skips the test where it is absent.
func Shared(tb testing.TB, name string) string {
	tb.Helper()
	base := os.Getenv(EnvData)
	if base == "" {
		base = filepath.Join(Root(tb), "..", "shared", "data")
	}
	dir := filepath.Join(base, name)
	if _, err := os.Stat(dir); err != nil {
		tb.Skipf("real traces %q are not here (set %s to the folder that holds them): %v", name, EnvData, err)
	}
	return dir
}

// Recording returns the folder of one of the project's own recordings.
func Recording(tb testing.TB, name string) string {
	tb.Helper()
	dir := filepath.Join(Root(tb), "testdata", "recordings", name)
	if _, err := os.Stat(dir); err != nil {
		tb.Fatalf("find recording %q: %v", name, err)
	}
	return dir
}
