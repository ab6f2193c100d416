// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// A rank that a person, Slurm or a cloud ended by order is no cause, also where it alone is silent.
func TestJudge_RankEndedByOrder_IsNotAccused(t *testing.T) {
	for _, order := range []string{
		"[rank4]: Received SIGTERM, exiting",
		"WARNING Caught signal 15, saving a checkpoint",
		"2026-11-16 10:00:00,123 INFO preemption notice received: this node ends in 30 s",
		"Terminated",
		"torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 15",
		"[rank4]: Traceback (most recent call last):\n[rank4]: KeyboardInterrupt",
		"slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-16T10:00:00 DUE TO PREEMPTION ***",
		"slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-16T10:00:00 ***",
	} {
		for _, end := range []string{"", "Traceback (most recent call last):\nValueError: I/O operation on a queue\n", "Killed\n"} {
			r := files(versions["2.14"], 8, map[int64]string{4: "step 39\n" + order + "\n" + end}).judge(t, Options{WorldSize: 8})
			require.Len(t, r.Roots, 1)
			if strings.Contains(order, "KeyboardInterrupt") && end != "" {
				continue // what a program writes behind it may be another error
			}
			assert.Empty(t, r.Roots[0].Finding.Ranks, order+end)
			assert.Equal(t, []int64{4}, r.Roots[0].Finding.Candidates, order+end)
		}
	}
}

// What ends the whole job ends silent ranks, too.
func TestJudge_JobEndedByOrder_AccusesNobody(t *testing.T) {
	for _, order := range []string{
		"slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-16T10:00:00 ***",
		"slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2026-11-16T10:00:00 DUE TO PREEMPTION ***",
		"W1116 10:00:00 torch/distributed/elastic/agent/server/api.py:741] Received 15 death signal, shutting down workers",
		"srun: Force Terminated StepId=9.0",
		"preemption: SIGTERM received by the launcher",
	} {
		job := ""
		for r := range int64(8) {
			job += fmt.Sprintf("[rank%d]: step 40\n", r)
		}
		waiting := ""
		for r := range int64(8) {
			if r != 4 {
				waiting += versions["2.14"](inDefault(r))
			}
		}
		r := logs{"job.out": job + order + "\n" + waiting}.judge(t, Options{WorldSize: 8})
		ranks, _ := named(r)
		assert.Empty(t, ranks, order)
		require.NotEmpty(t, r.Roots)
		assert.Contains(t, evidence.Encode(r.Roots[0].Finding.Evidence), "job.out:9", "the order is named: "+order)

		if strings.Contains(order, "CANCELLED") { // a person ended a job that hung
			r = logs{"job.out": job + waiting + strings.Replace(order, "STEP 9.0", "JOB 9", 1) + "\n"}.judge(t, Options{WorldSize: 8})
			assertRoot(t, r, 4, model.ClassNotScheduled, "all_reduce 41")
		}
	}
}

// Exit codes of signals that others send are no cause.
func TestJudge_ExitsByOrder_AreNoCause(t *testing.T) {
	for _, code := range []int64{-15, -6, -2, 143, 134, 130} {
		l := files(versions["2.14"], 8, map[int64]string{5: "step 40\n", 2: "step 40\n"})
		l["torchrun.log"] = fmt.Sprintf(torchrun, 5, code, "To enable traceback see: https://pytorch.org")
		ranks, candidates := named(l.judge(t, Options{WorldSize: 8}))
		assert.Empty(t, ranks, code)
		assert.ElementsMatch(t, []int64{2, 5}, candidates, code)

		job := ""
		for r := range int64(8) {
			text := fmt.Sprintf("%d: [rank%d]: step 40\n", r, r)
			if r != 5 && r != 2 {
				text += fmt.Sprintf("%d: %s", r, versions["2.3"](inDefault(r)))
			}
			job += text
		}
		if code > 0 {
			ranks, _ = named(logs{"slurm-99.out": job + fmt.Sprintf("srun: error: n1: task 5: Exited with exit code %d\nsrun: Terminating StepId=99.0\n", code)}.judge(t, Options{WorldSize: 8}))
			assert.Empty(t, ranks, code)
		}
	}
}

// An error of a device that its driver reports since the process ends is a result of the end.
func TestJudge_DeviceErrorsOfAnEnd_AreResults(t *testing.T) {
	for _, e := range []string{"CUDA error: driver shutting down", "CUDA error: context is destroyed"} {
		for version, write := range watchdogEnds {
			r := files(versions["2.14"], 8, map[int64]string{4: write(4, "10:00:00.1", e), 2: ""}).judge(t, Options{WorldSize: 8})
			ranks, candidates := named(r)
			assert.Empty(t, ranks, version)
			assert.ElementsMatch(t, []int64{2, 4}, candidates, version)
		}
	}
}

// An error that ended a watchdog is said, also where nothing timed out.
func TestJudge_DeviceErrorWithoutTimeOuts_IsSaid(t *testing.T) {
	for version, write := range watchdogEnds {
		text := write(3, "10:00:00.1", illegal)
		assert.True(t, Sniff(strings.NewReader(text)), version)
		r := logs{"job.out": text}.judge(t, Options{})
		assertNobody(t, r)
		require.Len(t, r.Problems, 1, version)
		assert.Contains(t, r.Problems[0], "rank 3: "+illegal)
	}
}
