// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/clock/pair"
)

func TestReorderedCountsWhatWasOvertaken(t *testing.T) {
	for want, arrived := range map[int64][]int64{
		0: {10, 20, 30, 40},
		1: {10, 40, 20, 50}, // the third came before the second: the second was overtaken
		2: {40, 10, 50, 45}, // the first by the second, and the third by the fourth
		3: {40, 30, 20, 10},
	} {
		legs := make([]crossing, len(arrived))
		for i, at := range arrived {
			legs[i] = crossing{sent: int64(i), arrived: at}
		}
		assert.Equal(t, want, reordered(legs), "%v", arrived)
	}
	assert.Zero(t, reordered(nil))
}

func TestCrossingsOfBothDirections(t *testing.T) {
	trips := []trip{
		{out: leg{ok: true, ours: 1, peer: 101}, back: leg{ok: true, ours: 31, peer: 111}},
		{out: leg{ok: true, ours: 2, peer: 100}, back: leg{}},
		{out: leg{}, back: leg{ok: true, ours: 30, peer: 112}},
	}
	assert.Equal(t, int64(1), reordered(crossings(trips, outLeg, true)), "the second request arrived before the first")
	assert.Equal(t, int64(1), reordered(crossings(trips, backLeg, false)), "the reply that left last arrived first")
}

func TestDelaysAreCorrected(t *testing.T) {
	// The peer's clock is 1,000 ns ahead at 500, and gains 0.1 ns per ns.
	estimate := pair.Estimate{From: 0, Until: 1000, At: 500, Offset: 1000, Lower: 990, Upper: 1030, Drift: 0.1}
	legs := []leg{
		{ours: 600, peer: 600 + 1010 + 70, kind: 2}, // 70 ns on its way
		{ours: 400, peer: 400 + 990 + 5, width: 25, kind: 3},
		{ours: 401, peer: 5000, width: 50_000, kind: 1}, // with stamps that the estimate does not rest on
		{ours: 1001, peer: 5000, kind: 2},
	}
	c, rest, lost := correct(legs, true, []pair.Estimate{estimate}, 2, 0)
	assert.Equal(t, corrected{delays: []int64{70, 5}, bound: 30 + 25}, c, "the bound is the estimate's and the stamps'")
	assert.Equal(t, []leg{{ours: 1001, peer: 5000, kind: 2}}, rest, "no estimate covers it yet")
	assert.Equal(t, int64(1), lost)

	c, _, _ = correct([]leg{{ours: 600, peer: 600 + 1010 - 70}}, false, []pair.Estimate{estimate}, 0, 0)
	assert.Equal(t, []int64{70}, c.delays, "on the way back")
}

func TestWhatNoEstimateWillCoverIsCounted(t *testing.T) {
	estimates := []pair.Estimate{{From: 100, Until: 200}, {From: 300, Until: 400}}
	legs := []leg{{ours: 50}, {ours: 250}, {ours: 350}, {ours: 450}}
	c, rest, lost := correct(legs, true, estimates, 0, 0)
	assert.Len(t, c.delays, 1)
	assert.Equal(t, int64(2), lost, "before the first, and where the clock was stepped")
	assert.Equal(t, []leg{{ours: 450}}, rest)
	_, rest, lost = correct(rest, true, nil, 0, 500)
	assert.Empty(t, rest)
	assert.Equal(t, int64(1), lost, "waited too long")
}
