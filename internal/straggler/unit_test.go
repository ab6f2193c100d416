// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// One step of a rank that lasts nothing is none in another unit.
func TestOneStepOfNoLength(t *testing.T) {
	w := newWorld(t, 4)
	w.change = func(rank int64, op *model.Op) {
		if rank == 1 && op.Step.V == 3 {
			op.Start = nanos(200)
			op.End = op.Start
		}
	}
	for n := range int64(6) {
		w.step(n, each(4, "c30 *", nil)...)
	}
	w.e.Flush()
	assert.Positive(t, w.e.Stats().StepsOffUnit)
	assert.NotContains(t, strings.Join(w.e.Jobs()[0].Problems, "\n"), "unit of stamps")
	assert.Zero(t, w.e.Jobs()[0].OffUnit)
}

// Stamps in microseconds or milliseconds are counted, and told where nothing lasts.
func TestStampsOfAnotherUnit(t *testing.T) {
	for _, tc := range []struct {
		per     int64 // ns
		counted int64
		says    string
	}{
		{1, 0, ""},
		{1e3, 4 * 6, ""}, // of some 50,000
		{1e6, 4 * 6, "check unit of stamps: got 24 steps of ranks that are all shorter than 1µs, the last of 56 ns (rank 3 in step 5); want nanoseconds since 1970"},
	} {
		w := newWorld(t, 4)
		w.change = func(_ int64, op *model.Op) { op.Start, op.End = op.Start/tc.per, op.End/tc.per }
		for n := range int64(6) {
			w.step(n, each(4, "c30 * c4 *", map[int]program{2: "c50 * c4 *"})...)
		}
		w.e.Flush()
		assert.Equal(t, tc.counted, w.e.Stats().StepsOffUnit)
		said := strings.Join(w.e.Jobs()[0].Problems, "\n")
		assert.Contains(t, said, tc.says)
		assert.Equal(t, tc.says == "", !strings.Contains(said, "unit of stamps"))
		assert.Equal(t, tc.counted, w.e.Jobs()[0].OffUnit)
	}
}

// A clock that began with the machine tells nanoseconds, too.
func TestStampsSinceBoot(t *testing.T) {
	w := newWorld(t, 4)
	w.change = func(_ int64, op *model.Op) { op.Start, op.End = op.Start-nanos(0)+1, op.End-nanos(0)+1 }
	for n := range int64(6) {
		w.step(n, each(4, "c30 * c4 *", nil)...)
	}
	w.e.Flush()
	assert.Equal(t, int64(4*6), w.e.Stats().StepsOffUnit)
	assert.Zero(t, w.e.Jobs()[0].OffUnit)
}
