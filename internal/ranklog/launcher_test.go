// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// launcherEnds are what launchers write when they end the ranks that are left.
var launcherEnds = map[string]string{
	"torchrun":       "W1116 10:00:30 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 4711 closing signal SIGTERM\nE1116 10:00:31 api.py:882] failed (exitcode: -6) local_rank: 0 (pid: 4700) of binary: /usr/bin/python\n",
	"srun":           "srun: error: n1: task 0: Aborted (core dumped)\nsrun: Terminating StepId=99.0\n",
	"srun, aborted":  "srun: error: n1: task 0: Aborted (core dumped)\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n",
	"slurmstepd":     "slurmstepd: error: *** STEP 99.0 ON n1 CANCELLED AT 2026-11-16T10:00:00 ***\n",
	"Slurm's prolog": "srun: error: n1: task 0: Aborted\nsrun: forcing job termination\n",
	"mpirun":         "mpirun noticed that process rank 0 with PID 4700 on node n1 exited on signal 6 (Aborted).\n",
}

// A rank that the launcher ended before it wrote anything is no cause, but a candidate.
func TestJudge_RankEndedByTheLauncher_IsNotAccused(t *testing.T) {
	for name, text := range launcherEnds {
		t.Run(name, func(t *testing.T) {
			l := files(versions["2.14"], 8, map[int64]string{7: "step 40 loss 2.1\n"})
			assertRoot(t, l.judge(t, Options{WorldSize: 8}), 7, model.ClassNotScheduled, "all_reduce 41")
			l["launcher.log"] = text
			r := l.judge(t, Options{WorldSize: 8})
			require.Len(t, r.Roots, 1)
			assert.Empty(t, r.Roots[0].Finding.Ranks)
			assert.Equal(t, []int64{7}, r.Roots[0].Finding.Candidates)
			assert.Contains(t, evidence.Encode(r.Roots[0].Finding.Evidence), "launcher.log:")

			// What a rank wrote by itself says more.
			l["rank7_stderr.log"] += fmt.Sprintf(outOfMemory, 7, 7)
			assertRoot(t, l.judge(t, Options{WorldSize: 8}), 7, model.ClassProcessDead, "all_reduce 41")
		})
	}
}

// An error that a rank writes behind the launcher's signal is a result of that signal.
func TestJudge_ErrorBehindTheSignal_IsNoCause(t *testing.T) {
	const after = "[rank5]: Traceback (most recent call last):\n[rank5]: ValueError: bad sample\n"
	for name, text := range launcherEnds {
		t.Run(name, func(t *testing.T) {
			job := ""
			for r := range int64(8) {
				if r != 5 && r != 7 {
					job += versions["2.14"](inDefault(r))
				}
			}
			job += "[rank5]: step 40\n[rank7]: step 40\n"
			r := logs{"job.out": job + text + after}.judge(t, Options{WorldSize: 8})
			require.Len(t, r.Roots, 1)
			assert.Empty(t, r.Roots[0].Finding.Ranks)
			assert.Equal(t, []int64{5, 7}, r.Roots[0].Finding.Candidates)

			r = logs{"job.out": job + after + text}.judge(t, Options{WorldSize: 8})
			require.NotEmpty(t, r.Roots)
			assert.Equal(t, model.Some(int64(5)), r.Roots[0].Finding.Rank, "it failed first")
		})
	}
}

// The task that ended before srun ended the others is the cause.
func TestJudge_TaskThatEndedFirst_IsTheCause(t *testing.T) {
	const end = "srun: Terminating StepId=99.0\nsrun: error: n1: task 2: Killed\nsrun: error: n1: tasks 0-1,3-4,6-7: Terminated\n"
	for _, first := range []string{"Killed", "Exited with exit code 1", "Exited with exit code 137", "Out Of Memory"} {
		job := ""
		for r := range int64(8) {
			text := fmt.Sprintf("%d: [rank%d]: step 40\n", r, r)
			if r != 5 && r != 2 {
				text += fmt.Sprintf("%d: %s", r, versions["2.3"](inDefault(r)))
			}
			job += text
		}
		l := logs{"slurm-99.out": job + "srun: error: n1: task 5: " + first + "\n" + end}
		r := l.judge(t, Options{WorldSize: 8})
		require.NotEmpty(t, r.Roots, first)
		assert.Equal(t, []any{model.Some(int64(5)), model.ClassProcessDead}, []any{r.Roots[0].Finding.Rank, r.Roots[0].Finding.Class}, first)
		for _, other := range r.Roots[1:] {
			assert.Empty(t, other.Finding.Ranks, "the launcher ended it")
		}

		r = logs{"slurm-99.out": job + end + "srun: error: n1: task 5: " + first + "\n"}.judge(t, Options{WorldSize: 8})
		if first == "Out Of Memory" {
			continue // it is one whenever it comes
		}
		require.Len(t, r.Roots, 1)
		assert.Empty(t, r.Roots[0].Finding.Ranks, first)
		assert.Equal(t, []int64{2, 5}, r.Roots[0].Finding.Candidates)
	}
}

// Launchers that report the end of a rank name it.
func TestJudge_LaunchersReportAnEnd_IsTheRank(t *testing.T) {
	for _, text := range []string{
		"[rank: %d] Child process with PID 4711 terminated with code %d. Forcefully terminating all other processes to avoid zombies",
		"ERROR:composer.cli.launcher:Rank %d crashed with exit code %d.",
		"Global rank %d (PID 4711) exited with code %d",
		"2026-11-16 10:00:00,1 ERROR launcher: rank %d failed with return code %d",
	} {
		for _, code := range []int{-9, -11, 1, 137} {
			l := files(versions["2.14"], 8, map[int64]string{5: "step 40\n", 2: "step 40\n"})
			l["launcher.log"] = fmt.Sprintf(text, 5, code) + "\n" + fmt.Sprintf(text, 2, -6) + "\n"
			r := l.judge(t, Options{WorldSize: 8})
			require.NotEmpty(t, r.Roots)
			assert.Equal(t, []any{model.Some(int64(5)), model.ClassProcessDead}, []any{r.Roots[0].Finding.Rank, r.Roots[0].Finding.Class}, text)

			for _, before := range []string{"Sending process 4711 closing signal SIGTERM\n", fmt.Sprintf(text, 3, -9) + "\n"} {
				l["launcher.log"] = before + fmt.Sprintf(text, 5, code) + "\n"
				ranks, _ := named(l.judge(t, Options{WorldSize: 8}))
				if code == -9 || code == 137 || before[0] == 'S' {
					assert.NotContains(t, ranks, int64(5), before)
				}
			}
		}
		for _, code := range []int{0, -15, -6, 143} {
			l := files(versions["2.14"], 8, map[int64]string{5: "step 40\n", 2: "step 40\n"})
			l["launcher.log"] = fmt.Sprintf(text, 5, code) + "\n"
			ranks, _ := named(l.judge(t, Options{WorldSize: 8}))
			assert.Empty(t, ranks, code)
		}
	}
}

// A launcher that ends an earlier life says nothing of the last one.
func TestJudge_LauncherOfAnEarlierLife_IsForgotten(t *testing.T) {
	job := launcherEnds["torchrun"] + "api.py:882] [default] worker group FAILED. 3/3 attempts left; will restart worker group\n"
	for r := range int64(4) {
		if r != 2 {
			job += versions["2.14"](inDefault(r))
		}
	}
	assertRoot(t, logs{"job.out": job + "[rank2]: step 40\n"}.judge(t, Options{WorldSize: 4}), 2, model.ClassNotScheduled, "all_reduce 41")
}

// What a program writes of a rank and a code is no end of the rank.
func TestOfRankExit_LinesOfPrograms_AreNoEnd(t *testing.T) {
	for _, line := range []string{
		"rank 2 upload of checkpoint to s3 failed with code 503, will retry",
		"rank 1 download of shard failed with code 3, retrying",
		"Rank 4: request to the reward server exited with code 1",
		"worker of rank 3 terminated with signal 15, restarting the data loader",
		"rank 7 subprocess ffmpeg died with code -9",
		"[rank2]: Rank 5 crashed with exit code 1",
		"Rank 5 crashed with exit code 503",
		"rank 6 failed with exit code 1, starting it again",
	} {
		_, ok := ofRankExit([]byte(line), place{})
		assert.False(t, ok, line)
	}
}
