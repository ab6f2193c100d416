// SPDX-License-Identifier: Apache-2.0

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

	"github.com/lockstep-otel/lockstep/internal/cbuild"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// variants are the ways all of the plugin and its driver are built: seeds are those of
// the random events, and seconds is how long the pool is contended for. SEEDS and
// POOL_SECONDS in the environment set others.
var variants = []struct{ name, san, seeds, seconds string }{
	{"plain", cbuild.Plain, "1 2 3 4", "1"},
	{"address and undefined", cbuild.ASan, "5 6", "0.2"},
	{"thread", cbuild.TSan, "7 8", "0.4"},
}

// run executes a command in this folder and returns what it printed.
func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = cbuild.Environ()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestPluginUnderNCCLsCalls replays every event of every version of the
// interface, and then random ones, in each variant.
func TestPluginUnderNCCLsCalls(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			cbuild.Variant(t, v.san, "inject/nccl", "tests")
			for _, target := range []string{"test", "hammer"} {
				out, err := run(t, "make", "-s", target, "SAN="+v.san, "RINGS="+filepath.Join(t.TempDir(), "rings"),
					"SEEDS="+cmp.Or(os.Getenv("SEEDS"), v.seeds), "POOL_SECONDS="+cmp.Or(os.Getenv("POOL_SECONDS"), v.seconds))
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
	cbuild.Make(t, "inject/nccl", "plugin")
	library := filepath.Join(testdata.Root(t), "bin", "libnccl-profiler-lockstep.so")
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
