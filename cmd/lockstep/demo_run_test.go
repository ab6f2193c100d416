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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/cbuild"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// demoBin builds the worker and the plugin, and has the command find them.
func demoBin(t *testing.T) {
	t.Helper()
	needsDemo(t)
	cbuild.Make(t, "demo")
	cbuild.Make(t, "inject/nccl")
	t.Setenv("LOCKSTEP_BIN", filepath.Join(testdata.Root(t), "bin"))
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

// TestDemo builds once what it runs.
func TestDemo(t *testing.T) {
	demoBin(t)
	t.Run("finds every fault", findsEveryFault)
	t.Run("sees what the witness sees", seesWhatTheWitnessSees)
	t.Run("names every hang", namesEveryHang)
	t.Run("ends at the first finding", endsAtTheFirstFinding)
	t.Run("finds nothing in a healthy job", findsNothingInAHealthyJob)
	t.Run("fails with its workers", failsWithItsWorkers)
	t.Run("says who has no ring", saysWhoHasNoRing)
	t.Run("kills who does not end", killsWhoDoesNotEnd)
	t.Run("ends where a rank stands still", endsWhereARankStandsStill)
	t.Run("ends cleanly", endsCleanly)
	t.Run("ends with its reader", endsWithItsReader)
}

func demoLines(t *testing.T, args ...string) (findings []demoFinding, summary demoSummary) {
	t.Helper()
	status, stdout, stderr := call(append([]string{"demo", "--json"}, args...)...)
	require.Equal(t, exitNothing, status, stderr)
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

// Each fault is found while the job runs, as what it is. How soon and how surely
// is measured by bench/demo/faults.sh; here the machine may be busy with other
// tests, so that other findings may come, too.
func findsEveryFault(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for i, tc := range []struct{ fault, class, cause, op string }{
		{"compute", "compute", "unknown", "work before all_reduce"},
		{"host", "host", "unknown", "(other)"},
		{"link", "link", "unknown", "all_reduce"},
		{"compile", "host", "compile", "compile"},
		{"dataloader", "host", "dataloader", "data_loading"},
		{"gc", "host", "gc", "garbage_collection"},
		{"checkpoint", "host", "checkpoint", "checkpoint_save"},
	} {
		t.Run(tc.fault, func(t *testing.T) {
			rank := int64(i % 4)
			findings, summary := demoLines(t, "--fault", tc.fault, "--rank", strconv.Itoa(i%4), "--steps", "30", "--dir", dir)
			at := slices.IndexFunc(findings, func(f demoFinding) bool {
				return f.Class == tc.class && f.Cause == tc.cause && f.Op == tc.op && f.Rank != nil && *f.Rank == rank
			})
			require.GreaterOrEqual(t, at, 0, "%+v", findings)
			assert.Less(t, findings[at].AtStep, summary.Steps-1, "found while the job ran")
			assert.True(t, summary.Identical)
			assert.Equal(t, 4, summary.Ranks)
		})
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// What each row can decide is tested by e2e/witness_test.go; here, that a row is one.
func seesWhatTheWitnessSees(t *testing.T) {
	t.Helper()
	for witness, want := range map[string]struct {
		found       bool
		notCompared string
	}{
		"host-events": {false, "when operations are enqueued does not say when they end, by which ranks are compared"},
		"kernels":     {true, ""},
		"cupti":       {true, ""},
	} {
		t.Run(witness, func(t *testing.T) {
			findings, summary := demoLines(t, "--fault", "host", "--witness", witness, "--steps", "35", "--dir", t.TempDir())
			// Hosts of a busy machine do pause in turn, which is told of nobody.
			accused := slices.ContainsFunc(findings, func(f demoFinding) bool { return f.Rank != nil })
			assert.Equal(t, want.found, accused, "%+v", findings)
			assert.Equal(t, want.notCompared, summary.NotCompared)
			assert.Equal(t, 4, summary.Ranks)
		})
	}
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

func killsWhoDoesNotEnd(t *testing.T) {
	t.Helper()
	p := startDemoProcess(t)
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
func endsWhereARankStandsStill(t *testing.T) {
	t.Helper()
	p := startDemoProcess(t)
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

// startDemoProcess returns when the ranks have made their rings.
func startDemoProcess(t *testing.T) *demoProcess {
	t.Helper()
	p := &demoProcess{cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDemoProcess$"), dir: t.TempDir()}
	p.cmd.Env = append(os.Environ(), "LOCKSTEP_TEST_DEMO_ARGS=demo --fault none --steps 1000000 --dir "+p.dir)
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
func endsWithItsReader(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDemoProcess$")
	cmd.Env = append(os.Environ(), "LOCKSTEP_TEST_DEMO_ARGS=demo --steps 100000 --dir "+dir)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	cmd.Stdout = w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	_ = cmd.Wait()
	assert.Equal(t, exitBrokenPipe, cmd.ProcessState.ExitCode())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func endsCleanly(t *testing.T) {
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
			p := startDemoProcess(t)
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
