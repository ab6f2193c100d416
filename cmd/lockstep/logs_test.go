// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// timedOut is what the watchdog of a rank writes that waits in operation 41 of all.
func timedOut(rank int) string {
	return fmt.Sprintf("[rank%[1]d]:[E1116 10:00:00.1 ProcessGroupNCCL.cpp:632] [Rank %[1]d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n"+
		"[rank%[1]d]:[E1116 10:00:00.2 ProcessGroupNCCL.cpp:2268] [PG ID 0 PG GUID 0(default_pg) Rank %[1]d]  failure detected by watchdog at work sequence id: 41 PG status: last enqueued work: 41, last completed work: 40\n", rank)
}

const noMemory = "[rank2]: Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory.\n"

// put writes a file, and the folders above it.
func putFile(t *testing.T, content string, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// writeLogs writes the logs of four ranks under names with the rank; rank 2 has run out of memory.
func writeLogs(t *testing.T, dir, name string) {
	t.Helper()
	for r := range 4 {
		text := timedOut(r)
		if r == 2 {
			text = noMemory
		}
		putFile(t, text, dir, fmt.Sprintf(name, r))
	}
}

func TestAnalyzeLogs_OfEachLayout_NameTheRank(t *testing.T) {
	for name, layout := range map[string]string{
		"a file a rank": "rank%d_stderr.log", "a number": "worker-%d.log", "torchrun": "run_x/attempt_0/%d/stderr.log", "no extension": "rank_%d", "text": "log_rank%d.txt",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeLogs(t, dir, layout)
			putFile(t, "hello", dir, "README.md")
			status, r := analyzeJSON(t, dir)
			assert.Equal(t, exitFindings, status)
			require.Len(t, r.Findings, 1)
			assert.EqualValues(t, 2, r.Findings[0][semconv.FindingRank])
			assert.Equal(t, model.ClassProcessDead, r.Findings[0][semconv.FindingClass])
			assert.Equal(t, 4, r.Input.Files)
			assert.Empty(t, r.Problems)

			_, stdout, stderr := call("analyze", dir)
			assert.Empty(t, stderr)
			assert.Contains(t, stdout, "rank 2: desync (process_dead)")
			assert.Contains(t, strings.Join(strings.Fields(stdout), " "), "CUDA out of memory.")
			assert.Contains(t, stdout, "4 files, 3 time-outs of operations")
		})
	}
}

// Only the last attempt of a job counts.
func TestAnalyzeLogs_EarlierAttempts_AreLeftOut(t *testing.T) {
	dir := t.TempDir()
	writeLogs(t, dir, "attempt_1/%d/stderr.log")
	for r := range 4 {
		putFile(t, timedOut(r), dir, "attempt_0", fmt.Sprint(r), "stderr.log")
	}
	status, r := analyzeJSON(t, dir)
	assert.Equal(t, exitFindings, status)
	require.Len(t, r.Findings, 1)
	assert.EqualValues(t, 2, r.Findings[0][semconv.FindingRank])
	assert.Equal(t, 4, r.Input.Files)
	assert.Equal(t, 4, r.Input.Skipped)
}

// Dumps decide; a log beside them adds the last error, and that a rank ended.
func TestAnalyzeLogs_BesideDumps_AddTheLastError(t *testing.T) {
	dir := writeDumps(t, 2)
	writeLogs(t, dir, "rank%d_stderr.log")
	status, r := analyzeJSON(t, dir)
	assert.Equal(t, exitFindings, status)
	require.Len(t, r.Findings, 1)
	assert.Equal(t, model.ClassNotScheduled, r.Findings[0][semconv.FindingClass])
	assert.Contains(t, r.Findings[0][semconv.FindingEvidence], "CUDA out of memory")

	require.NoError(t, os.Remove(filepath.Join(dir, "nccl_trace_rank_2")))
	status, r = analyzeJSON(t, dir)
	assert.Equal(t, exitFindings, status)
	require.Len(t, r.Findings, 1)
	assert.Equal(t, model.ClassProcessDead, r.Findings[0][semconv.FindingClass])
	assert.EqualValues(t, 2, r.Findings[0][semconv.FindingRank])
}

// Beside dumps only an own cause is the end of a rank without a dump.
func TestAnalyzeLogs_BesideDumps_OnlyOwnCausesAreAnEnd(t *testing.T) {
	const trace = "[rank2]: Traceback (most recent call last):\n"
	for name, c := range map[string]struct {
		text string
		dead bool
	}{
		"a result":    {trace + "ConnectionAbortedError: [Errno 103] Software caused connection abort\n", false},
		"a time-out":  {trace + "RuntimeError: Read timeout\n", false},
		"unclear":     {trace + "RuntimeError: boom\n", false},
		"caught":      {trace + "PermissionError: /scratch/a\n[rank2]: lr 0.1\n", false},
		"by order":    {"[rank2]: got SIGTERM\n" + noMemory, false},
		"of its data": {trace + "ValueError: bad sample\n", true},
		"of a device": {trace + "torch.AcceleratorError: CUDA error: device-side assert triggered\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeDumps(t, 2)
			require.NoError(t, os.Remove(filepath.Join(dir, "nccl_trace_rank_2")))
			writeLogs(t, dir, "rank%d_stderr.log")
			putFile(t, c.text, dir, "rank2_stderr.log")
			_, r := analyzeJSON(t, dir)
			require.Len(t, r.Findings, 1)
			assert.Equal(t, c.dead, r.Findings[0][semconv.FindingClass] == model.ClassProcessDead, "%v", r.Findings[0])
		})
	}
}

// Nothing is healthy where logs say that operations timed out.
func TestAnalyzeLogs_TimeOutsBesideHealth_AreAContradiction(t *testing.T) {
	dir := writeDumps(t, 0, 1, 2, 3)
	for _, alone := range []bool{true, false} {
		t.Run(fmt.Sprintf("alone %v", alone), func(t *testing.T) {
			if putFile(t, timedOut(0), dir, "rank0.log"); !alone {
				writeLogs(t, dir, "rank%d.log")
			}
			status, stdout, _ := call("analyze", "--json", dir)
			assert.NotEqual(t, exitNothing, status)
			var r output
			require.NoError(t, json.Unmarshal([]byte(stdout), &r))
			require.Len(t, r.Hangs, 2)
			assert.Equal(t, "undecided", string(r.Hangs[0].Verdict))
			assert.Contains(t, r.Hangs[0].MayRun, "timed out")
			assert.True(t, r.Hangs[1].Logs)
		})
	}
	t.Run("without time-outs", func(t *testing.T) {
		dir := writeDumps(t, 0, 1, 2, 3)
		putFile(t, "Root Cause (first observed failure):\n[0]:\n  time      : x\n  host      : n\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 5)\n", dir, "torchrun.log")
		_, stdout, _ := call("analyze", "--json", dir)
		var r output
		require.NoError(t, json.Unmarshal([]byte(stdout), &r))
		require.Len(t, r.Hangs, 1)
		assert.Equal(t, "healthy", string(r.Hangs[0].Verdict))
	})
}

// Logs without any line of the watchdog are no input, and a refusal lists what is.
func TestAnalyzeLogs_WithoutTimeOuts_AreRefused(t *testing.T) {
	dir := t.TempDir()
	for r := range 2 {
		putFile(t, "Traceback (most recent call last):\nValueError: bad\nstep 2\n", dir, fmt.Sprintf("rank%d.log", r))
	}
	for _, path := range []string{dir, filepath.Join(dir, "rank0.log")} {
		status, r := analyzeJSON(t, path)
		assert.Equal(t, exitUnusable, status)
		assert.Empty(t, r.Findings)
		require.Len(t, r.Problems, 1)
		assert.Equal(t, path, r.Problems[0].File)
		assert.Contains(t, r.Problems[0].What, "watchdog")
	}
	putFile(t, "Root Cause (first observed failure):\n[0]:\n  time      : x\n  host      : n\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 5)\n", dir, "torchrun.log")
	status, stdout, _ := call("analyze", dir)
	assert.Equal(t, exitUnusable, status)
	assert.Contains(t, strings.Join(strings.Fields(stdout), " "), "Cannot tell: no log says that an operation timed out. Rank 1: ")
}

// What is refused in part is never nothing: 2 where nothing was found, 3 where something was.
func TestAnalyze_InputRefusedInPart_IsNeverStatus0(t *testing.T) {
	healthy := func(t *testing.T) string { t.Helper(); return writeDumps(t, 0, 1, 2, 3) }
	status, _, _ := call("analyze", healthy(t))
	assert.Equal(t, exitNothing, status, "all was read")
	for name, damage := range map[string]func(dir string) []string{
		"a path that is not there": func(dir string) []string { return []string{dir, filepath.Join(dir, "other")} },
		"a file of no format":      func(dir string) []string { return []string{dir, putFile(t, "hello\n", dir, "..", "notes.md")} },
		"a damaged trace":          func(dir string) []string { putFile(t, `{"traceEvents": [`, dir, "rank0.json"); return []string{dir} },
		"a folder of nothing":      func(dir string) []string { return []string{dir, t.TempDir()} },
		"a log without time-outs":  func(dir string) []string { return []string{dir, putFile(t, "step 1\n", dir, "..", "rank9.log")} },
		"a pattern of nothing":     func(dir string) []string { return []string{dir, filepath.Join(dir, "*.none")} },
	} {
		t.Run(name, func(t *testing.T) {
			status, _, stderr := call(append([]string{"analyze"}, damage(healthy(t))...)...)
			assert.Equal(t, exitUnusable, status)
			assert.Contains(t, stderr, "not everything could be judged")
			status, _, _ = call(append([]string{"analyze"}, damage(writeDumps(t, 2))...)...)
			assert.Equal(t, exitFindings, status)
		})
	}
}

// The logs of two jobs in one folder are judged apart: merged, the rank that one job lacks is lost.
func TestAnalyzeLogs_OfTwoJobs_AreJudgedApart(t *testing.T) {
	dir := t.TempDir()
	for r := range 4 {
		putFile(t, timedOut(r), dir, fmt.Sprintf("b_rank%d.log", r))
		text := timedOut(r)
		if r == 1 {
			text = "step 1\n"
		}
		putFile(t, text, dir, fmt.Sprintf("a_rank%d.log", r))
	}
	status, stdout, _ := call("analyze", "--json", dir)
	assert.Equal(t, exitFindings, status)
	var r output
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Len(t, r.Hangs, 2)
	assert.Equal(t, filepath.Base(dir)+"/a", r.Hangs[0].Job)
	assert.Equal(t, filepath.Base(dir)+"/b", r.Hangs[1].Job)
	require.Len(t, r.Hangs[0].Roots, 1)
	assert.EqualValues(t, 1, r.Hangs[0].Roots[0].Finding[semconv.FindingRank])
	assert.Equal(t, 8, r.Input.Files)
	assert.Empty(t, r.Problems)

	status, stdout, _ = call("analyze", "--json", "--job", "x", dir)
	assert.Equal(t, exitFindings, status)
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	assert.Len(t, r.Hangs, 1, "--job says that all are of one")
}

// Logs of several jobs that no name parts are refused, not merged.
func TestAnalyzeLogs_OfJobsThatNoNameParts_AreRefused(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"rank0_101.log", "rank1_102.log", "rank0_201.log", "rank1_202.log"} {
		putFile(t, strings.ReplaceAll(timedOut(i%2), "600060", fmt.Sprint(600060+i)), dir, name)
	}
	status, stdout, stderr := call("analyze", dir)
	assert.Equal(t, exitUnusable, status)
	assert.NotContains(t, stdout, "rank 1")
	said := strings.Join(strings.Fields(stdout+stderr), " ")
	assert.Contains(t, said, "want the logs of one job")
	assert.Contains(t, said, "rank0_201.log have rank 0 of different processes")
}

// A job that ran to its end after a hang of an earlier life is not accused, and not called healthy.
func TestAnalyzeLogs_LastLifeThatSaysItEnded_IsStatus2(t *testing.T) {
	const steps = "step 1 loss 2\nstep 2 loss 2\nstep 3 loss 2\nstep 4 loss 2\n"
	dir := t.TempDir()
	for r := range 4 {
		putFile(t, steps+timedOut(r)+steps+"training done\n", dir, fmt.Sprintf("rank%d.log", r))
	}
	status, stdout, _ := call("analyze", dir)
	assert.Equal(t, exitUnusable, status)
	assert.Contains(t, strings.Join(strings.Fields(stdout), " "), "the time-outs of 4 ranks are of an earlier life of the job")

	putFile(t, steps+timedOut(3)+steps+timedOut(3), dir, "rank3.log")
	status, _, _ = call("analyze", dir)
	assert.Equal(t, exitFindings, status)
}

// The launcher's log says that it ended the rank that wrote nothing: that rank is not named.
func TestAnalyzeLogs_LauncherBesideThem_IsRead(t *testing.T) {
	for name, line := range map[string]string{
		"launcher.log": "W1116 10:00:30 api.py:900] Sending process 4711 closing signal SIGTERM\n", "slurm-9.out": "srun: Terminating StepId=9.0\n", "job.err": "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n",
	} {
		dir := t.TempDir()
		writeLogs(t, dir, "rank%d.log")
		putFile(t, "step 1\n", dir, "rank2.log")
		putFile(t, "step 1\n", dir, "notes.txt")
		_, r := analyzeJSON(t, dir)
		require.Len(t, r.Findings, 1)
		assert.EqualValues(t, 2, r.Findings[0][semconv.FindingRank])
		putFile(t, line, dir, name)
		status, r := analyzeJSON(t, dir)
		assert.Equal(t, exitFindings, status)
		assert.Equal(t, 5, r.Input.Files)
		require.Len(t, r.Findings, 1)
		assert.NotContains(t, r.Findings[0], semconv.FindingRank)
		assert.Contains(t, r.Findings[0][semconv.FindingEvidence], name+":1")
	}
}
