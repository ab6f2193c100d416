// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Steps that a reader of rings delivers again change no finding. The engine began later, and does
// not know that they were judged.
func TestStepsThatComeAfterLaterOnesAreNotJudged(t *testing.T) {
	slow := each(4, "c20 *", map[int]program{2: "c40 *"})
	w := newWorld(t, 4)
	for n := int64(507); n <= 530; n++ {
		w.step(n, slow...)
	}
	w.e.Flush()
	before := w.e.Verdicts()
	require.Len(t, before, 1)
	w.drop[3] = true // its reader did not restart
	for n := int64(480); n <= 506; n++ {
		w.step(n, slow...)
	}
	w.now = w.now.Add(time.Minute)
	assert.Len(t, w.e.Expire(), 27)
	w.e.Flush()
	assert.Empty(t, w.e.Verdicts())
	assert.Equal(t, 24, w.e.Jobs()[0].Judged)
	assert.EqualValues(t, 27, w.e.Stats().StepsBehind)
	assert.Zero(t, w.e.Stats().LateOps)
}

// A step that was open before waits for its deadline, and is reported and not judged.
func TestAStepThatClosesBehindLaterOnesIsReportedOnly(t *testing.T) {
	slow := each(4, "c20 *", map[int]program{2: "c40 *"})
	w := newWorld(t, 4)
	w.drop[3] = true
	w.step(506, slow...)
	w.drop[3] = false
	for n := int64(507); n <= 530; n++ {
		w.step(n, slow...)
	}
	w.now = w.now.Add(time.Minute)
	require.Len(t, w.e.Expire(), 1)
	w.e.Flush()
	vs := w.e.Verdicts()
	require.Len(t, vs, 1)
	f := vs[0].Finding
	assert.Equal(t, []model.Optional[int64]{model.Some(int64(507)), model.Some(int64(530))}, []model.Optional[int64]{f.StepFirst, f.StepLast})
}

// The engine judges a program that restarts its count of steps, if the new steps are older than those that
// the engine remembers. Findings span both counts.
func TestStepsOfAProgramThatCountsAgainAreJudged(t *testing.T) {
	slow := each(4, "c20 *", map[int]program{2: "c40 *"})
	w := newWorld(t, 4)
	for _, from := range []int64{closedMemory + 100, 0} {
		for n := range int64(12) {
			w.step(from+n, slow...)
		}
	}
	w.e.Flush()
	vs := w.e.Verdicts()
	require.Len(t, vs, 1)
	f := vs[0].Finding
	assert.LessOrEqual(t, f.StepFirst.V, f.StepLast.V)
	assert.LessOrEqual(t, f.Start, f.Time)
	assert.Equal(t, 24, w.e.Jobs()[0].Judged)
}

// What a source delivers again has the times of another fit of the GPU's clock, and other numbers
// among those of its key where they came from several threads: it is the same all the same.
func TestOperationsThatAreDeliveredAgainAreOne(t *testing.T) {
	shifted := func(op model.Op, by, seq int64) model.Op {
		op.Start, op.End, op.Seq = op.Start+by, op.End+by, seq
		return op
	}
	at := func(seq int64, launch, from, to float64) model.Op {
		op := collective(1, seq, 8, from, to)
		op.Seq, op.Collective.Seq, op.Launch = seq, model.Some(100+seq), model.Some(nanos(launch))
		return op
	}
	ops := []model.Op{at(0, 0, 2, 3), at(1, 1, 4, 5)}
	step := stepOp(1, 0, 6)
	step.StepOps = model.Some(int64(2))
	once, twice := newWorld(t, 1), newWorld(t, 1)
	want := once.alone(append(slices.Clone(ops), step))
	got := twice.alone(append(slices.Clone(ops), shifted(ops[1], 300, 0), shifted(ops[0], 200, 1), step))
	require.Len(t, want, 1)
	assert.Equal(t, want, got)
}
