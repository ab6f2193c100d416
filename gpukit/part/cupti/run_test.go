// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/cbuild"
	"github.com/lockstep-otel/lockstep/internal/testdata"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// standInKit returns a kit on a machine without a GPU, with that library as its
// libcupti.
func standInKit(t *testing.T, cupti string) *kit.Kit {
	t.Helper()
	if !tier.Full(t) {
		t.Skipf("the stand-in runs in the full tier: %s=full", tier.Env)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	cbuild.Variant(t, cbuild.Plain, "inject/cupti", "mock")
	cbuild.Variant(t, cbuild.Plain, "inject/nccl", "plugin")
	root, dir := testdata.Root(t), t.TempDir()
	for link, target := range map[string]string{
		"programs":                         "gpukit/programs",
		"lib/libnccl-profiler-lockstep.so": "bin/libnccl-profiler-lockstep.so",
		"standin/libcupti-standin.so":      filepath.Join("bin", "inject", "cupti", cupti),
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o700))
		require.NoError(t, os.Symlink(filepath.Join(root, target), filepath.Join(dir, link)))
	}
	k := kit.New(dir, t.TempDir(), t.TempDir())
	k.Python = python
	return k
}

func checksOf(t *testing.T, k *kit.Kit) []report.Check {
	t.Helper()
	p := report.NewPart("cupti", "", time.Minute)
	Run(t.Context(), k, p)
	require.NotEmpty(t, p.Checks)
	return p.Checks
}

func TestRun_OnTheStandIn_IsRight(t *testing.T) {
	k := standInKit(t, "libcupti-standin.so")
	checks := checksOf(t, k)
	for _, c := range checks {
		assert.NotEqual(t, report.Failed, c.Status, "%s: %s", c.Name, c.Text)
	}
	for _, name := range []string{"eager-counts", "graph-launches", "compile-resume", "profiler-first", "unpaused-trace", "exit", "clock-brackets"} {
		assert.Equal(t, report.StandIn, statuses(checks)[name], name)
	}
	assert.Equal(t, []string{"cupti.tar.gz"}, k.Fixtures())
}

// An older CUPTI cannot record calls one by one, so that kernels have no launches.
func TestRun_WithAnOlderCUPTI_MissesLaunches(t *testing.T) {
	checks := checksOf(t, standInKit(t, "libcupti.so.12"))
	assert.Equal(t, report.Failed, statuses(checks)["eager-launches"])
	assert.Equal(t, report.StandIn, statuses(checks)["eager-counts"])
}

func TestRun_WithoutPython_NamesTheReason(t *testing.T) {
	k := kit.New(t.TempDir(), t.TempDir(), t.TempDir())
	k.Reason = "no python3 on the PATH"
	checks := checksOf(t, k)
	require.Len(t, checks, 1)
	assert.Equal(t, report.NotShown, checks[0].Status)
}

func TestRun_WithAProgramThatBreaks_NamesEachRun(t *testing.T) {
	k := kit.New(t.TempDir(), t.TempDir(), t.TempDir())
	k.Python = "/bin/false"
	checks := checksOf(t, k)
	for _, name := range []string{"before-run", "silent-run", "eager-run", "compile-run", "graph-run", "alone-run"} {
		assert.Equal(t, report.Failed, statuses(checks)[name], name)
	}
}

func TestStatusOf_AMachineThatCannotCompile_ShowsNothing(t *testing.T) {
	for text, want := range map[string]report.Status{
		"run cupti.py: exit status 1: torch._inductor.exc.InductorError: RuntimeError: Failed to find C compiler.":                          report.NotShown,
		"run cupti.py: exit status 1: subprocess.CalledProcessError: Command '['/usr/bin/gcc', 'main.c']' returned non-zero exit status 1.": report.NotShown,
		"run cupti.py: signal: segmentation fault":                                        report.Failed,
		"run cupti.py: exit status 1: RuntimeError: CUDA error: an illegal memory access": report.Failed,
	} {
		assert.Equal(t, want, statusOf(errors.New(text)), text)
	}
}
