// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// parts is a rank of four whose first communicator is a part of the world, with
// an operation on it.
func parts() *fakeRing {
	f := newFakeRing(0, 4)
	f.comms = []ring.Comm{{}, {Index: 1, Hash: 0xaa, Ranks: 2, Rank: 0, Name: "pair"}}
	f.mark(0, 0)
	f.op(opSpec{fn: "AllReduce", step: 0, launch: 1, start: 2, end: 3})
	f.fronts = []ring.Frontier{{Comm: 1, Enqueued: ring.Mark{Known: true, At: at(1)}}}
	return f
}

// Nothing is handed on under an identity that the world communicator would
// change: it is waited for.
func TestTheWorldCommunicatorIsWaitedFor(t *testing.T) {
	f := parts()
	r, g := attach(f, DefaultConfig())
	incarnations := map[string]bool{}
	emit := func(b *Batch) {
		incarnations[b.Rank.Incarnation] = true
		g.emit(t)(b)
	}
	r.Pass(at(10), emit)
	assert.Empty(t, g.ops)
	f.comms = append(f.comms, ring.Comm{Index: 2, Hash: hash0, Ranks: 4, Rank: 0, Name: "world"})
	f.mark(1, 100)
	r.Pass(at(110), emit)
	f.mark(2, 200)
	r.Pass(at(210), emit)
	r.Pass(at(220), emit)
	assert.Equal(t, []int64{0, 1}, g.steps())
	assert.Equal(t, map[string]bool{model.Incarnation(model.World{CommHash: hashText(hash0)}): true}, incarnations)
}

// What was chosen when the time was up stays.
func TestALateWorldCommunicatorChangesNoIdentity(t *testing.T) {
	f := parts()
	r, g := attach(f, DefaultConfig())
	late := worldPatience/us + 2
	f.mark(1, late)
	r.Pass(at(late), g.emit(t))
	require.Empty(t, f.records, "the time is up")
	before := r.Identity().Incarnation
	f.comms = append(f.comms, ring.Comm{Index: 2, Hash: hash0, Ranks: 4, Rank: 0, Name: "world"})
	f.mark(2, late+100)
	r.Pass(at(late+110), g.emit(t))
	r.Pass(at(late+120), g.emit(t))
	assert.Equal(t, before, g.rank.Incarnation)
	assert.Equal(t, model.Incarnation(model.World{Launcher: []string{"job", ""}}), before)
	assert.Equal(t, hash0, r.worldComm.hash, "steps may still be found by it")
}

// A process that says neither rank nor communicator is read for its loss.
func TestARankWithoutNameIsCounted(t *testing.T) {
	f := parts()
	f.header.Rank, f.header.WorldSize, f.comms = -1, -1, nil
	f.lost, f.before = 7, 2
	r, g := attach(f, DefaultConfig())
	r.Pass(at(10), g.emit(t))
	assert.Len(t, f.records, 2)
	r.Pass(at(worldPatience/us+2), g.emit(t))
	assert.Empty(t, g.ops)
	s := r.Stats()
	assert.Equal(t, []int64{2, 2, 5, 2}, []int64{s.NoRank, s.Records, s.Lost, s.BeforeAttach})
}

// The constant of our own boot is our own reading, whatever a ring says.
func TestTheHostsOwnClockCounts(t *testing.T) {
	n := NewNode(DefaultConfig())
	n.boot = func() string { return "ours" }
	n.pair = func() ring.ClockPair { return ring.ClockPair{Raw: 100, Realtime: 5100} }
	lie := []ring.ClockPair{{Raw: 100, Realtime: 100 + uint64(time.Hour)}}
	e, agrees, ok := n.epoch("ours", lie)
	assert.Equal(t, []any{int64(5000), false, true}, []any{e, agrees, ok})
	e, agrees, ok = n.epoch("ours", []ring.ClockPair{{Raw: 200, Realtime: 5300}})
	assert.Equal(t, []any{int64(5000), true, true}, []any{e, agrees, ok})
	e, _, ok = n.epoch("ours", nil)
	assert.Equal(t, []any{int64(5000), true}, []any{e, ok}, "no pair is needed")
	_, _, ok = n.epoch("theirs", nil)
	assert.False(t, ok)
	e, agrees, ok = n.epoch("theirs", lie)
	assert.Equal(t, []any{int64(time.Hour), true, true}, []any{e, agrees, ok})
	for i := range 2 * maxBoots {
		_, _, ok = n.epoch(fmt.Sprint(i), lie)
		require.True(t, ok)
	}
	assert.Len(t, n.epochs, maxBoots)
	assert.Equal(t, int64(maxBoots+2), n.BootsOverflowed())
}

func TestAClockThatDisagreesIsCounted(t *testing.T) {
	f := newFakeRing(0, 2)
	n := NewNode(DefaultConfig())
	n.boot = func() string { return "boot" }
	n.pair = func() ring.ClockPair { return ring.ClockPair{Raw: base, Realtime: base} }
	r := n.Attach(f, "")
	r.Pass(at(1), newGot().emit(t))
	assert.Equal(t, int64(1), r.Stats().ClocksDisagree)
}

// Steps that are open when the reading ends are the next reader's.
func TestLeavingTellsOfNoOpenStep(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	f.mark(1, 100)
	f.corrupt = 3
	r.Pass(at(105), g.emit(t))
	assert.Equal(t, int64(3), r.Stats().Corrupt)
	r.Leave(at(110), g.emit(t))
	assert.Equal(t, []int64{0}, g.steps())
	assert.Equal(t, int64(1), r.Stats().StepsUnfinished)
}

// All open steps of a rank share one budget, whatever they hold.
func TestOpenStepsShareABudget(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Level, cfg.MaxStepBytes = ring.LevelSummary, 64<<10
	f := newFakeRing(0, 2)
	r, g := attach(f, cfg)
	for n := range int64(50) {
		f.mark(n, uint64(n)*1000)
		for i := range uint64(200) {
			launch := uint64(n)*1000 + i
			f.op(opSpec{fn: "AllReduce", seq: i, step: n, launch: launch, start: launch + 1, end: launch + 2})
		}
	}
	r.Pass(at(49_000), g.emit(t))
	assert.Positive(t, r.Stats().StepsEvicted)
	assert.Equal(t, int64(50*200), r.Stats().Operations)
	assert.Zero(t, r.Stats().Late, "the oldest go first, and these were whole")
	r.Finish(at(60_000), false, g.emit(t))
	assert.Len(t, g.steps(), 50)
	assert.Zero(t, r.steps.held(), "what is held comes to nothing once all are closed")
	assert.LessOrEqual(t, r.steps.freeSpans, keptSpans)
}

// Only the last seconds that the header says are looked through after the fact.
func TestDetailLooksBackAsFarAsRetained(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Level = ring.LevelSummary
	f := newFakeRing(0, 2)
	f.header.RetainSeconds = 1
	r, g := attach(f, cfg)
	f.mark(0, 0)
	f.op(opSpec{fn: "AllReduce", step: 0, launch: 1, start: 2, end: 3})
	f.op(opSpec{fn: "AllReduce", seq: 1, step: 0, launch: 1_500_000, start: 1_500_001, end: 1_500_002})
	r.Pass(at(2_000_000), g.emit(t))
	noted := r.comm(1).noted
	r.Detail(at(2_000_000), g.emit(t))
	assert.Equal(t, noted, r.comm(1).noted, "starts are remembered once")
	ops := opsOf(g.ops, model.KindCollective)
	require.Len(t, ops, 1)
	assert.Equal(t, model.Some(int64(1)), ops[0].Collective.Seq)
}
