// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// unmarked feeds a program of period steps: three gathers, one reduce of another
// size each, on the world communicator; from is the first step that is seen.
func unmarked(f *fakeRing, from, to int) {
	for n := from; n < to; n++ {
		t := uint64(n) * 1000
		for i := range 3 {
			f.op(opSpec{fn: "AllGather", seq: uint64(3*n + i), step: -1, launch: t + uint64(i)*100, start: t + uint64(i)*100 + 20, end: t + uint64(i)*100 + 80, bytes: 10})
		}
		f.op(opSpec{fn: "AllReduce", seq: uint64(n), step: -1, launch: t + 300, start: t + 320, end: t + 900, bytes: 20})
	}
}

// Ranks that are read from different places on number their steps alike.
func TestStepsWithoutAMark(t *testing.T) {
	stepOf := map[int64]int64{} // by the reduce's sequence number
	for _, from := range []int{0, 5, 17} {
		f := newFakeRing(0, 2)
		r, g := attach(f, DefaultConfig())
		unmarked(f, from, 60)
		r.Pass(at(70_000), g.emit(t))
		r.Finish(at(80_000), false, g.emit(t))
		numbered := 0
		for _, op := range opsOf(g.ops, model.KindCollective) {
			if !op.Step.OK {
				continue
			}
			numbered++
			want := op.Collective.Seq.V // the reduce is the anchor, one a step
			if op.Collective.Name == model.AllGather {
				want = op.Collective.Seq.V/3 - 1 // enqueued before the reduce of its period
			}
			assert.Equal(t, want, op.Step.V, "%s %d", op.Collective.Name, op.Collective.Seq.V)
			if op.Collective.Name == model.AllReduce {
				stepOf[op.Collective.Seq.V] = op.Step.V
			}
		}
		assert.Greater(t, numbered, 100)
		assert.LessOrEqual(t, r.Stats().WithoutStep, int64(minTokens+searchEvery))
		assert.Positive(t, r.Stats().WithoutStep)
		assert.Zero(t, r.Stats().Renumbered)
	}
	assert.Equal(t, int64(59), stepOf[59])
}

func TestConfiguredAnchor(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Anchor = Anchor{Function: model.AllGather, Every: 6}
	f := newFakeRing(0, 2)
	r, g := attach(f, cfg)
	unmarked(f, 0, 8)
	r.Pass(at(9_000), g.emit(t))
	r.Finish(at(9_100), false, g.emit(t))
	assert.Equal(t, []int64{0, 1, 2, 3}, g.steps())
	assert.Equal(t, int64(2*4), g.sums[1].Ops)
	assert.Zero(t, r.Stats().WithoutStep)
}

// Nothing enqueued behind an operation in flight is placed: one that was enqueued
// before a boundary could still come.
func TestPlacingWaitsForWhatIsInFlight(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Anchor = Anchor{Function: model.AllReduce, Every: 1}
	f := newFakeRing(0, 2)
	r, g := attach(f, cfg)
	late := opSpec{fn: "AllGather", step: -1, launch: 50, start: 60, end: 500, handle: 3}
	f.open(late, 4)
	f.op(opSpec{fn: "AllReduce", seq: 0, step: -1, launch: 10, start: 20, end: 30})
	f.op(opSpec{fn: "AllReduce", seq: 1, step: -1, launch: 100, start: 120, end: 130})
	r.Pass(at(200), g.emit(t))
	assert.Len(t, g.ops, 1)
	f.slots = nil
	f.op(late)
	r.Pass(at(600), g.emit(t))
	require.Equal(t, []int64{0}, g.steps())
	assert.Equal(t, int64(2), g.sums[0].Ops, "enqueued before the boundary, ended after it")
}

// A sequence that only seemed to repeat itself is found out, and steps are
// numbered anew.
func TestAPeriodThatWasNone(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	seq := [2]uint64{}
	launch := uint64(0)
	for range 12 {
		for i := range 41 {
			fn, k := "AllReduce", 0
			if i == 40 {
				fn, k = "AllGather", 1
			}
			f.op(opSpec{fn: fn, seq: seq[k], step: -1, bytes: uint64(8 + i%2), launch: launch, start: launch + 2, end: launch + 8})
			seq[k]++
			launch += 10
		}
	}
	r.Pass(at(launch+1000), g.emit(t))
	assert.Equal(t, int64(1), r.anchor.every)
	assert.Equal(t, model.AllGather, functionName(f.strings[r.anchor.fn]))
	assert.Positive(t, r.Stats().Renumbered)
}

// One collective that repeats itself may be one of many in a step: counted as a step
// each, they would be taken for so much independent evidence.
func TestOneRepeatedCollectiveMakesNoSteps(t *testing.T) {
	read := func(a Anchor) (*Rank, *got) {
		f, cfg := newFakeRing(0, 2), DefaultConfig()
		cfg.Anchor = a
		r, g := attach(f, cfg)
		for i := range uint64(200) {
			f.op(opSpec{fn: "AllReduce", seq: i, step: -1, launch: 10 * i, start: 10*i + 2, end: 10*i + 8})
		}
		r.Pass(at(3000), g.emit(t))
		return r, g
	}
	r, g := read(Anchor{})
	assert.Empty(t, g.steps())
	assert.Equal(t, int64(200), r.Stats().WithoutStep)
	_, g = read(Anchor{Function: model.AllReduce, Every: 4})
	assert.NotEmpty(t, g.steps(), "who says how many make a step is believed")

	f := newFakeRing(0, 2)
	r, g = attach(f, DefaultConfig())
	for i := range uint64(200) {
		f.op(opSpec{fn: "AllReduce", seq: i, step: -1, launch: 20 * i, start: 20*i + 2, end: 20*i + 8})
		f.op(opSpec{fn: "AllGather", comm: 2, seq: i, step: -1, launch: 20*i + 10, start: 20*i + 12, end: 20*i + 18})
	}
	r.Pass(at(5000), g.emit(t))
	assert.NotEmpty(t, g.steps(), "what other communicators do between tells where a step begins")
}

// Where one collective repeats itself, what other communicators do tells where a step
// begins.
func TestWhatStandsBetweenMakesAPeriod(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	launch := uint64(0)
	op := func(fn string, comm uint16, seq uint64) {
		f.op(opSpec{fn: fn, comm: comm, seq: seq, step: -1, launch: launch, start: launch + 2, end: launch + 8})
		launch += 10
	}
	for i := range uint64(60) {
		op("AllGather", 2, i)
		for k := range uint64(3) {
			op("AllReduce", 1, 3*i+k)
		}
	}
	r.Pass(at(launch+1000), g.emit(t))
	assert.Equal(t, int64(3), r.anchor.every)
}
