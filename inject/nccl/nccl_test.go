// Package nccl builds the profiler plugin, which is C, and drives it as NCCL
// does. It holds nothing else.
package nccl

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// flavours are the ways all of the plugin and its driver are built: san is SAN of
// the Makefile, cflags are its CFLAGS, seeds those of the random events, and
// seconds how long the pool is contended for. SEEDS and POOL_SECONDS in the
// environment set others.
var flavours = []struct{ name, san, flag, cflags, seeds, seconds string }{
	{"plain", "", "", "-O2", "1 2 3 4", "1"},
	{"address and undefined", "asan", "-fsanitize=address,undefined", "-O1 -g1", "5 6", "0.2"},
	{"thread", "tsan", "-fsanitize=thread", "-O1 -g1", "7 8", "0.4"},
}

// run executes a command in this folder and returns what it printed.
func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return string(out), err
}

// needCompiler skips where there is no compiler, or none with this sanitizer
// whose programs run here.
func needCompiler(t *testing.T, flag string) {
	t.Helper()
	testdata.Sources(t, "../*.[ch]", "*.[ch]", "test/*.[ch]", "Makefile")
	for _, tool := range []string{"gcc", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s: the plugin is not tested", tool)
		}
	}
	if flag == "" {
		return
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "empty.c")
	require.NoError(t, os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o600))
	program := filepath.Join(dir, "empty")
	if out, err := run(t, "gcc", flag, source, "-o", program); err != nil {
		t.Skipf("gcc has no %s: %s", flag, out)
	}
	if out, err := run(t, program); err != nil {
		t.Skipf("programs built with %s do not run here: %v %s", flag, err, out)
	}
}

func makeArgs(dir, san, cflags, target string) []string {
	return []string{"-s", "-j2", "CC=gcc", "CFLAGS=" + cflags, "SAN=" + san, "BUILD=" + dir, "OUT=" + dir, target}
}

// TestPluginUnderNCCLsCalls replays every event of every version of the
// interface, and then random ones, in each flavour.
func TestPluginUnderNCCLsCalls(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			needCompiler(t, f.flag)
			dir := t.TempDir()
			for _, target := range []string{"tests", "test", "hammer"} {
				args := append(makeArgs(dir, f.san, f.cflags, target),
					"SEEDS="+cmp.Or(os.Getenv("SEEDS"), f.seeds), "POOL_SECONDS="+cmp.Or(os.Getenv("POOL_SECONDS"), f.seconds))
				out, err := run(t, "make", args...)
				require.NoError(t, err, "make %s:\n%s", target, withoutOK(out))
				if target == "test" {
					assert.Greater(t, strings.Count(out, "\nok "), 150, "cases")
				}
			}
		})
	}
}

// withoutOK leaves out the cases that went well.
func withoutOK(out string) string {
	return regexp.MustCompile(`(?m)^ok .*\n`).ReplaceAllString(out, "")
}

// TestPluginExportsNothingElse holds the exported names to the tables that NCCL
// looks up, the functions that programs may call, and those by which CUDA and NVTX
// begin.
func TestPluginExportsNothingElse(t *testing.T) {
	t.Parallel()
	needCompiler(t, "")
	dir := t.TempDir()
	out, err := run(t, "make", makeArgs(dir, "", "-O1", "plugin")...)
	require.NoError(t, err, out)
	library := filepath.Join(dir, "libnccl-profiler-lockstep.so")
	names, err := run(t, "nm", "-D", "--defined-only", "--format=posix", library)
	require.NoError(t, err, names)
	var got []string
	for line := range strings.Lines(names) {
		got = append(got, strings.Fields(line)[0])
	}
	assert.ElementsMatch(t, []string{
		"ncclProfiler_v1", "ncclProfiler_v2", "ncclProfiler_v3", "ncclProfiler_v4", "ncclProfiler_v5",
		"ncclProfiler_v6", "ncclProfiler_v7",
		"lockstep_abi", "lockstep_status", "lockstep_step_begin", "lockstep_link", "lockstep_resumed", "lockstep_fingerprint",
		"lockstep_scope_begin", "lockstep_scope_end", "lockstep_scope_name", "lockstep_scope_push", "lockstep_scope_pop",
		"lockstep_group_open", "lockstep_group_close", "lockstep_collective_begin", "lockstep_collective_end",
		"lockstep_cupti_pause", "lockstep_cupti_resume",
		"InitializeInjection", "InitializeInjectionNvtx2",
	}, got)
	dynamic, err := run(t, "readelf", "-d", library)
	require.NoError(t, err, dynamic)
	assert.Contains(t, dynamic, "NODELETE")
	assert.Contains(t, dynamic, "NOW")
	for _, absent := range []string{"libcuda", "libnccl", "librccl", "libamdhip"} {
		assert.NotContains(t, dynamic, absent)
	}
}
