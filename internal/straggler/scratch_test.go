// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// One unusual step does not hold memory for good, and what comes after it is judged as if it
// had not been.
func TestTheRoomOfAnUnusualStepIsLetGo(t *testing.T) {
	const many = 1000
	w := newWorld(t, 4)
	first := w.rank(0)
	j := w.e.job(&first)
	step := func(n int64, times int) {
		program := strings.Repeat("c1:gemm * ", times)
		w.step(n, program, program, program, program)
	}
	held := func() int {
		return max(cap(j.placer.times), cap(j.placer.meetings), len(j.matcher.free)+len(j.matcher.order), cap(j.matcher.sorted),
			cap(j.seatsAt), cap(j.segments), cap(j.sheet.timed), cap(j.sweeper.comms[0]), cap(j.peering.done), cap(j.walks.graph.ops))
	}
	step(0, 10)
	step(1, many)
	require.GreaterOrEqual(t, held(), 4*many)
	n := int64(2)
	for ; n < 10; n++ {
		step(n, 10)
	}
	assert.GreaterOrEqual(t, held(), 4*many, "such a step may come again soon")
	for ; n < 90; n++ {
		step(n, 10)
	}
	assert.Less(t, held(), roomy*4*2*10)
	require.Len(t, j.window, w.e.cfg.Window)
	assert.Equal(t, 40, j.window[len(j.window)-1].members())
}

func TestRoomIsLetGoOnceAndOnlyWhereStepsBecameMuchSmaller(t *testing.T) {
	var s scratch
	for n := range 1000 {
		require.False(t, s.tooLarge(10_000+n%7*1000), "steps vary")
	}
	gone := 0
	for range 1000 {
		if s.tooLarge(1000) {
			gone++
		}
	}
	assert.Equal(t, 1, gone)
	s = scratch{}
	for n := range 1000 {
		require.False(t, s.tooLarge(1+n%2*leastScratch), "as much is always kept")
	}
}
