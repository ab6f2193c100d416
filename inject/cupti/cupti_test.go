// Package cupti builds the client of CUPTI, which is C, with a stand-in of libcupti
// and runs its tests. It holds nothing else.
package cupti

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// flavours are the ways all is built: san is SAN of the Makefile, cflags are its
// CFLAGS.
var flavours = []struct{ name, san, flag, cflags string }{
	{"plain", "", "", "-O2"},
	{"address and undefined", "asan", "-fsanitize=address,undefined", "-O1 -g1"},
	{"thread", "tsan", "-fsanitize=thread", "-O1 -g1"},
}

// run executes a command in this folder, without what in the environment would
// change the client, and returns what it printed.
func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LOCKSTEP_") && !strings.HasPrefix(v, "MOCK_CUPTI_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "ASAN_OPTIONS=detect_leaks=0", "TSAN_OPTIONS=halt_on_error=1", "TMPDIR="+t.TempDir())
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// needCompiler skips where there is no compiler, or none with this sanitizer whose
// programs run here.
func needCompiler(t *testing.T, flag string) {
	t.Helper()
	testdata.Sources(t, "../*.[ch]", "../scope/*.[ch]", "../ring_test/*.[ch]", "../nccl/test/*.c", "*.[ch]", "test/*.[ch]", "Makefile")
	for _, tool := range []string{"gcc", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s: the client is not tested", tool)
		}
	}
	if flag == "" {
		return
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "empty.c"), filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o600))
	if out, err := run(t, "gcc", flag, source, "-o", program); err != nil {
		t.Skipf("gcc has no %s: %s", flag, out)
	}
	if out, err := run(t, program); err != nil {
		t.Skipf("programs built with %s do not run here: %v %s", flag, err, out)
	}
}

func TestClientOnAStandIn(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			needCompiler(t, f.flag)
			dir := t.TempDir()
			out, err := run(t, "make", "-s", "-j2", "CC=gcc", "CFLAGS="+f.cflags, "SAN="+f.san, "BUILD="+dir, "tests")
			require.NoError(t, err, out)
			units, err := filepath.Glob(filepath.Join(dir, "*", "unit_*"))
			require.NoError(t, err)
			require.Len(t, units, 3)
			for _, unit := range units {
				runCases(t, unit)
			}
		})
	}
}

// runCases runs every case of one program as a test of its own.
func runCases(t *testing.T, unit string) {
	t.Helper()
	names, err := run(t, unit, "--list")
	require.NoError(t, err, names)
	for name := range strings.FieldsSeq(names) {
		t.Run(filepath.Base(unit)+"/"+name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, unit, name)
			assert.NoError(t, err, out)
		})
	}
}
