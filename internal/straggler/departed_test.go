// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Of ranks that come no more nothing is held that is as large as a step.
func TestDepartedRanksHoldNoSteps(t *testing.T) {
	const ranks, left = 8, 3
	w := newWorld(t, ranks)
	programs := slices.Repeat([]program{"c5:a * c5:b *"}, ranks)
	w.step(0, programs...)
	j := w.e.sorted()[0]
	assert.Len(t, j.tails, ranks)
	assert.Len(t, j.spare, ranks)
	w.sink = func(rank int64, ops []model.Op) {
		if rank < left {
			w.e.Add(w.rank(rank), ops)
		}
	}
	for n := range int64(spareSteps + 2) {
		w.step(n+1, programs...)
		w.e.Flush()
		if n == 1 {
			assert.Len(t, j.tails, left)
			assert.Len(t, j.spare, ranks, "whose room is kept, in case they come again")
		}
	}
	assert.Len(t, j.tails, left)
	assert.Len(t, j.spare, left)
}
