// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// A real process that is stopped while another waits for it: reported at once, an error once that one
// has waited for the limit, closed when it goes on.
func TestStoppedRank_RealProcess_InfoErrorClosed(t *testing.T) {
	t.Parallel() // others wait for as long as the limit
	dir := t.TempDir()
	cfg := config(dir)
	cfg.StateInterval, cfg.StallAfter = 50*time.Millisecond, 100*time.Millisecond
	b := start(t, cfg, nil)
	j := startJob(t, dir, 2, 3, "hang")
	limits := watch.NewDefaultConfig()
	limits.Floor, limits.HeldLimit = time.Second, 2*time.Second // few gaps are known, so that the limit is this
	w := watch.New(limits)
	given := 0
	var found []model.Finding
	until := func(what string, ok func(f *model.Finding) bool) model.Finding {
		t.Helper()
		var last model.Finding
		require.Eventually(t, func() bool {
			states := b.states(t)
			for ; given < len(states); given++ {
				w.AddState(&states[given], time.Now())
			}
			list := w.Tick(time.Now())
			found = append(found, list...)
			for i := range list {
				if last = list[i]; ok(&last) {
					return true
				}
			}
			return false
		}, patience, 20*time.Millisecond, "%s", what)
		return last
	}

	require.Eventually(t, func() bool { return len(b.states(t)) > 2 }, patience, 10*time.Millisecond)
	began := time.Now()
	require.NoError(t, j.ranks[1].Process.Signal(syscall.SIGSTOP))
	first := until("it is reported", func(f *model.Finding) bool { return f.Class == model.ClassProcessStopped })
	assert.Less(t, time.Since(began), 5*time.Second)
	assert.Equal(t, model.SeverityInfo, first.Severity)
	assert.Equal(t, model.Some(int64(1)), first.Rank)
	assert.Contains(t, evidence.Encode(first.Evidence), fmt.Sprintf(`"pid":%d`, j.ranks[1].Process.Pid))
	assert.Contains(t, first.Action, fmt.Sprintf("kill -CONT %d", j.ranks[1].Process.Pid))

	graver := until("it is an error", func(f *model.Finding) bool { return f.Severity == model.SeverityError })
	assert.Equal(t, first.ID, graver.ID)
	assert.Equal(t, []int64{0}, graver.Waiting)

	require.NoError(t, j.ranks[1].Process.Signal(syscall.SIGCONT))
	closed := until("it is closed", func(f *model.Finding) bool {
		return f.Class == model.ClassProcessStopped && f.Status == model.StatusClosed
	})
	assert.Equal(t, first.ID, closed.ID)
	for i := range found {
		assert.NotEqual(t, model.Some(int64(0)), found[i].Rank, "the other is accused of nothing")
	}
}
