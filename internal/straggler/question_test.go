// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/straggler/blame"
)

// walked returns a job with walked steps of which rank 2 makes the last 20 ms longer.
func walked(t *testing.T) *job {
	t.Helper()
	w := newWorld(t, 4)
	for n := range int64(6) {
		w.step(n, each(4, "c30:gemm *", map[int]program{2: "c50:gemm *"})...)
	}
	return onlyJob(t, w.e)
}

// Whoever is asked about again may be slow by more, or hold other ranks, than when the same
// step was asked before.
func TestAnAnswerHoldsForWhatWasMended(t *testing.T) {
	j := walked(t)
	of := func(rank int64) float64 {
		saved, ok := j.without(j.window, question{"host/a", asPeers([]int64{rank})})
		require.True(t, ok)
		return saved
	}
	assert.InDelta(t, 0, of(1), 1e-6)
	assert.InDelta(t, 0.020, of(2), 1e-4)

	scaled := func(scale float64) uint64 {
		return hashMends([]blame.Mend{{Rank: -1, Peer: -1, Kind: blame.Stage, Stage: 1, Scale: scale}})
	}
	assert.NotEqual(t, scaled(0.5), scaled(0.6))
	faster := func(by int64) uint64 {
		return hashMends([]blame.Mend{{Kind: blame.Link, Less: map[int32]int64{1: by, 2: 5}}})
	}
	assert.NotEqual(t, faster(3), faster(4))
}

// What one saves beside others is by how much each step gains, and not by how much the steps
// in which the one was asked differ from those in which the others were.
func TestWhatIsGainedIsAskedOfTheSameSteps(t *testing.T) {
	j := walked(t)
	both := question{"both", asPeers([]int64{1, 2})}
	one := question{"one", asPeers([]int64{1})}
	// Steps 1 and 2 were asked about one of the two only.
	j.walks.steps[1].without = map[string]answer{"both": {saved: 7}}
	j.walks.steps[2].without = map[string]answer{"one": {saved: 9}}
	saved, ok := j.gained(j.window, both, one)
	require.True(t, ok)
	assert.InDelta(t, 0.020, saved, 1e-4)
	// Of a step that was asked about both it is the mean.
	j.walks.steps[3].without = map[string]answer{"both": {saved: 0.05}, "one": {saved: 0.01}}
	saved, _ = j.gained(j.window, both, one)
	assert.InDelta(t, 0.030, saved, 1e-4)
	saved, _ = j.gained(j.window[4:], both, one)
	assert.InDelta(t, 0.020, saved, 1e-4, "step 3 came before")
	_, ok = j.gained(j.window[:2], both, one)
	assert.False(t, ok, "the last walked step is none of these")
}

// Steps that close out of order may leave no walked step in the stretch that is judged.
func TestMean_NoWalkedStepInTheStretch_IsUnknown(t *testing.T) {
	w := walks{steps: []walkedStep{{step: 1}}}
	known := func(*walkedStep) (float64, bool) { return 0.5, true }
	_, ok := w.mean(stretch{&record{step: 2}}, true, known)
	assert.False(t, ok)
	saved, ok := w.mean(stretch{&record{step: 1}}, true, known)
	assert.True(t, ok)
	assert.InDelta(t, 0.5, saved, 0)
}
