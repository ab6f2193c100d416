// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// inferEnds makes the ends of rank 2's collectives bounds, off by so many ms.
func inferEnds(w *world, off float64) {
	w.change = func(r int64, op *model.Op) {
		if r == 2 && op.Kind == model.KindCollective {
			op.End, op.EndInferred = max(op.Start, op.End+int64(off*1e6)), true
		}
	}
}

// A bound on an end is no end: what follows it is not the rank's own time, and
// what precedes it no transfer.
func TestInferredEndsAccuseNobody(t *testing.T) {
	for name, off := range map[string]float64{"too early": -8, "too late": 3} {
		t.Run(name, func(t *testing.T) {
			w := liveWorld(t, 4)
			w.ring = func(int64) hop { return hop{transfer: 9} }
			inferEnds(w, off)
			vs, at := firstFinding(w, 12, func(int64) []program { return each(4, liveStep, nil) })
			require.Empty(t, vs, "step %d", at)
			rec := w.e.sorted()[0].window[5]
			for _, mr := range rec.meets {
				for i := range mr.members {
					assert.Equal(t, i != 2, mr.members[i].known, "rank %d", i)
				}
			}
			assert.True(t, rec.ranks[2].tailUnknown)
			assert.False(t, rec.ranks[1].tailUnknown)
			for _, m := range w.reports[5].Meetings {
				assert.InDelta(t, 9e6, float64(m.Transfer), 1e3)
			}
		})
	}
}

func TestInferredEndsHideNoOtherRank(t *testing.T) {
	w := liveWorld(t, 4)
	inferEnds(w, 3)
	slow := map[int]program{1: "h24:data_loading c26 h1:forward * c10 h1:backward * c5 s"}
	vs, _ := firstFinding(w, 20, func(int64) []program { return each(4, liveStep, slow) })
	require.Len(t, vs, 1)
	assert.Equal(t, int64(1), vs[0].Finding.Rank.V)
	assert.Equal(t, model.ClassHost, vs[0].Finding.Class)
}

func TestInferredEndsMoveNoClock(t *testing.T) {
	for _, off := range []float64{-8, 30} {
		w := newWorld(t, 4) // a clock for each rank
		w.ring = func(int64) hop { return hop{transfer: 9} }
		inferEnds(w, off)
		infer, ops := w.change, 0
		w.change = func(r int64, op *model.Op) {
			if ops++; ops%4 != 0 {
				infer(r, op)
			}
		}
		for n := range int64(6) {
			w.step(n, each(4, "c20 * c5 *", nil)...)
		}
		for _, r := range w.reports[5].Ranks {
			assert.Zero(t, r.Offset.Value)
		}
		assert.Zero(t, w.e.Stats().ClockConflicts)
	}
}

func TestInferredEndsMeasureNoLink(t *testing.T) {
	w := liveWorld(t, 4)
	w.ring = wires([]float64{3, 3, 12, 3})
	inferEnds(w, 20)
	vs, _ := firstFinding(w, 12, func(int64) []program { return each(4, liveStep, nil) })
	assert.Empty(t, vs)
	assert.False(t, w.e.sorted()[0].window[3].ranks[2].wired)
	assert.True(t, w.e.sorted()[0].window[3].ranks[1].wired)
}

func TestAnInferredEndMakesNoStepLongerAndNoDuration(t *testing.T) {
	w := newWorld(t, 1)
	op := collective(1, 0, 8, 10, 100)
	op.EndInferred = true
	reports := w.alone([]model.Op{op, collective(1, 1, 8, 4, 5), stepOp(1, 0, 11)})
	require.Len(t, reports, 1)
	assert.Equal(t, 11*ms, reports[0].Ranks[0].Split.Sum())
	var n uint64
	for _, h := range reports[0].Ranks[0].Durations {
		n += uint64(h.Count)
	}
	assert.Equal(t, uint64(1), n)
}
