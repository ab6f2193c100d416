// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

func attach(f *fakeRing, cfg Config) (*Rank, *got) {
	return NewNode(cfg).Attach(f, "dir"), newGot()
}

// A step of which something is in flight stays open; it closes once the record
// is there, and its span comes last.
func TestAStepClosesWhenNothingOfItCanCome(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	emit := g.emit(t)
	f.mark(7, 0)
	f.op(opSpec{fn: "AllReduce", step: 7, launch: 10, start: 40, end: 100, bytes: 64})
	slow := opSpec{fn: "AllReduce", seq: 1, step: 7, launch: 20, start: 120, end: 300, bytes: 64, handle: 5}
	f.open(slow, ring.SlotStarted)
	f.mark(8, 150)
	f.op(opSpec{fn: "AllReduce", seq: 2, step: 8, launch: 160, start: 310, end: 350})
	r.Pass(at(200), emit)
	assert.Empty(t, g.steps(), "an operation of step 7 is in flight")
	f.slots = nil
	f.op(slow)
	r.Pass(at(400), emit)
	require.Equal(t, []int64{7}, g.steps())
	last := g.ops[len(g.ops)-1]
	assert.Equal(t, model.KindStep, last.Kind)
	assert.Equal(t, model.Some(int64(2)), last.StepOps)
	assert.Equal(t, unixAt(0), last.Start)
	assert.Equal(t, unixAt(300), last.End, "the device runs behind the host")
	sum := g.sums[7]
	assert.Equal(t, int64(2), sum.Ops)
	assert.Equal(t, int64(128), sum.Bytes)
	assert.Equal(t, map[string]int64{"all_reduce world": 2}, g.hist[7])
	r.Finish(at(500), false, emit)
	assert.Equal(t, []int64{7, 8}, g.steps())
	assert.Equal(t, unixAt(300), g.ops[len(g.ops)-1].Start, "an instant of both belongs to the earlier")
}

// What was enqueued between the noting of slots and the mark of the next step may
// come with the next pass: a mark that was read only now closes nothing.
func TestAMarkOfThisPassClosesNothing(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	f.mark(1, 100)
	f.step = 0 // as it was when the slots were noted
	r.Pass(at(110), g.emit(t))
	assert.Empty(t, g.steps())
	f.step = 1
	f.op(opSpec{fn: "AllReduce", step: 0, launch: 90, start: 95, end: 105})
	r.Pass(at(120), g.emit(t))
	require.Equal(t, []int64{0}, g.steps())
	assert.Equal(t, int64(1), g.sums[0].Ops)
}

func TestTheSplitOfAStep(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	// Idle until 15 us after the launch at 100, then computing until the start.
	f.op(opSpec{fn: "AllReduce", step: 0, launch: 100, start: 500, end: 600})
	// Launched while the first ran: the whole gap is compute.
	f.op(opSpec{fn: "AllReduce", seq: 1, step: 0, launch: 550, start: 900, end: 1000})
	// Beside the second; no gap before it, and 100 us beyond its end.
	f.op(opSpec{fn: "AllReduce", seq: 2, step: 0, launch: 560, start: 950, end: 1100})
	// Launched late: the host is to blame for all of the gap.
	f.op(opSpec{fn: "AllReduce", seq: 3, step: 0, launch: 1290, start: 1300, end: 1400})
	f.mark(1, 1500)
	r.Pass(at(1600), g.emit(t))
	require.Equal(t, []int64{0}, g.steps())
	s := g.sums[0]
	assert.InDelta(t, 100e-6+200e-6+100e-6, s.Transfer, 1e-9)
	assert.InDelta(t, (500-115)*1e-6+(900-600)*1e-6, s.Compute, 1e-9)
	assert.InDelta(t, 115e-6+200e-6+100e-6, s.LaunchIdle, 1e-9)
	assert.InDelta(t, 1500e-6, s.Transfer+s.Compute+s.LaunchIdle, 1e-9)
}

func TestDeadlineEvictionAndLateness(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxOpenSteps, cfg.StepDeadline = 2, time.Millisecond
	f := newFakeRing(0, 2)
	r, g := attach(f, cfg)
	f.mark(0, 0)
	f.open(opSpec{fn: "AllReduce", step: 0, launch: 1, start: 2, end: 3, handle: 9}, ring.SlotEnqueued)
	f.mark(1, 100)
	r.Pass(at(200), g.emit(t))
	assert.Empty(t, g.steps())
	r.Pass(at(1300), g.emit(t))
	assert.Equal(t, []int64{0}, g.steps(), "the deadline passed")
	assert.Equal(t, int64(1), r.Stats().StepsExpired)
	f.op(opSpec{fn: "AllReduce", step: 0, launch: 1, start: 2, end: 3})
	r.Pass(at(1400), g.emit(t))
	assert.Equal(t, int64(1), r.Stats().Late)
	assert.Equal(t, model.Some(int64(0)), opsOf(g.ops, model.KindCollective)[0].Step, "it is handed on all the same")
	f.mark(2, 200)
	f.mark(3, 300)
	r.Pass(at(1500), g.emit(t))
	assert.Equal(t, int64(1), r.Stats().StepsEvicted)
}

func TestLossIsOnTheStep(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	r.Pass(at(10), g.emit(t))
	f.lost = 5
	f.mark(1, 20)
	r.Pass(at(30), g.emit(t))
	r.Pass(at(40), g.emit(t))
	assert.Equal(t, int64(5), g.sums[0].Lost)
	assert.Equal(t, int64(5), r.Stats().Lost)
}

func TestScopesAndPhase(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	f.scope("data_loading", 0, 5, 50, ring.PhaseTrain)
	f.scope("compile", 0, 60, 90, ring.PhaseCompile)
	f.mark(1, 100)
	r.Pass(at(110), g.emit(t))
	scopes := opsOf(g.ops, model.KindScope)
	require.Len(t, scopes, 2)
	assert.Equal(t, "compile", scopes[1].Phase)
	assert.Equal(t, model.Some(int64(77)), scopes[0].ThreadID)
	assert.Equal(t, unixAt(5), scopes[0].Start)
	step := opsOf(g.ops, model.KindStep)[0]
	assert.Equal(t, "train", step.Phase)
	assert.Equal(t, model.Some(int64(2)), step.StepOps)
	assert.Zero(t, g.sums[0].Ops, "a scope is no operation of the device")
	assert.Equal(t, map[string]int64{"data_loading": 1, "compile": 1}, g.hist[0])
}

func TestLevelSummaryHandsOnStepsOnly(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Level = ring.LevelSummary
	f := newFakeRing(0, 2)
	r, g := attach(f, cfg)
	f.mark(0, 0)
	f.op(opSpec{fn: "AllReduce", step: 0, launch: 1, start: 2, end: 3})
	f.scope("x", 0, 1, 2, 0)
	f.mark(1, 10)
	r.Pass(at(20), g.emit(t))
	require.Len(t, g.ops, 1)
	assert.Equal(t, model.Some(int64(0)), g.ops[0].StepOps)
	assert.Equal(t, int64(1), g.sums[0].Ops)
}

func TestAProgramThatCountsAgain(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	for i, n := range []int64{0, 1, 2, 0, 1} {
		f.mark(n, uint64(i)*100)
		f.op(opSpec{fn: "AllReduce", seq: uint64(i), step: n, launch: uint64(i)*100 + 1, start: uint64(i)*100 + 2, end: uint64(i)*100 + 50})
		r.Pass(at(uint64(i)*100+90), g.emit(t))
	}
	r.Finish(at(600), false, g.emit(t))
	assert.Equal(t, []int64{0, 1, 2, 0, 1}, g.steps())
	assert.Equal(t, int64(1), r.Stats().Renumbered)
}

func TestUnknownRankWaitsForItsCommunicator(t *testing.T) {
	f := newFakeRing(3, 4)
	comms := f.comms
	f.header.Rank, f.header.WorldSize, f.comms = -1, -1, nil
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	r.Pass(at(10), g.emit(t))
	assert.Len(t, f.records, 1, "nothing is read before it is known whose it is")
	f.comms = comms
	f.mark(1, 10)
	r.Pass(at(20), g.emit(t))
	assert.Len(t, f.records, 2, "a larger one may be the world")
	f.op(opSpec{fn: "AllReduce", step: 1, launch: 11, start: 12, end: 15})
	f.fronts = []ring.Frontier{{Comm: 1, Enqueued: ring.Mark{Known: true, At: at(11)}}}
	r.Pass(at(5_000_020), g.emit(t))
	assert.Equal(t, int64(3), g.rank.Rank)
	assert.Equal(t, model.Some(int64(4)), g.rank.WorldSize)
}

// Marks and operations come by different lanes, one after the other: a backlog's
// marks all come before its operations.
func TestABacklogIsReadWhole(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	const steps = 3000
	for n := range uint64(steps) {
		f.mark(int64(n), n*100)
	}
	for n := range uint64(steps) {
		f.op(opSpec{fn: "AllReduce", seq: n, step: int64(n), launch: n*100 + 10, start: n*100 + 20, end: n*100 + 60})
	}
	r.Pass(at(steps*100), g.emit(t))
	assert.Len(t, g.steps(), steps-1)
	assert.Zero(t, r.Stats().Late)
	assert.Zero(t, r.Stats().StepsEvicted)
	assert.LessOrEqual(t, len(r.steps.free), keptSteps)
}
