// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// preflightAnswer is what `lockstep preflight --json` says.
type preflightAnswer struct {
	Verdict  string
	Safe     bool
	Epoch    *int64
	Frontier *int64
	Why      string
	Judged   struct{ Domains int }
	Saves    []struct {
		Epoch   *int64
		Verdict string
		Paths   []string
	}
}

func preflight(t *testing.T, args ...string) preflightAnswer {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(repoRoot(t), "bin", "lockstep"), append([]string{"preflight", "--json"}, args...)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	require.True(t, err == nil || errors.As(err, &exit) && exit.ExitCode() == 3, "%v: %s", err, out)
	var a preflightAnswer
	require.NoError(t, json.Unmarshal(out, &a))
	require.Equal(t, a.Safe, err == nil)
	return a
}

// saveDCP saves with real PyTorch processes.
func saveDCP(t *testing.T, ranks int, folder string, step int, how ...string) {
	t.Helper()
	args := append([]string{filepath.Join(repoRoot(t), "e2e", "testdata", "save_dcp.py"), strconv.Itoa(ranks), folder, strconv.Itoa(step)}, how...)
	cmd := exec.CommandContext(t.Context(), torchPython(t), args...)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=lo", "PYTHONWARNINGS=ignore")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "save: %s", out)
}

// TestTorchCheckpointWhole: what real processes saved is confirmed, and no part of it.
func TestTorchCheckpointWhole(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{2, 4} {
		dir := filepath.Join(t.TempDir(), "step-100")
		saveDCP(t, ranks, dir, 100)
		a := preflight(t, dir)
		require.True(t, a.Safe, a.Why)
		require.EqualValues(t, 100, *a.Epoch)
		require.Equal(t, "converged", preflight(t, "--verify", "--epoch", "100", filepath.Dir(dir)).Verdict, "as torchtitan lays it out")
		require.Equal(t, "converged", preflight(t, "--verify", dir).Verdict)
		noPartPasses(t, dir)
	}
}

// TestTorchCheckpointLocal: where each rank commits for itself, only who knows how many there
// are can say that none is missing.
func TestTorchCheckpointLocal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "save")
	saveDCP(t, 2, dir, 100, "local")
	require.Equal(t, "unknown", preflight(t, dir).Verdict)
	a := preflight(t, "--world-size", "2", dir)
	require.True(t, a.Safe, a.Why)
	require.EqualValues(t, 100, *a.Epoch)
	require.False(t, preflight(t, "--world-size", "3", dir).Safe)
	noPartPasses(t, dir, "--world-size", "2")
}

// noPartPasses removes, empties and cuts each file of a save in turn.
func noPartPasses(t *testing.T, dir string, args ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		whole, err := os.ReadFile(name)
		require.NoError(t, err)
		info, err := os.Stat(name)
		require.NoError(t, err)
		for what, content := range map[string][]byte{"missing": nil, "empty": {}, "cut": whole[:len(whole)-1], "cut in two": whole[:len(whole)/2]} {
			require.NoError(t, os.Remove(name))
			if content != nil {
				require.NoError(t, os.WriteFile(name, content, 0o644))
				require.NoError(t, os.Chtimes(name, info.ModTime(), info.ModTime()))
			}
			require.False(t, preflight(t, append(args, dir)...).Safe, "%s is %s", e.Name(), what)
			require.NoError(t, os.WriteFile(name, whole, 0o644))
			require.NoError(t, os.Chtimes(name, info.ModTime(), info.ModTime()))
		}
	}
	require.True(t, preflight(t, append(args, dir)...).Safe, "put back as it was")
}

// TestTorchCheckpointLostWhileDown: the newest save is deleted while the collector, which was killed with
// SIGKILL, does not look. The next one, which never saw it, says that it is lost.
func TestTorchCheckpointLostWhileDown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := map[string]string{
		"LOCKSTEP_CHECKPOINTS": dir, "LOCKSTEP_JOB_ID": "llama", "LOCKSTEP_POLL": "1s", "LOCKSTEP_HEARTBEAT": "1s", "LOCKSTEP_SETTLE": "5s",
		"LOCKSTEP_EVENTS": filepath.Join(t.TempDir(), "events.jsonl"), "LOCKSTEP_STATE": t.TempDir(),
	}
	c := startCollector(t, "checkpoints.yaml", env)
	for _, step := range []int{100, 200} {
		saveDCP(t, 2, filepath.Join(dir, "step-"+strconv.Itoa(step)), step)
	}
	eventually(t, answerLimit, func() error {
		page, err := get("http://" + c.prometheus + "/metrics")
		if err == nil && !strings.Contains(string(page), `lockstep_epoch_frontier{lockstep_job_id="llama"} 200`) {
			err = fmt.Errorf("find frontier 200: got\n%s", page)
		}
		return err
	}, c.process)
	time.Sleep(20 * time.Second) // a flush_interval, after which it is kept, and some
	require.NoError(t, c.cmd.Process.Kill())
	<-c.done
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "step-200")))
	c = startCollector(t, "checkpoints.yaml", env)
	f := awaitFinding(t, c, "open")
	t.Log(f)
	require.Equal(t, []string{"epoch", "revoked", "save 200", "llama"}, []string{
		f["lockstep.finding.kind"], f["lockstep.finding.class"], f["lockstep.finding.op"], f["lockstep.job.id"],
	})
	saveDCP(t, 2, filepath.Join(dir, "step-300"), 300)
	awaitFinding(t, c, "closed")
	require.Zero(t, c.terminate(t, stopLimit))
}

// TestTorchCheckpointWatched: what real processes save while a collector watches becomes what the
// job can recover; what is lost of it is told.
func TestTorchCheckpointWatched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spans := filepath.Join(t.TempDir(), "spans.jsonl")
	c := startCollector(t, "checkpoints.yaml", map[string]string{
		"LOCKSTEP_SPANS":       spans,
		"LOCKSTEP_CHECKPOINTS": dir, "LOCKSTEP_JOB_ID": "llama", "LOCKSTEP_POLL": "1s", "LOCKSTEP_HEARTBEAT": "1s", "LOCKSTEP_SETTLE": "3s",
		"LOCKSTEP_EVENTS": filepath.Join(t.TempDir(), "events.jsonl"),
	})
	frontier := func(want string) {
		t.Helper()
		eventually(t, answerLimit, func() error {
			page, err := get("http://" + c.prometheus + "/metrics")
			if err == nil && !strings.Contains(string(page), want) {
				err = fmt.Errorf("find %q: got\n%s", want, page)
			}
			return err
		}, c.process)
	}
	for _, step := range []int{100, 200} {
		saveDCP(t, 2, filepath.Join(dir, "step-"+strconv.Itoa(step)), step)
		frontier(`lockstep_epoch_frontier{lockstep_job_id="llama"} ` + strconv.Itoa(step))
	}
	eventually(t, answerLimit, func() error { // of the first save nobody saw the beginning
		text, err := os.ReadFile(spans)
		if n := strings.Count(string(text), `"name":"checkpoint save"`); err == nil && (n != 1 || !strings.Contains(string(text), `lockstep.epoch.begun_by","value":{"stringValue":"file"`)) {
			err = fmt.Errorf("find the span of one save, begun with its files: got %s", text)
		}
		return err
	}, c.process)
	shards, err := filepath.Glob(filepath.Join(dir, "step-200", "*.distcp"))
	require.NoError(t, err)
	require.NotEmpty(t, shards)
	require.NoError(t, os.Remove(shards[0]))
	frontier(`lockstep_epoch_frontier{lockstep_job_id="llama"} 100`)
	var found []finding
	eventually(t, answerLimit, func() (err error) {
		if found, err = findingsIn(c.findings); err == nil && len(found) == 0 {
			err = fmt.Errorf("find one event in %s: got none", c.findings)
		}
		return err
	}, c.process)
	require.Len(t, found, 1)
	require.Equal(t, []string{"epoch", "save 200", "llama"}, []string{found[0]["lockstep.finding.kind"], found[0]["lockstep.finding.op"], found[0]["lockstep.job.id"]})
	t.Log(found[0])
	require.Zero(t, c.terminate(t, stopLimit))
}
