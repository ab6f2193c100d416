// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
)

// stepsOf are n lines of steps.
func stepsOf(mark string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sstep %d loss 2.3\n", mark, i)
	}
	return b.String()
}

// twoLives are logs of a job whose first life hung, since rank 5 ran out of memory, and what its ranks
// write in the second.
func twoLives(second func(rank int64) string) logs {
	l := logs{}
	for r := range int64(8) {
		text := "step 1\n"
		if r == 5 {
			text += fmt.Sprintf(outOfMemory, 5, 5)
		} else {
			text += versions["2.14"](inDefault(r))
		}
		l[fmt.Sprintf("rank%d.log", r)] = text + second(r)
	}
	return l
}

func TestJudge_LastLifeEndedWell_IsHealthy(t *testing.T) {
	for _, end := range []string{
		"training done", "INFO:root:Training completed in 3.2 h", "{'train_runtime': 12.3, 'train_loss': 2.1, 'epoch': 3.0}",
		"`Trainer.fit` stopped: `max_epochs=3` reached.", "[exiting program after 500 iterations] datetime: 2026-11-20",
	} {
		r := twoLives(func(int64) string { return stepsOf("", 50) + end + "\n" }).judge(t, Options{})
		assert.Equal(t, []any{desync.Healthy, 8, int64(0)}, []any{r.Verdict, r.Ranks, r.Waiting}, end)
		assert.Empty(t, r.Absent)
		assert.Empty(t, r.Problems)
		require.Len(t, r.Remarks, 2)
		assert.Contains(t, r.Remarks[0], "An earlier life of the job ended with time-outs of 7 ranks.")
		assert.Contains(t, r.Remarks[1], "rank 5: torch.OutOfMemoryError")
	}
	merged := ""
	for r := range int64(4) {
		if r != 2 {
			merged += versions["2.14"](inDefault(r))
		}
	}
	for name, again := range map[string]string{
		"Slurm's mark":    "slurmstepd: error: *** JOB 99 ON n1 CANCELLED AT 2025-11-16T10:00:00 DUE TO JOB REQUEUE ***\n",
		"torchrun's mark": "api.py:882] [default] worker group FAILED. 3/3 attempts left; will restart worker group\n",
	} {
		text := merged + "[rank2]: step 1\n" + again
		for r := range 4 {
			text += stepsOf(fmt.Sprintf("[rank%d]: ", r), 5)
		}
		r := logs{"slurm-99.out": text + "Training complete\n"}.judge(t, Options{})
		assert.Equal(t, []any{desync.Healthy, 4}, []any{r.Verdict, r.Ranks}, name)
		r = logs{"slurm-99.out": text}.judge(t, Options{})
		assert.Equal(t, desync.NoData, r.Verdict, name)
		assert.Contains(t, r.MayRun, "not all logs say that training ended", name)
	}
}

func TestJudge_LastLifeThatDoesNotEndWell_IsNeverHealthy(t *testing.T) {
	well := stepsOf("", 50) + "training done\n"
	of := func(rank int64, text string) func(int64) string {
		return func(r int64) string {
			if r == rank {
				return text
			}
			return well
		}
	}
	waits := func(rank, seq int64) string {
		s := inDefault(rank)
		s.seq = seq
		return versions["2.14"](s)
	}
	for name, c := range map[string]struct {
		l logs
		o Options
	}{
		"nothing says that it ended":        {twoLives(func(int64) string { return stepsOf("", 50) }), Options{}},
		"one rank does not say it":          {twoLives(of(3, stepsOf("", 50))), Options{}},
		"one rank waits":                    {twoLives(of(3, stepsOf("", 50)+waits(3, 90))), Options{}},
		"one rank waits behind the end":     {twoLives(of(3, well+waits(3, 90))), Options{}},
		"all wait":                          {twoLives(func(r int64) string { return stepsOf("", 50) + waits(r, 12) }), Options{}},
		"one rank fails":                    {twoLives(of(3, stepsOf("", 50)+"Traceback (most recent call last):\nValueError: x\n")), Options{}},
		"one rank's connection is closed":   {twoLives(of(3, well+"Traceback (most recent call last):\ntorch.distributed.DistBackendError: NCCL error\n")), Options{}},
		"one rank's watchdog stands still":  {twoLives(of(3, well+"[rank3]:[E x] [PG 0 Rank 3] Heartbeat monitor timed out! Process will be terminated after dumping debug info.\n")), Options{}},
		"one rank has no log":               {twoLives(of(9, "")), Options{WorldSize: 9}},
		"it says that training did not end": {twoLives(of(3, stepsOf("", 50)+"training not done, saving\n")), Options{}},
		"it says that training failed":      {twoLives(of(3, stepsOf("", 50)+"training finished with error 3\n")), Options{}},
		"it ended before the time-out":      {twoLives(func(r int64) string { return well + waits(r, 90) + stepsOf("", 5) }), Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.NotEqual(t, desync.Healthy, c.l.judge(t, c.o).Verdict)
		})
	}
	l := twoLives(func(int64) string { return well })
	l["torchrun.log"] = fmt.Sprintf(torchrun, 5, -9, "Signal 9 (SIGKILL) received by PID 12345")
	assert.NotEqual(t, desync.Healthy, l.judge(t, Options{}).Verdict, "torchrun's summary may be of the last life")
	l = twoLives(func(int64) string { return well })
	l["job.log"] = "[PG ID 1 PG GUID 7(tp) Rank 1]  failure detected by watchdog at work sequence id: 9 PG status: last enqueued work: 9, last completed work: 8\n"
	assert.NotEqual(t, desync.Healthy, l.judge(t, Options{}).Verdict, "a time-out without a rank may be of the last life")
}
