// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// exchange is a group launch of rank self among world: a send to and a receive
// from each peer listed, all numbered seq.
func exchange(f *fakeRing, group uint32, step int64, seq uint64, peers ...int32) {
	for _, p := range peers {
		f.op(opSpec{fn: "Send", seq: seq, step: step, launch: 10, start: 20 + uint64(p), end: 90, bytes: 100, flags: ring.FlagSend, peer: p, group: group, wire: 5})
		f.op(opSpec{fn: "Recv", seq: seq, step: step, launch: 11, start: 25, end: 100 + uint64(p), bytes: 100, flags: ring.FlagRecv, peer: p, group: group})
	}
}

func TestGroupedMessagesBecomeAnAllToAll(t *testing.T) {
	for _, peers := range [][]int32{{0, 2, 3}, {0, 1, 2, 3}, {1, 0, 2, 3}} {
		f := newFakeRing(1, 4)
		r, g := attach(f, DefaultConfig())
		f.mark(0, 0)
		exchange(f, 7, 0, 3, peers...)
		r.Finish(at(300), false, g.emit(t))
		all := opsOf(g.ops, model.KindCollective)
		require.Len(t, all, 1, "%v", peers)
		op := all[0]
		assert.Equal(t, model.AllToAll, op.Collective.Name)
		assert.Equal(t, model.Some(int64(3)), op.Collective.Seq)
		assert.Equal(t, model.ScopeCommFunc, op.Collective.SeqScope)
		assert.Equal(t, unixAt(103), op.End)
		assert.Empty(t, opsOf(g.ops, model.KindSend))
		assert.Equal(t, int64(1), g.sums[0].Ops)
		assert.Equal(t, map[string]int64{"all_to_all world": 1}, g.hist[0])
		assert.Equal(t, model.Some(int64(1)), opsOf(g.ops, model.KindStep)[0].StepOps)
		assert.GreaterOrEqual(t, op.Waits.Wire.V, 15e-6-1e-12)
		key, ok := model.Rendezvous(&g.rank, &op)
		require.True(t, ok)
		assert.Equal(t, model.AllToAll, key.Name)
	}
}

// Numbers that differ among the messages of one group differ from those of other
// ranks too: nothing may be joined by them.
func TestUnevenNumbersJoinNobody(t *testing.T) {
	f := newFakeRing(1, 3)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	exchange(f, 7, 0, 3, 0)
	exchange(f, 7, 0, 4, 2)
	r.Finish(at(300), false, g.emit(t))
	all := opsOf(g.ops, model.KindCollective)
	require.Len(t, all, 1)
	assert.Equal(t, model.ScopeProcess, all[0].Collective.SeqScope)
}

func TestGroupsThatAreNoAllToAll(t *testing.T) {
	f := newFakeRing(1, 4)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	exchange(f, 7, 0, 3, 0, 2) // one peer is left out
	f.step = 0
	r.Pass(at(200), g.emit(t))
	assert.Empty(t, g.ops, "its last message may still come")
	r.Pass(at(300), g.emit(t))
	assert.Len(t, opsOf(g.ops, model.KindSend), 2)
	assert.Len(t, opsOf(g.ops, model.KindRecv), 2)
	assert.Zero(t, r.Stats().GroupsRebuilt)
}

func TestAGroupWaitsForItsMessagesInFlight(t *testing.T) {
	f := newFakeRing(1, 2)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	send := opSpec{fn: "Send", seq: 1, step: 0, launch: 10, start: 20, end: 90, flags: ring.FlagSend, peer: 0, group: 4}
	recv := opSpec{fn: "Recv", seq: 1, step: 0, launch: 10, start: 20, end: 900, flags: ring.FlagRecv, peer: 0, group: 4, handle: 6}
	f.op(send)
	f.open(recv, ring.SlotStarted)
	for i := range uint64(5) {
		r.Pass(at(100+i), g.emit(t))
	}
	assert.Empty(t, g.ops)
	f.slots = nil
	f.op(recv)
	r.Pass(at(1000), g.emit(t))
	assert.Len(t, opsOf(g.ops, model.KindCollective), 1)
}

func TestOpenGroupsAreBounded(t *testing.T) {
	f := newFakeRing(1, 4)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	for i := range uint32(100) {
		exchange(f, i+1, 0, uint64(i), 0)
	}
	r.Pass(at(200), g.emit(t))
	assert.LessOrEqual(t, len(r.groups.open), maxGroups)
	r.Finish(at(300), false, g.emit(t))
	assert.Len(t, opsOf(g.ops, model.KindSend), 100)
}
