// Package testdata finds the files that tests read: the project's own
// recordings, and real traces of other projects that are not part of it.
package testdata

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// EnvData names the folder of real traces; without it, shared/data beside the
// repository is taken.
const EnvData = "LOCKSTEP_DATA"

// module is the line of go.mod by which Root knows the repository's root.
const module = "module github.com/lockstep-otel/lockstep\n"

// Root returns the repository's root folder. It climbs from the working folder, which
// the Go tool sets to the package under test: paths compiled into a program have no
// folder under -trimpath.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatalf("find repository root: %v", err)
	}
	root, err := rootAbove(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return root
}

// rootAbove returns the nearest folder at or above dir that holds the go.mod of this module.
func rootAbove(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), module) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("find repository root: got no go.mod of %q at or above %s; run the test inside a checkout", strings.TrimSpace(module), dir)
		}
	}
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
