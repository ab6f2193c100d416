// SPDX-License-Identifier: Apache-2.0

package logline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// restarted returns a watch that knows what another one kept.
func restarted(t *testing.T, w *Watch, now time.Time) *Watch {
	t.Helper()
	data, err := w.Snapshot()
	require.NoError(t, err)
	again := New(w.cfg)
	require.NoError(t, again.Restore(data, now))
	return again
}

func TestRestart_LinesGoOn_StayOneFinding(t *testing.T) {
	w := New(NewDefaultConfig())
	w.Observe(&Line{JobID: "j", JobName: "llama", Host: "a", Text: megatron(9), Time: 5}, after(0))
	w.Observe(&Line{HostID: "1", Host: "b", Text: nvml}, after(0))
	w.Tick(after(0))
	before := w.Standing(after(0))
	w = restarted(t, w, after(1))
	assert.Empty(t, w.Tick(after(1)))
	assert.Len(t, w.Standing(after(1)), len(before))
	w.Observe(&Line{JobID: "j", Host: "a", Text: megatron(9)}, after(2))
	assert.Empty(t, w.Tick(after(2)), "one line more is nothing new")
	w.Observe(&Line{JobID: "j", Host: "c", Text: megatron(4)}, after(3))
	out := w.Tick(after(3))
	require.Len(t, out, 1)
	ev := evidenceOf(out[0])
	assert.Equal(t, []any{before[1].ID, int64(2), model.StatusUpdated, []int64{4, 9}, int64(3), "llama", map[string]string{"iteration": "1500", "max_iteration": "2000"}},
		[]any{out[0].ID, out[0].Revision, out[0].Status, out[0].Ranks, ev.Lines, out[0].JobName, ev.Said})
	assert.Len(t, w.Tick(after(16)), 1, "of the host no line came for as long as without a restart")
	assert.Len(t, w.Tick(after(18)), 1)
	assert.Empty(t, w.Standing(after(18)))
}

// Whatever the time at which they come, the same lines are one finding.
func TestLines_SameData_SameID(t *testing.T) {
	ids := map[string]bool{}
	for _, minutes := range []int{0, 3, 24 * 60} {
		w := New(NewDefaultConfig())
		w.Observe(&Line{JobID: "j", Host: "a", Text: megatron(9), Time: 5}, after(minutes))
		w.Observe(&Line{JobID: "j", Host: "a", Text: megatron(3), Time: 6}, after(minutes))
		ids[w.Tick(after(minutes))[0].ID] = true
	}
	assert.Len(t, ids, 1)
	w := New(NewDefaultConfig())
	w.Observe(&Line{JobID: "j", Host: "a", Text: megatron(9), Time: 7}, after(0))
	assert.False(t, ids[w.Tick(after(0))[0].ID], "other lines are another finding")
}
