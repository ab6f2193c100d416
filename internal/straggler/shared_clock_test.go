// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// ringWorld has a slow link: a rank leaves each collective the later, the
// further it stands behind that link, by half a millisecond each.
func ringWorld(t *testing.T, clockOf func(rank int64) string, offsets map[int64]float64) *world {
	t.Helper()
	w := newWorld(t, 4)
	w.live, w.clockOf, w.offsets = true, clockOf, offsets
	w.change = func(r int64, op *model.Op) {
		if op.Kind == model.KindCollective {
			op.End += r * int64(ms/2)
		}
	}
	for n := range int64(12) {
		w.step(n, each(4, "h1:data_loading c20 * c10 * c5 s", nil)...)
	}
	return w
}

func TestRanksOfOneClockAreNotCorrected(t *testing.T) {
	w := ringWorld(t, func(int64) string { return "host:a/1/raw" }, nil)
	for _, rep := range w.reports {
		for _, r := range rep.Ranks {
			assert.Zero(t, r.Offset.Estimate)
			assert.Zero(t, r.Offset.Value)
			assert.Zero(t, r.Offset.Sigma)
		}
		for _, m := range rep.Meetings {
			assert.Zero(t, m.WaitCaused(), "all came together")
		}
	}
	assert.Zero(t, w.e.Stats().ClockConflicts)
}

func TestRanksOfOneHostShareTheirOffset(t *testing.T) {
	clocks := []string{"host:a/1/raw", "host:a/1/raw", "host:b/1/raw", "host:b/1/raw"}
	w := ringWorld(t, func(r int64) string { return clocks[r] }, map[int64]float64{2: 7, 3: 7})
	last := w.reports[len(w.reports)-1].Ranks
	assert.Equal(t, last[0].Offset.Value, last[1].Offset.Value)
	assert.Equal(t, last[2].Offset.Value, last[3].Offset.Value)
	assert.InDelta(t, 7e6, float64(last[3].Offset.Value), float64(2*time.Millisecond))
}
