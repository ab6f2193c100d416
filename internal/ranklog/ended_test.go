// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

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
		text := "step 1\nstep 2\nstep 3\n"
		if r == 5 {
			text += fmt.Sprintf(outOfMemory, 5, 5)
		} else {
			text += versions["2.14"](inDefault(r))
		}
		l[fmt.Sprintf("rank%d.log", r)] = text + second(r)
	}
	return l
}

// What a program prints of its end is no evidence of health: it may be of an epoch, of a script, or have
// waited in a buffer.
func TestJudge_LastLifeThatSaysItEnded_IsNoData(t *testing.T) {
	for _, end := range []string{
		"training done", "Finished training epoch 1", "Validation: training done for epoch 1", "{'train_runtime': 12.3, 'train_loss': 2.1, 'epoch': 3.0}",
		"`Trainer.fit` stopped: `max_epochs=3` reached.",
	} {
		r := twoLives(func(int64) string { return stepsOf("", 50) + end + "\n" }).judge(t, Options{})
		assert.Equal(t, []any{desync.NoData, int64(0)}, []any{r.Verdict, r.Waiting}, end)
		assert.Contains(t, r.MayRun, "the time-outs of 7 ranks are of an earlier life of the job", end)
		assert.Contains(t, r.Earlier, "rank 5: torch.OutOfMemoryError", end)
	}
}
