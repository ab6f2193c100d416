// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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

// worker, checker and standIn return what make builds in the bin folder.
func worker(t *testing.T) string {
	t.Helper()
	return built(t, "lockstep-demo-worker")
}

func checker(t *testing.T) string {
	t.Helper()
	return built(t, "demo/check.so")
}

func standIn(t *testing.T) string {
	t.Helper()
	return built(t, "lockstep-demo-cupti.so")
}

func built(t *testing.T, name string) string {
	t.Helper()
	cbuild.Make(t, "demo", "tests")
	return filepath.Join(testdata.Root(t), "bin", name)
}

type rank struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	check          string
}

type outcome struct {
	Steps     int     `json:"steps"`
	ABI       int     `json:"abi"`
	LossFirst float64 `json:"loss_first"`
	LossLast  float64 `json:"loss_last"`
	Identical bool    `json:"weights_identical"`
	Iteration struct {
		P50 float64 `json:"p50"`
	} `json:"iteration_ms"`
}

// startRanks starts n ranks; extra are the arguments of the last one alone.
func startRanks(t *testing.T, program string, n int, env, args, extra []string) []*rank {
	t.Helper()
	meet := t.TempDir()
	ranks := make([]*rank, n)
	for i := range ranks {
		r := &rank{check: filepath.Join(meet, "check"+strconv.Itoa(i))}
		all := append([]string{"--meet", meet, "--rank", strconv.Itoa(i), "--ranks", strconv.Itoa(n)}, args...)
		if i == n-1 {
			all = append(all, extra...)
		}
		r.cmd = exec.CommandContext(t.Context(), program, all...)
		r.cmd.Env = append(append(os.Environ(), env...), "DEMO_CHECK="+r.check)
		r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
		require.NoError(t, r.cmd.Start())
		ranks[i] = r
	}
	return ranks
}

// awaitCheckpoints waits until all ranks have written their first checkpoint.
func awaitCheckpoints(t *testing.T, ranks []*rank) {
	t.Helper()
	for i, r := range ranks {
		shard := filepath.Join(filepath.Dir(r.check), "shard"+strconv.Itoa(i))
		require.Eventually(t, func() bool { _, err := os.Stat(shard); return err == nil }, time.Minute, 5*time.Millisecond, shard)
	}
}

func (r *rank) outcome(t *testing.T) (o outcome) {
	t.Helper()
	require.NoError(t, r.cmd.Wait(), r.stderr.String())
	require.NoError(t, json.Unmarshal(r.stdout.Bytes(), &o), r.stdout.String())
	return o
}

func TestRanksLearnTheSame(t *testing.T) {
	program := worker(t)
	for _, tc := range []struct {
		name  string
		ranks int
		args  []string
	}{
		{"alone", 1, nil},
		{"two", 2, nil},
		{"three, chunks that divide nothing", 3, []string{"--chunk", "1028"}},
		{"five, one channel", 5, []string{"--channels", "1"}},
		{"two, four channels, one chunk", 2, []string{"--channels", "4", "--chunk", "1048576"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append([]string{"--no-pace", "--steps", "30"}, tc.args...)
			for _, r := range startRanks(t, program, tc.ranks, nil, args, nil) {
				o := r.outcome(t)
				assert.Equal(t, 30, o.Steps)
				assert.True(t, o.Identical, "weights differ")
				assert.Less(t, o.LossLast, o.LossFirst/2, "it does not learn")
			}
		})
	}
}

// The same gradients, summed over other numbers of ranks, are other sums: what a
// rank learns alone must not be what two learn.
func TestGradientsOfAllRanksCount(t *testing.T) {
	program := worker(t)
	args := []string{"--no-pace", "--steps", "5"}
	one := startRanks(t, program, 1, nil, args, nil)[0].outcome(t)
	two := startRanks(t, program, 2, nil, args, nil)
	both := two[0].outcome(t)
	assert.InDelta(t, both.LossLast, two[1].outcome(t).LossLast, 0, "the loss is the mean over ranks")
	assert.NotEqual(t, one.LossLast, both.LossLast)
}

// What the faults cost is known: the step grows by it.
func TestFaultsTakeTime(t *testing.T) {
	program := worker(t)
	healthy := 44.0 // ms: 5 of loading, 38 of kernels, and the last reduction
	for fault, atLeast := range map[string]float64{
		"compute": 15, "host": 25, "link": 15, "compile": 25, "dataloader": 25, "gc": 20, "checkpoint": 65,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			for _, r := range startRanks(t, program, 2, nil, []string{"--steps", "12"}, []string{"--fault", fault}) {
				assert.Greater(t, r.outcome(t).Iteration.P50, healthy+atLeast)
			}
		})
	}
}

// A checkpoint is the weights of all ranks, each of which has written its part.
func TestCheckpointsAreWritten(t *testing.T) {
	const ranks, weights = 3, 65*256 + 257*128 + 129*8
	args := []string{"--no-pace", "--steps", "5", "--checkpoint-every", "2"}
	all := startRanks(t, worker(t), ranks, nil, args, nil)
	for _, r := range all {
		r.outcome(t)
	}
	meet := filepath.Dir(all[0].check)
	var written int64
	for rank := range ranks {
		st, err := os.Stat(filepath.Join(meet, "shard"+strconv.Itoa(rank)))
		require.NoError(t, err)
		assert.Less(t, st.Size(), int64(4*weights/2), "a part")
		written += st.Size()
	}
	assert.Equal(t, int64(4*weights), written, "in 4 bytes each")
	left, err := filepath.Glob(filepath.Join(meet, ".shard*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestACheckpointThatCannotBeWritten(t *testing.T) {
	meet := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(meet, ".shard0"), 0o700))
	said, err := exec.CommandContext(t.Context(), worker(t), "--meet", meet, "--checkpoint-every", "2", "--steps", "9").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(said), "rank 0: write "+meet+"/shard0 after step 1: Is a directory")
}

func TestASignalToOneEndsAll(t *testing.T) {
	ranks := startRanks(t, worker(t), 3, nil, []string{"--steps", "0", "--checkpoint-every", "2"}, nil)
	awaitCheckpoints(t, ranks)
	require.NoError(t, ranks[1].cmd.Process.Signal(syscall.SIGTERM))
	steps := -1
	for _, r := range ranks {
		o := r.outcome(t)
		assert.True(t, o.Identical)
		if steps >= 0 {
			assert.Equal(t, steps, o.Steps, "all stop after the same step")
		}
		steps = o.Steps
	}
}

func TestADeadPeerEndsTheOthers(t *testing.T) {
	ranks := startRanks(t, worker(t), 3, nil, []string{"--steps", "0", "--checkpoint-every", "2"}, nil)
	awaitCheckpoints(t, ranks)
	require.NoError(t, ranks[1].cmd.Process.Kill())
	for i, r := range ranks {
		err := r.cmd.Wait()
		if i != 1 {
			var status *exec.ExitError
			require.ErrorAs(t, err, &status)
			assert.Equal(t, 1, status.ExitCode())
			assert.Contains(t, r.stderr.String(), "is gone")
			assert.Empty(t, r.stdout.String(), "no result of a failed run")
		}
	}
}

func TestWrongUsage(t *testing.T) {
	program := worker(t)
	for _, tc := range []struct{ args, want string }{
		{"--ranks 65", "got 65; want 1 to 64"},
		{"--ranks 2", "want a directory"},
		{"--rank 3 --ranks 3 --meet /", "want less than --ranks 3"},
		{"--fault fire", "got fire; want none"},
		{"--fault checkpoint", "want a directory for checkpoints"},
		{"--checkpoint-every -1", "got -1; want 0 to"},
		{"--steps 1x", "got 1x"},
		{"--abi 3", "got 3; want 4 to 7"},
		{"more", "got more; want options only"},
		{"--nonesuch", "usage:"},
	} {
		said, err := exec.CommandContext(t.Context(), program, strings.Fields(tc.args)...).CombinedOutput()
		var status *exec.ExitError
		require.ErrorAs(t, err, &status, tc.args)
		assert.Equal(t, 2, status.ExitCode(), tc.args)
		assert.Contains(t, string(said), tc.want, tc.args)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "NCCL_PROFILER_PLUGIN=/nonesuch.so")
	said, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(said), "load the profiler plugin: /nonesuch.so")
}

type checked struct {
	Wrong      int    `json:"wrong"`
	FirstWrong string `json:"first_wrong"`
	Steps      int    `json:"steps"`
	Begun      int    `json:"scopes_begun"`
	Ended      int    `json:"scopes_ended"`
	Deepest    int    `json:"deepest"`
	Injected   int    `json:"injected"`
	Threads    int    `json:"threads"`
	Started    []int  `json:"started"`
	Stopped    []int  `json:"stopped"`
}

// The worker calls a profiler as NCCL does; check/check.c says what is wrong.
func TestProfilerIsCalledAsByNCCL(t *testing.T) {
	program := worker(t)
	plugin := checker(t)
	const steps, channels = 10, 2
	colls := 3*steps + 1 // and one that compares the weights
	for _, tc := range []struct {
		abi  string
		mask int
		want map[int]int // bit of the event type: how many
	}{
		{"7", 0xffff, map[int]int{0: colls, 1: colls, 3: 2 * channels * colls, 6: channels * colls, 8: colls, 9: colls, 11: colls}},
		{"5", 0xffff, map[int]int{0: colls, 1: colls, 3: 2 * channels * colls, 6: channels * colls, 8: colls, 9: colls, 11: colls}},
		{"4", 0xff, map[int]int{0: colls, 1: colls, 3: 2 * channels * colls, 6: channels * colls, 8: 0, 9: 0, 11: 0}},
		{"7", 1<<1 | 1<<6, map[int]int{0: colls, 1: colls, 3: 0, 4: 0, 6: channels * colls, 8: colls, 9: colls, 11: 0}},
		{"7", 0, map[int]int{0: 0, 1: 0, 3: 0, 4: 0, 6: 0, 8: 0, 9: 0}},
	} {
		t.Run("v"+tc.abi+" "+strconv.Itoa(tc.mask), func(t *testing.T) {
			env := []string{"NCCL_PROFILER_PLUGIN=" + plugin, "DEMO_CHECK_MASK=" + strconv.Itoa(tc.mask)}
			args := []string{"--steps", strconv.Itoa(steps), "--no-pace", "--abi", tc.abi, "--chunk", "4096"}
			for _, r := range startRanks(t, program, 3, env, args, nil) {
				o := r.outcome(t)
				assert.Equal(t, tc.abi, strconv.Itoa(o.ABI))
				assertChecked(t, r.check, tc.want, tc.mask, steps)
			}
		})
	}
}

// What a rank is slow in has a scope of its own, where anything of it is told.
func TestFaultsHaveTheirScopes(t *testing.T) {
	program := worker(t)
	plugin := checker(t)
	const steps = 3
	for fault, want := range map[string]struct{ more, deepest int }{
		"host": {0, 1}, "dataloader": {0, 1}, "compile": {1, 1}, "gc": {1, 2}, "checkpoint": {1, 1},
	} {
		t.Run(fault, func(t *testing.T) {
			env := []string{"NCCL_PROFILER_PLUGIN=" + plugin, "DEMO_CHECK_MASK=2"}
			r := startRanks(t, program, 1, env, []string{"--steps", strconv.Itoa(steps), "--no-pace", "--fault", fault}, nil)[0]
			r.outcome(t)
			c := readChecked(t, r.check)
			assert.Zero(t, c.Wrong, c.FirstWrong)
			assert.Equal(t, (4+want.more)*steps, c.Begun)
			assert.Equal(t, c.Begun, c.Ended)
			assert.Equal(t, want.deepest, c.Deepest)
		})
	}
}

// Where CUPTI is asked for, the worker does what libcuda does, and its stand-in is
// told of every kernel. A client of it that enables nothing is handed nothing.
func TestWorkerInjectsForCUPTI(t *testing.T) {
	program := worker(t)
	plugin := checker(t)
	standIn := standIn(t)
	for name, tc := range map[string]struct {
		env  []string
		want int
	}{
		"asked for":       {[]string{"CUDA_INJECTION64_PATH=" + plugin, "LOCKSTEP_CUPTI=" + standIn}, 1},
		"no stand-in":     {[]string{"CUDA_INJECTION64_PATH=" + plugin}, 0},
		"nothing to load": {[]string{"LOCKSTEP_CUPTI=" + standIn}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			env := append([]string{"NCCL_PROFILER_PLUGIN=" + plugin, "DEMO_CHECK_MASK=2"}, tc.env...)
			for _, r := range startRanks(t, program, 2, env, []string{"--steps", "4", "--no-pace"}, nil) {
				r.outcome(t)
				c := readChecked(t, r.check)
				assert.Zero(t, c.Wrong, c.FirstWrong)
				assert.Equal(t, tc.want, c.Injected)
			}
		})
	}
	for want, env := range map[string][]string{
		"load the stand-in for CUPTI: /nonesuch.so":    {"CUDA_INJECTION64_PATH=" + plugin, "LOCKSTEP_CUPTI=/nonesuch.so"},
		"find the stand-in for CUPTI: " + plugin:       {"CUDA_INJECTION64_PATH=" + plugin, "LOCKSTEP_CUPTI=" + plugin},
		"inject /nonesuch.so: /nonesuch.so: cannot op": {"CUDA_INJECTION64_PATH=/nonesuch.so", "LOCKSTEP_CUPTI=" + standIn},
	} {
		cmd := exec.CommandContext(t.Context(), program, "--steps", "1")
		cmd.Env = append(os.Environ(), env...)
		said, err := cmd.CombinedOutput()
		require.Error(t, err)
		assert.Contains(t, string(said), want)
	}
}

func readChecked(t *testing.T, file string) (c checked) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &c), string(text))
	return c
}

func assertChecked(t *testing.T, file string, want map[int]int, mask, steps int) {
	t.Helper()
	c := readChecked(t, file)
	assert.Zero(t, c.Wrong, c.FirstWrong)
	assert.Equal(t, c.Started, c.Stopped, "what was started was stopped")
	for bit, n := range want {
		assert.Equal(t, n, c.Started[bit], "events of type 1<<%d", bit)
	}
	if mask&(1<<4) != 0 {
		assert.Greater(t, c.Started[4], c.Started[3], "steps of the proxy")
		assert.Equal(t, 3, c.Threads, "host, proxy and profiler thread")
	}
	assert.Equal(t, steps, c.Steps)
	assert.Equal(t, 4*steps, c.Begun)
	assert.Equal(t, c.Begun, c.Ended)
}

// Data races between the threads of a rank would be ours, not the plugin's.
func TestWorkerUnderThreadSanitizer(t *testing.T) {
	cbuild.Variant(t, cbuild.TSan, "demo")
	program := built(t, "demo-tsan/lockstep-demo-worker")
	for _, r := range startRanks(t, program, 2, nil, []string{"--no-pace", "--steps", "10"}, nil) {
		r.outcome(t)
		assert.NotContains(t, r.stderr.String(), "WARNING: ThreadSanitizer")
	}
}
