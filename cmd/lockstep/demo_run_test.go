// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/cbuild"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// demoBin builds the worker and the plugin, and returns their folder.
func demoBin(t *testing.T) string {
	t.Helper()
	needsDemo(t)
	cbuild.Make(t, "demo")
	cbuild.Make(t, "inject/nccl")
	return filepath.Join(testdata.Root(t), "bin")
}

func needsDemo(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the demo is for Linux")
	}
	if testing.Short() {
		t.Skip("builds and runs the demo")
	}
}

func TestDemo(t *testing.T) {
	t.Setenv("LOCKSTEP_BIN", demoBin(t))
	t.Run("finds a slow rank", findsASlowRank)
	t.Run("ends at the first finding", endsAtTheFirstFinding)
	t.Run("finds nothing in a healthy job", findsNothingInAHealthyJob)
	t.Run("fails with its workers", failsWithItsWorkers)
	t.Run("says who has no ring", saysWhoHasNoRing)
}

// TestDemoInAProcess has the demos that wait: each in a process of its own, at once.
func TestDemoInAProcess(t *testing.T) {
	bin := demoBin(t)
	for name, test := range map[string]func(t *testing.T, bin string){
		"names the rank that hangs":      namesTheRankThatHangs,
		"kills who does not end":         killsWhoDoesNotEnd,
		"ends where a rank stands still": endsWhereARankStandsStill,
		"ends cleanly":                   endsCleanly,
		"ends with its reader":           endsWithItsReader,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, bin)
		})
	}
}

func demoLines(t *testing.T, args ...string) (findings []demoFinding, summary demoSummary) {
	t.Helper()
	status, stdout, stderr := call(append([]string{"demo", "--json"}, args...)...)
	require.Equal(t, exitNothing, status, stderr)
	return parseDemoLines(t, stdout)
}

func parseDemoLines(t *testing.T, stdout string) (findings []demoFinding, summary demoSummary) {
	t.Helper()
	for line := range strings.Lines(stdout) {
		if strings.HasPrefix(line, `{"finding"`) {
			var f demoFinding
			require.NoError(t, json.Unmarshal([]byte(line), &f), line)
			findings = append(findings, f)
		} else {
			require.NoError(t, json.Unmarshal([]byte(line), &summary), line)
		}
	}
	return findings, summary
}

// A slow rank is found while the job runs, as what it is. e2e has the other faults, and in
// the full tier each with every witness. The machine may be busy with other tests, so that
// other findings may come, too.
func findsASlowRank(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	findings, summary := demoLines(t, "--fault", "compute", "--rank", "1", "--steps", "30", "--dir", dir)
	at := slices.IndexFunc(findings, func(f demoFinding) bool {
		return f.Class == "compute" && f.Cause == "unknown" && f.Op == "work before all_reduce" && f.Rank != nil && *f.Rank == 1
	})
	require.GreaterOrEqual(t, at, 0, "%+v", findings)
	assert.Less(t, findings[at].AtStep, summary.Steps-1, "found while the job ran")
	assert.True(t, summary.Identical)
	assert.Equal(t, 4, summary.Ranks)
	assert.Empty(t, summary.NotCompared)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func endsAtTheFirstFinding(t *testing.T) {
	t.Helper()
	findings, summary := demoLines(t, "--once", "--steps", "1000", "--dir", t.TempDir())
	assert.NotEmpty(t, findings)
	assert.Less(t, summary.Steps, int64(1000))
}

func findsNothingInAHealthyJob(t *testing.T) {
	t.Helper()
	for _, level := range demoLevels {
		t.Run(level, func(t *testing.T) {
			status, stdout, stderr := call("demo", "--fault", "none", "--ranks", "2", "--steps", "20", "--level", level, "--dir", t.TempDir())
			assert.Equal(t, exitNothing, status, stderr)
			assert.Contains(t, stdout, "20 steps of ")
			said := words(stdout)
			if level == "summary" {
				assert.Contains(t, said, "of 2 ranks were read; nothing could be judged: level summary carries no single operations")
			} else {
				assert.Contains(t, said, "of 2 ranks were read; nothing was found.")
			}
			assert.Contains(t, said, "all ranks hold the same weights")
		})
	}
}

func failsWithItsWorkers(t *testing.T) {
	t.Helper()
	status, stdout, stderr := call("demo", "--worker-arg=--nonesuch", "--dir", t.TempDir())
	assert.Equal(t, exitFailed, status)
	// Whose end is seen first ends the others.
	assert.Regexp(t, "run worker of rank [0-3]: exit status 2", stderr)
	for line := range strings.Lines(stderr) {
		if strings.Contains(line, "run worker of rank") {
			assert.True(t, strings.HasPrefix(line, "lockstep: "), line)
		}
	}
	assert.Contains(t, stdout, "after 0 steps, without a result", "what there was is told")
}

// Nothing found is not the same as nothing seen.
func saysWhoHasNoRing(t *testing.T) {
	t.Helper()
	t.Setenv("LOCKSTEP_TEST_DEMO_ARGS", "demo --fault none --ranks 2 --steps 6 --dir "+t.TempDir())
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "ulimit -f 512 && exec \"$0\" -test.run=^TestDemoProcess$", os.Args[0])
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	assert.Equal(t, exitFailed, cmd.ProcessState.ExitCode(), stdout.String())
	assert.Contains(t, words(stdout.String()), "nothing could be judged: 2 of 2 ranks made no ring (ranks 0 and 1): ")
	assert.Contains(t, stderr.String(), "lockstep: watch the job: 2 of 2 ranks made no ring (ranks 0 and 1): ")
	assert.Contains(t, stderr.String(), "RLIMIT_FSIZE")
}

func killsWhoDoesNotEnd(t *testing.T, bin string) {
	t.Helper()
	p := startDemoProcess(t, bin)
	pids := p.children(t)
	require.NoError(t, syscall.Kill(pids[1], syscall.SIGSTOP))
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	_ = p.cmd.Wait()
	assert.Equal(t, exitFailed, p.cmd.ProcessState.ExitCode())
	assert.Regexp(t, `lockstep: end the workers: got no answer of ranks .* \(a signal had stopped rank \d: .*\); killed\n`, p.stderr.String())
	assert.NotContains(t, p.stderr.String(), "signal: killed")
	assertNothingLeft(t, p, pids)
}

// A job of which one rank dies while another stands still ends by itself.
func endsWhereARankStandsStill(t *testing.T, bin string) {
	t.Helper()
	p := startDemoProcess(t, bin)
	pids := p.children(t)
	require.NoError(t, syscall.Kill(pids[1], syscall.SIGSTOP))
	require.NoError(t, syscall.Kill(pids[0], syscall.SIGKILL))
	_ = p.cmd.Wait()
	assert.Equal(t, exitFailed, p.cmd.ProcessState.ExitCode())
	assert.Regexp(t, `lockstep: run worker of rank \d: signal: killed\n`, p.stderr.String())
	assert.Regexp(t, `end the workers: got no answer of rank.* \(a signal had stopped rank \d: .*\); killed\n`, p.stderr.String())
	assertNothingLeft(t, p, pids)
}

// demoProcess is the command in a process of its own, since it is to be killed.
type demoProcess struct {
	cmd    *exec.Cmd
	dir    string
	stdout *bufio.Reader
	stderr bytes.Buffer
}

// TestDemoProcess is that process, not a test.
func TestDemoProcess(*testing.T) {
	if args := os.Getenv("LOCKSTEP_TEST_DEMO_ARGS"); args != "" {
		os.Exit(Main(strings.Fields(args), os.Stdout, os.Stderr))
	}
}

// demoCommand is the demo with arguments that hold no blanks.
func demoCommand(t *testing.T, bin, args string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDemoProcess$")
	cmd.Env = append(os.Environ(), "LOCKSTEP_BIN="+bin, "LOCKSTEP_TEST_DEMO_ARGS=demo "+args)
	return cmd
}

// startDemoProcess returns when the ranks have made their rings.
func startDemoProcess(t *testing.T, bin string) *demoProcess {
	t.Helper()
	p := &demoProcess{dir: t.TempDir()}
	p.cmd = demoCommand(t, bin, "--fault none --steps 1000000 --dir "+p.dir)
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.stdout = bufio.NewReader(stdout)
	require.NoError(t, p.cmd.Start())
	require.Eventually(t, func() bool {
		rings, _ := filepath.Glob(filepath.Join(p.dir, "*", "rings", "*.ring"))
		return len(rings) == 4
	}, 20*time.Second, 10*time.Millisecond, "rings of 4 ranks")
	return p
}

// children returns the processes that p started.
func (p *demoProcess) children(t *testing.T) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, path := range stats {
		var pid, parent int
		var name, state string
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		if n, _ := fmt.Sscan(string(text), &pid, &name, &state, &parent); n == 4 && parent == p.cmd.Process.Pid {
			pids = append(pids, pid)
		}
	}
	return pids
}

func assertNothingLeft(t *testing.T, p *demoProcess, pids []int) {
	t.Helper()
	assert.Len(t, pids, 4)
	for _, pid := range pids {
		assert.Eventually(t, func() bool { return isGone(pid) }, 10*time.Second, 20*time.Millisecond, "worker %d", pid)
	}
	left, err := os.ReadDir(p.dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// A reader that goes away ends the demo, and leaves nothing behind.
func endsWithItsReader(t *testing.T, bin string) {
	t.Helper()
	dir := t.TempDir()
	cmd := demoCommand(t, bin, "--steps 100000 --dir "+dir)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &stderr
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	_ = cmd.Wait()
	assert.Equal(t, exitBrokenPipe, cmd.ProcessState.ExitCode(), stderr.String())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func endsCleanly(t *testing.T, bin string) {
	t.Helper()
	for name, tc := range map[string]struct {
		signals []syscall.Signal
		status  int
	}{
		"interrupted":       {[]syscall.Signal{syscall.SIGINT}, exitNothing},
		"terminated":        {[]syscall.Signal{syscall.SIGTERM}, exitNothing},
		"interrupted twice": {[]syscall.Signal{syscall.SIGSTOP, syscall.SIGINT, syscall.SIGINT}, exitInterrupted},
		"killed":            {[]syscall.Signal{syscall.SIGKILL}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startDemoProcess(t, bin)
			pids := p.children(t)
			for _, s := range tc.signals {
				if s == syscall.SIGSTOP { // of a worker: the others wait for it, and the first signal does not suffice
					require.NoError(t, syscall.Kill(pids[1], s))
					continue
				}
				require.NoError(t, p.cmd.Process.Signal(s))
				time.Sleep(2 * sameSignal)
			}
			_ = p.cmd.Wait()
			assert.Equal(t, tc.status, p.cmd.ProcessState.ExitCode(), p.stderr.String())
			assertNothingLeft(t, p, pids)
		})
	}
}
