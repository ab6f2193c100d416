// SPDX-License-Identifier: Apache-2.0

// Package cbuild compiles the repository's C code for tests. All test programs share
// what make builds in bin/, so that each variant is compiled once.
package cbuild

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/testdata"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// The variants that the Makefiles build, as their variable SAN names them.
const (
	Plain = ""
	ASan  = "asan" // AddressSanitizer and UndefinedBehaviorSanitizer
	TSan  = "tsan" // ThreadSanitizer
)

// sources are the files that C programs are made of, from the repository's root.
var sources = []string{
	"inject/*.[ch]", "inject/*/*.[ch]", "inject/*/test/*.[ch]", "inject/nccl/exports.map",
	"inject/common.mk", "inject/Makefile", "inject/*/Makefile",
	"demo/*/*.[ch]", "demo/Makefile",
}

// Make builds a target of the Makefile in dir, a path from the repository's root. It
// returns when the target is up to date. It skips the test without gcc or make, and
// compiles nothing where no source has changed. Arguments are targets or variables.
func Make(tb testing.TB, dir string, args ...string) {
	tb.Helper()
	for _, tool := range []string{"make", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			tb.Skipf("compile %s: %v", dir, err)
		}
	}
	root := testdata.Root(tb)
	for _, glob := range sources {
		testdata.Sources(tb, filepath.Join(root, glob))
	}
	if out, err := locked(filepath.Join(root, dir), args); err != nil {
		tb.Fatalf("compile %s: %v\n%s", dir, err, out)
	}
}

// Variant builds a target of one variant as Make does. Those with sanitizers are built in
// the full tier alone, and skipped where the compiler has no such sanitizer.
func Variant(tb testing.TB, san, dir string, args ...string) {
	tb.Helper()
	if san != Plain {
		if !tier.Full(tb) {
			tb.Skipf("%s is tested in the full tier: %s=full go test ./%s, or make test-full", san, tier.Env, dir)
		}
		skipWithout(tb, san)
	}
	Make(tb, dir, append(args, "SAN="+san)...)
}

// locked runs make while no other test program of this checkout does in the same folder.
func locked(dir string, args []string) ([]byte, error) {
	unlock, err := lock(filepath.Join(dir, "Makefile"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	cmd := exec.Command("make", append([]string{"-s", "-j2", "--no-print-directory", "-C", dir}, args...)...) //nolint:noctx // a compiler that is killed may leave half a file
	cmd.Env = Environ()
	return cmd.CombinedOutput()
}

// Environ returns the environment without the variables of a make that runs the tests: its
// flags, such as -B, would make another make compile again.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "SAN"}, name)
	})
}

// flags are the compiler's options of the variants with sanitizers.
var flags = map[string]string{ASan: "-fsanitize=address,undefined", TSan: "-fsanitize=thread"}

// skipWithout skips where a program compiled with a sanitizer does not run: its library
// is not installed, or the kernel lays memory out in another way. It fails the test where
// every part is required, as in CI.
func skipWithout(tb testing.TB, san string) {
	tb.Helper()
	program := filepath.Join(tb.TempDir(), "probe")
	cc := exec.CommandContext(tb.Context(), "gcc", flags[san], "-x", "c", "-", "-o", program)
	cc.Stdin = strings.NewReader("int main(void) { return 0; }\n")
	absent := tb.Skipf
	if os.Getenv("LOCKSTEP_E2E_REQUIRE") == "1" {
		absent = tb.Fatalf
	}
	if out, err := cc.CombinedOutput(); err != nil {
		absent("link with %s: %v\n%s", flags[san], err, out)
	}
	if out, err := exec.CommandContext(tb.Context(), program).CombinedOutput(); err != nil {
		absent("run a program with %s: %v\n%s", flags[san], err, out)
	}
}
