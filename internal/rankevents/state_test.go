// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// stateRing is rank 2 of 4, whose all_reduce 40 is over and 41 is in flight, each since its
// number in ms.
func stateRing(t *testing.T, change func(*Config)) (*fakeRing, *Rank, *got) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.StallAfter, cfg.StallRepeat, cfg.StateInterval = 10*time.Millisecond, time.Hour, 20*time.Millisecond
	if change != nil {
		change(&cfg)
	}
	f := newFakeRing(2, 4)
	r, g := attach(f, cfg)
	f.mark(5, 0)
	f.open(opSpec{fn: "AllReduce", seq: 41, step: 5, launch: 41_000, start: 41_100, end: 41_200, bytes: 64, handle: 1}, ring.SlotStarted)
	f.fronts = []ring.Frontier{{
		Comm: 1, Func: uint8(f.code("AllReduce")), Open: 1,
		Enqueued: ring.Mark{Known: true, Seq: 41, At: at(41_000)}, Started: ring.Mark{Known: true, Seq: 41, At: at(41_100)},
		Completed: ring.Mark{Known: true, Seq: 40, At: at(40_900)},
	}}
	return f, r, g
}

func TestStateOfARankThatStalls(t *testing.T) {
	f, r, g := stateRing(t, nil)
	f.beat = at(50_000)
	f.scopes = []ring.OpenScope{{TID: f.header.PID, Name: uint16(f.code("save")), Phase: ring.PhaseCheckpoint, Since: at(45_000)}}
	f.slots[0].Receive = ring.Wait{State: ring.ProxyRecv, Peer: 1, Since: at(43_000)}
	r.Pass(at(50_999), g.emit(t))
	assert.Empty(t, g.states, "not for long yet")
	r.Pass(at(51_000), g.emit(t))
	require.Len(t, g.states, 1)
	assert.Equal(t, model.RankState{
		Rank: g.rank, Time: unixAt(51_000), Source: model.StateRankEvents, Silent: model.Some(0.001),
		Phase: "checkpoint", Scope: "save", ScopeFor: model.Some(0.006), LastEnqueue: unixAt(41_000),
		Comms: []model.CommState{{
			Comm: model.Comm{ID: "0x000000000000feed", Name: "world", Size: model.Some(int64(4)), Rank: model.Some(int64(2))}, Backend: "nccl",
			Members: []int64{0, 1, 2, 3}, Scope: model.ScopeCommFunc,
			Frontiers: []model.Frontier{{Func: "all_reduce", Enqueued: model.Some(int64(41)), Started: model.Some(int64(41)), Completed: model.Some(int64(40))}},
		}},
		Ops: []model.StateOp{{
			Kind: model.KindCollective, Name: "all_reduce", Recorded: "AllReduce", Seq: 41, Bytes: model.Some(int64(64)), Created: unixAt(41_000), Started: true,
			Receive: model.ProxyWait{State: "recv_peer_or_wire", For: model.Some(0.008), Peer: model.Some(int64(1))},
		}},
	}, g.states[0])
	assert.Equal(t, int64(2), g.rank.Rank)

	r.Pass(at(70_999), g.emit(t))
	assert.Len(t, g.states, 1, "not yet again")
	r.Pass(at(71_000), g.emit(t))
	assert.Len(t, g.states, 2)

	f.slots = nil // it goes on
	f.fronts[0].Completed, f.fronts[0].Open = ring.Mark{Known: true, Seq: 41, At: at(71_500)}, 0
	r.Pass(at(72_000), g.emit(t))
	require.Len(t, g.states, 3, "once more")
	assert.Empty(t, g.states[2].Ops)
	assert.Equal(t, model.Some(int64(41)), g.states[2].Comms[0].Frontiers[0].Completed)
	r.Pass(at(81_000), g.emit(t))
	assert.Len(t, g.states, 3)
}

// A rank that had traffic and has none, nor anything open, is told of as well: it may be
// whom the others wait for.
func TestStateOfARankWithoutTraffic(t *testing.T) {
	f, r, g := stateRing(t, nil)
	f.slots = nil
	f.fronts[0].Completed, f.fronts[0].Open = ring.Mark{Known: true, Seq: 41, At: at(42_000)}, 0
	r.Pass(at(51_900), g.emit(t))
	assert.Empty(t, g.states)
	r.Pass(at(52_000), g.emit(t))
	require.Len(t, g.states, 1)
	assert.Empty(t, g.states[0].Ops)
	assert.Empty(t, g.open)
	f.fronts[0].Enqueued = ring.Mark{Known: true, Seq: 42, At: at(53_000)}
	r.Pass(at(53_100), g.emit(t))
	require.Len(t, g.states, 2, "it goes on")
	r.Pass(at(62_900), g.emit(t))
	assert.Len(t, g.states, 2)
}

func TestNoStateOfWhoWorksOrNeverDid(t *testing.T) {
	f, r, g := stateRing(t, nil)
	f.slots = nil
	for ms := uint64(42); ms < 300; ms += 9 {
		f.fronts[0].Completed.At = at(ms*1000 - 100)
		r.Pass(at(ms*1000), g.emit(t))
	}
	assert.Empty(t, g.states)

	f, r, g = stateRing(t, nil)
	f.slots, f.fronts = nil, nil
	for ms := uint64(42); ms < 300; ms += 9 {
		r.Pass(at(ms*1000), g.emit(t))
	}
	r.Finish(at(300_000), true, g.emit(t))
	assert.Empty(t, g.states)
}

func TestNoStatesWhereNotWanted(t *testing.T) {
	_, r, g := stateRing(t, func(c *Config) { c.StateInterval = 0 })
	r.Pass(at(500_000), g.emit(t))
	r.Finish(at(600_000), true, g.emit(t))
	assert.NotEmpty(t, g.open)
	assert.Empty(t, g.states)
}

// A ring that was closed is an ordinary end; one that was not, and that nobody holds, is a
// death. One that cannot be read any more is neither.
func TestStateOfAProcessThatIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		died, closed bool
		want         []model.ProcessState
	}{
		"died":  {died: true, want: []model.ProcessState{model.ProcessDead}},
		"ended": {closed: true, want: []model.ProcessState{model.ProcessEnded}},
		"broke": {},
	} {
		t.Run(name, func(t *testing.T) {
			f, r, g := stateRing(t, nil)
			f.slots, f.closed, f.beat = nil, tc.closed, at(42_000)
			r.Finish(at(46_000), tc.died, g.emit(t))
			var got []model.ProcessState
			for _, s := range g.states {
				got = append(got, s.Process)
				assert.Equal(t, unixAt(46_000), s.Time, "when it was seen")
				assert.InDelta(t, 0.004, s.Silent.V, 1e-9)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestStateOfMessages(t *testing.T) {
	for _, members := range []int32{2, 4} {
		f, r, g := stateRing(t, nil)
		f.comms = append(f.comms, ring.Comm{Index: 2, Hash: 0xbeef, Ranks: members, Rank: 1, Name: "pp"})
		f.slots = nil
		f.open(opSpec{comm: 2, fn: "Recv", seq: 6, step: 5, launch: 43_000, start: 43_000, end: 43_000, flags: ring.FlagRecv, peer: 0, group: 9, handle: 3}, ring.SlotEnqueueing)
		f.open(opSpec{comm: 2, fn: "Send", seq: 7, step: 5, launch: 42_000, start: 42_000, end: 42_000, flags: ring.FlagSend, peer: 0, group: 9, handle: 2}, ring.SlotEnqueued)
		f.open(opSpec{comm: 2, fn: "Send", seq: 3, step: 5, launch: 42_500, start: 42_000, end: 42_000, flags: ring.FlagSend, peer: 0, handle: 4}, ring.SlotEnding)
		f.fronts = append(f.fronts, ring.Frontier{Comm: 2, Func: uint8(f.code("Send")), Enqueued: ring.Mark{Known: true, Seq: 7, At: at(42_000)}})
		r.Pass(at(60_000), g.emit(t))
		require.Len(t, g.states, 1)
		s := g.states[0]
		require.Len(t, s.Ops, 2, "what is ending is over")
		send, recv := s.Ops[0], s.Ops[1]
		assert.Equal(t, model.KindSend, send.Kind)
		assert.Equal(t, "send", send.Name)
		assert.Equal(t, model.KindRecv, recv.Kind)
		assert.True(t, recv.Enqueueing)
		assert.Equal(t, []int64{7, 6}, []int64{send.Seq, recv.Seq})
		assert.Equal(t, []model.Optional[int64]{model.Some(int64(7)), model.Some(int64(6))}, []model.Optional[int64]{send.Nth, recv.Nth})
		assert.Equal(t, model.Some(int64(9)), send.Batch)
		assert.Equal(t, send.Batch, recv.Batch)
		assert.Equal(t, model.Some(int64(0)), send.PeerLocal, "whose global rank nobody here knows")
		assert.False(t, send.Peer.OK)
		assert.Empty(t, s.Comms[send.Comm].Members)
		assert.Equal(t, model.Some(int64(members)), s.Comms[send.Comm].Comm.Size)
		assert.Equal(t, unixAt(43_000), s.LastEnqueue)
		// Messages are counted over all peers and numbered for each.
		assert.Len(t, s.Comms[send.Comm].Frontiers, map[int32]int{2: 1, 4: 0}[members])
	}
}

// What found no room in the ring since the rank was last seen to go on may be what it hangs
// in; what found none before that is over.
func TestStateOfAFullRing(t *testing.T) {
	f, r, g := stateRing(t, nil)
	f.drops[2] = 5 // slots
	r.Pass(at(42_000), g.emit(t))
	f.drops[2], f.drops[4], f.drops[5] = 7, 1, 100 // and frontiers, and strings
	r.Pass(at(51_000), g.emit(t))
	require.Len(t, g.states, 1)
	assert.Equal(t, "the ring had no room for 3 operations, scopes or communicators", g.states[0].Partial)

	f, r, g = stateRing(t, nil)
	f.drops[2] = 5
	r.Pass(at(42_000), g.emit(t))
	r.Pass(at(51_000), g.emit(t))
	require.Len(t, g.states, 1)
	assert.Empty(t, g.states[0].Partial)
}

// The plugin has room to count the messages of so many peers.
func TestStateOfAMessageThatIsNotCounted(t *testing.T) {
	f, r, g := stateRing(t, nil)
	f.slots = nil
	f.open(opSpec{fn: "Send", seq: math.MaxUint64, step: 5, launch: 42_000, start: 42_000, end: 42_000, flags: ring.FlagSend, peer: 0, handle: 2}, ring.SlotEnqueued)
	r.Pass(at(60_000), g.emit(t))
	require.Len(t, g.states, 1)
	require.Len(t, g.states[0].Ops, 1)
	assert.False(t, g.states[0].Ops[0].Nth.OK)
}

func TestSettle(t *testing.T) {
	some := model.Some[int64]
	var none model.Optional[int64]
	op := func(seq int64) model.StateOp { return model.StateOp{Name: "f", Seq: seq} }
	for name, tc := range map[string]struct {
		in   model.Frontier
		ops  []model.StateOp
		open uint64
		want model.Frontier
	}{
		"all is over":                  {in: model.Frontier{Enqueued: some(9), Completed: some(9)}, want: model.Frontier{Enqueued: some(9), Completed: some(9)}},
		"a later one is over":          {in: model.Frontier{Enqueued: some(9), Completed: some(8)}, ops: []model.StateOp{op(9), op(7)}, open: 2, want: model.Frontier{Enqueued: some(9), Completed: some(6)}},
		"enqueued since":               {in: model.Frontier{Enqueued: some(8), Completed: some(8)}, ops: []model.StateOp{op(9)}, open: 1, want: model.Frontier{Enqueued: some(9), Completed: some(8)}},
		"nobody sees an end":           {in: model.Frontier{Enqueued: some(9), Completed: some(2)}, want: model.Frontier{Enqueued: some(9), Completed: none}},
		"nobody sees the end of some":  {in: model.Frontier{Enqueued: some(9), Completed: some(2)}, ops: []model.StateOp{op(9)}, open: 1, want: model.Frontier{Enqueued: some(9), Completed: none}},
		"of another function":          {in: model.Frontier{Enqueued: some(9), Completed: some(9)}, ops: []model.StateOp{{Name: "g", Seq: 3}}, open: 1, want: model.Frontier{Enqueued: some(9), Completed: some(9)}},
		"of another communicator":      {in: model.Frontier{Enqueued: some(9), Completed: some(9)}, ops: []model.StateOp{{Name: "f", Seq: 3, Comm: 1}}, want: model.Frontier{Enqueued: some(9), Completed: some(9)}},
		"nothing was completed so far": {in: model.Frontier{Enqueued: some(0)}, ops: []model.StateOp{op(0)}, open: 1, want: model.Frontier{Enqueued: some(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Func, tc.want.Func = "f", "f"
			settle(&tc.in, tc.ops, 0, tc.open)
			assert.Equal(t, tc.want, tc.in)
		})
	}
}

// A ring may claim any number of members.
func TestMembersAreBounded(t *testing.T) {
	n := NewNode(DefaultConfig())
	n.learn(&ring.Comm{Hash: 1, Ranks: maxMembers + 1, Rank: 0}, maxMembers+1, 0)
	assert.Empty(t, n.membersOf(1))
	n.learn(&ring.Comm{Hash: 2, Ranks: 2, Rank: 1}, 8, 6)
	assert.Empty(t, n.membersOf(2), "one of two is known")
	n.learn(&ring.Comm{Hash: 2, Ranks: 2, Rank: 0}, 8, 3)
	assert.Equal(t, []int64{3, 6}, n.membersOf(2))
}
