// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kit

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

func newKit(t *testing.T) *Kit {
	t.Helper()
	return New(t.TempDir(), t.TempDir(), t.TempDir())
}

// sh is a shell's script as a command.
func sh(script string, limit time.Duration) Command {
	return Command{Path: "/bin/sh", Args: []string{"-c", script}, Limit: limit}
}

func TestRun_EndsAndErrors(t *testing.T) {
	k := newKit(t)
	r, err := k.Run(t.Context(), sh("echo out; echo err >&2", 0))
	require.NoError(t, err)
	assert.Equal(t, "out\n", r.Stdout)
	assert.Equal(t, "err\n", r.Stderr)

	_, err = k.Run(t.Context(), sh("echo first >&2; echo the reason >&2; exit 3", 0))
	assert.ErrorContains(t, err, "run sh: exit status 3: the reason")
	_, err = k.Run(t.Context(), Command{Path: "/nonexistent/program"})
	assert.ErrorContains(t, err, "start program")
	assert.Contains(t, k.Log.String(), "the reason")
}

func TestRun_TimeLimit_KillsTheGroup(t *testing.T) {
	k := newKit(t)
	// The child ignores SIGTERM and keeps the output open.
	_, err := k.Run(t.Context(), sh(`(trap "" TERM; sh -c 'echo $$ >child; exec sleep 600') & wait`, 300*time.Millisecond))
	assert.ErrorContains(t, err, "got no end within its time limit")
	text, err := os.ReadFile(filepath.Join(k.Work, "child"))
	require.NoError(t, err)
	assert.Eventually(t, func() bool { return ended(strings.TrimSpace(string(text))) }, 5*time.Second, time.Millisecond)
}

// ended reports whether the process is gone, or dead and not yet collected.
func ended(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	_, state, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(state, "Z")
}

func TestRun_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := newKit(t).Run(ctx, sh("sleep 600", 0))
	assert.ErrorIs(t, err, context.Canceled)
}

func TestEnd_StopsAProgramThatServes(t *testing.T) {
	k := newKit(t)
	p, err := k.Start(t.Context(), sh(`trap "exit 0" INT; echo ready; while :; do sleep 0.01; done`, 0))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.stdout.String() == "ready\n" }, 5*time.Second, time.Millisecond)
	assert.NoError(t, p.End(5*time.Second))

	p, err = k.Start(t.Context(), sh(`trap "" INT; echo ready; while :; do sleep 0.01; done`, 0))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.stdout.String() == "ready\n" }, 5*time.Second, time.Millisecond)
	assert.Error(t, p.End(100*time.Millisecond), "it does not end when asked")
}

func TestRun_OutputIsBounded(t *testing.T) {
	r, err := newKit(t).Run(t.Context(), sh("echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end", 0))
	require.NoError(t, err)
	assert.Less(t, len(r.Stdout), maxOutput+100)
	assert.True(t, strings.HasPrefix(r.Stdout, "begin\n"))
	assert.True(t, strings.HasSuffix(r.Stdout, "end\n"))
	assert.Contains(t, r.Stdout, "bytes left out")
}

func TestCleanEnv(t *testing.T) {
	got := CleanEnv([]string{"PATH=/bin", "NCCL_DEBUG=INFO", "LOCKSTEP_DIR=/x", "RANK=3", "RANKING=1", "CUDA_INJECTION64_PATH=/y", "CUDA_HOME=/z"})
	assert.Equal(t, []string{"PATH=/bin", "RANKING=1", "CUDA_HOME=/z"}, got)
}

func TestFixture(t *testing.T) {
	k := newKit(t)
	require.NoError(t, k.Fixture("rings", Entry{"a.txt", []byte("one")}, Entry{"b.txt", []byte("two")}))
	assert.Equal(t, map[string]string{"a.txt": "one", "b.txt": "two"}, untar(t, filepath.Join(k.Out, "rings.tar.gz")))
	for i := range MaxFixtures - 1 {
		require.NoError(t, k.Fixture("more"+strconv.Itoa(i)))
	}
	require.NoError(t, k.Fixture("rings"), "the same name again")
	assert.ErrorContains(t, k.Fixture("one-too-many"), "want fewer")
	assert.Len(t, k.Fixtures(), MaxFixtures)
}

func TestFixture_NamesNoMachine(t *testing.T) {
	k := newKit(t)
	k.Scrub.Learn("wolf17")
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, err := zip.Write([]byte("trace of wolf17"))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	require.NoError(t, k.Fixture("traces", Entry{"plain.txt", []byte("wolf17:4711")}, Entry{"rank0.json.gz", zipped.Bytes()}))
	entries := untar(t, filepath.Join(k.Out, "traces.tar.gz"))
	assert.Regexp(t, `^00000.:4711$`, entries["plain.txt"])
	assert.Regexp(t, `^trace of 00000.$`, entries["rank0.json"])
	assert.ErrorContains(t, k.Fixture("cut", Entry{"rank0.json.gz", zipped.Bytes()[:8]}), "rank0.json.gz: ")
}

// untar returns the files of an archive.
func untar(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	zip, err := gzip.NewReader(f)
	require.NoError(t, err)
	entries := map[string]string{}
	for tape := tar.NewReader(zip); ; {
		h, err := tape.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		require.NoError(t, err)
		content, err := io.ReadAll(tape)
		require.NoError(t, err)
		entries[h.Name] = string(content)
	}
}

// smallFixture is the limit in tests, bytes.
const smallFixture = 1 << 16

// noise returns bytes that do not compress.
func noise(n int) []byte {
	out, state := make([]byte, n), uint64(1)
	for i := range out {
		state = state*6364136223846793005 + 1442695040888963407
		out[i] = byte(state >> 56)
	}
	return out
}

func TestFixture_TooLarge(t *testing.T) {
	k := newKit(t)
	k.fixtures.max = smallFixture
	assert.ErrorContains(t, k.Fixture("noise", Entry{"noise", noise(smallFixture + 1<<10)}), "want at most")
	assert.Empty(t, k.Fixtures())
}

// python writes an interpreter that prints the text and ends so.
func python(t *testing.T, k *Kit, script string) {
	t.Helper()
	k.Python = filepath.Join(t.TempDir(), "python3")
	require.NoError(t, os.WriteFile(k.Python, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
}

func TestFixtureWith_TooLarge_KeepsTheExtrasThatFit(t *testing.T) {
	k := newKit(t)
	k.fixtures.max = smallFixture
	large := noise(smallFixture + 1<<10)
	left, err := k.FixtureWith("small", []Entry{{"b", []byte("y")}}, Entry{"a", []byte("x")})
	require.NoError(t, err)
	assert.Empty(t, left)
	left, err = k.FixtureWith("some", []Entry{{"b", large}, {"c", []byte("z")}}, Entry{"a", []byte("x")})
	require.NoError(t, err)
	assert.Equal(t, []string{"b"}, left)
	assert.Equal(t, map[string]string{"a": "x", "c": "z"}, untar(t, filepath.Join(k.Out, "some.tar.gz")))
	left, err = k.FixtureWith("other", []Entry{{"b", large}})
	require.NoError(t, err)
	assert.Equal(t, []string{"b"}, left)
	assert.NoFileExists(t, filepath.Join(k.Out, "other.tar.gz"))
}

func TestFixtureWith_OneEntryTooLarge_KeepsTheOthers(t *testing.T) {
	k := newKit(t)
	k.fixtures.max = smallFixture
	large := noise(smallFixture + 1<<10)
	left, err := k.FixtureWith("modes", []Entry{{"d", []byte("more")}, {"e", large}}, Entry{"a", []byte("one")}, Entry{"b", large}, Entry{"c", []byte("two")})
	require.ErrorContains(t, err, "left out b")
	assert.Equal(t, []string{"e"}, left)
	assert.Equal(t, map[string]string{"a": "one", "c": "two", "d": "more"}, untar(t, filepath.Join(k.Out, "modes.tar.gz")))
}

func TestKeep_WhatIsLeftOut_IsACheck(t *testing.T) {
	k := newKit(t)
	k.fixtures.max = smallFixture
	large := noise(smallFixture + 1<<10)
	p := report.NewPart("ranks", "", 0)
	k.Keep(p, "none", nil)
	k.Keep(p, "all", []Entry{{"b", []byte("y")}}, Entry{"a", []byte("x")})
	require.Empty(t, p.Checks)
	assert.Equal(t, []string{"all.tar.gz"}, k.Fixtures())
	k.Keep(p, "ranks", []Entry{{"0.ring", large}}, Entry{"a", []byte("x")})
	require.Len(t, p.Checks, 1)
	assert.Equal(t, report.Noted, p.Checks[0].Status)
	assert.Contains(t, p.Checks[0].Text, "left out of ranks.tar.gz, which may have 16 MiB: 0.ring")
	k.Keep(p, "nccl", nil, Entry{"a", []byte("x")}, Entry{"log", large})
	require.Len(t, p.Checks, 2)
	assert.Equal(t, report.Failed, p.Checks[1].Status)
	assert.Contains(t, p.Checks[1].Text, "left out log")
}

func TestLook_WhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no nvidia-smi
	for name, c := range map[string]struct{ script, reason string }{
		"no torch":            {`echo '{"python": "3.9.2", "reason": "import torch: ModuleNotFoundError"}'`, "import torch: ModuleNotFoundError"},
		"no driver":           {`echo '{"torch": {"version": "2.11.0", "reason": "no NVIDIA driver"}}'`, "no NVIDIA driver"},
		"noise before it":     {`echo warning; echo '{"torch": {"version": "2.11.0", "reason": "old driver"}}'; echo`, "old driver"},
		"no ctypes":           {`echo '{"python": "3.9.2", "unusable": "import ctypes: ModuleNotFoundError"}'`, "import ctypes"},
		"no JSON":             {`echo hello`, "ask PyTorch"},
		"it breaks":           {`echo Segfault >&2; exit 139`, "Segfault"},
		"it prints no object": {`:`, "ask PyTorch"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			python(t, k, c.script)
			facts := k.Look(t.Context())
			assert.Nil(t, k.GPU)
			assert.Contains(t, k.Reason, c.reason)
			assert.Equal(t, k.Broken, k.Python == "", "an interpreter that does not answer is used by no part")
			assert.NotEmpty(t, facts)
		})
	}
	k := newKit(t)
	k.Look(t.Context())
	assert.Contains(t, k.Reason, "no python3")
}

func TestSMI_PathFirst_ThenTheMountedDriver(t *testing.T) {
	mounted, onPath, before := t.TempDir(), t.TempDir(), smiFolders
	smiFolders = []string{mounted}
	t.Cleanup(func() { smiFolders = before })
	t.Setenv("PATH", onPath)
	assert.Empty(t, SMI())
	require.NoError(t, os.WriteFile(filepath.Join(mounted, "nvidia-smi"), []byte("#!/bin/sh\n"), 0o700))
	assert.Equal(t, filepath.Join(mounted, "nvidia-smi"), SMI())
	require.NoError(t, os.WriteFile(filepath.Join(onPath, "nvidia-smi"), []byte("#!/bin/sh\n"), 0o700))
	assert.Equal(t, filepath.Join(onPath, "nvidia-smi"), SMI())
}

// soon shortens the time between answers of a busy GPU.
func soon(t *testing.T) {
	t.Helper()
	before := busyEvery
	busyEvery = time.Millisecond
	t.Cleanup(func() { busyEvery = before })
}

// Our own first use of the device is no other program.
func TestLook_ALoadThatEnds_IsNotBusy(t *testing.T) {
	soon(t)
	bin := t.TempDir()
	script := "#!/bin/sh\ncase $1 in *utilization*) if [ -e " + bin + "/asked ]; then echo 0; else : >" + bin + "/asked; echo 97; fi;; *) echo 580.1;; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(script), 0o700))
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	k := newKit(t)
	python(t, k, `echo '{"torch": {"version": "2.11.0"}, "gpu": {"name": "H200", "memory_mib": 1000, "free_mib": 990, "count": 1}}'`)
	k.Look(t.Context())
	require.FileExists(t, filepath.Join(bin, "asked"))
	assert.Empty(t, k.Busy)
}

func TestLook_ABusyGPU(t *testing.T) {
	soon(t)
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte("#!/bin/sh\ncase $1 in *driver*) echo 580.1;; *) echo 97;; esac\n"), 0o700))
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	k := newKit(t)
	python(t, k, `echo '{"torch": {"version": "2.11.0"}, "gpu": {"name": "H200", "memory_mib": 1000, "free_mib": 990, "count": 1}}'`)
	facts := map[string]string{}
	for _, f := range k.Look(t.Context()) {
		facts[f.Name] = f.Value
	}
	require.NotNil(t, k.GPU)
	assert.Equal(t, "580.1", facts["driver"])
	assert.Contains(t, facts["busy"], "97 % of its time, 1 % of its memory")
	assert.Equal(t, facts["busy"], k.Busy)
}

func TestMachine_IsReadByKit(t *testing.T) {
	k := newKit(t)
	k.Dir = t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(testdata.Root(t), "gpukit", "programs"), filepath.Join(k.Dir, "programs")))
	k.Python = "/usr/bin/env"
	r, err := k.Run(t.Context(), Command{Path: k.Python, Args: []string{"python3", k.Program("machine.py")}})
	if err != nil {
		t.Skipf("run python3: %v", err)
	}
	assert.Contains(t, LastLine(r.Stdout), `"python": "3.`)
}

func TestCheck_NamesWhatTheKitLacks(t *testing.T) {
	k := newKit(t)
	err := k.Check()
	require.ErrorIs(t, err, ErrNoKit)
	assert.ErrorContains(t, err, "got neither MANIFEST nor programs in "+k.Dir)
}
