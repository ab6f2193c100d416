// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

func TestIdentity(t *testing.T) {
	f := newFakeRing(1, 2)
	f.header.JobName, f.header.RunID, f.header.Restart = "llama", "run", 3
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	r.Finish(at(5), false, g.emit(t))
	assert.Equal(t, model.Rank{
		JobName: "llama", JobID: "job", Incarnation: model.Incarnation(model.World{CommHash: "0x000000000000feed"}),
		Rank: 1, LocalRank: model.Some(int64(1)), WorldSize: model.Some(int64(2)),
		HostName: "h", HostID: "hid", PID: model.Some(int64(101)), ClockID: "host:hid/boot/raw",
		ClockEpoch: model.Some(int64(1_700_000_000_000_000_000)), // newFakeRing's REALTIME less RAW
	}, g.rank)
}

func TestIdentityWithoutAWorldCommunicator(t *testing.T) {
	cfg := DefaultConfig()
	f := newFakeRing(1, 4)
	f.header.RunID, f.header.Restart = "run", 3
	f.comms[1].Ranks = 2 // a part of the world
	r, g := attach(f, cfg)
	f.mark(0, 0)
	r.Finish(at(5), false, g.emit(t))
	assert.Equal(t, model.Incarnation(model.World{Launcher: []string{"job", "run"}, Restart: 3}), g.rank.Incarnation)

	cfg.JobID, cfg.JobName = "mine", "named"
	r, g = attach(newFakeRing(0, 2), cfg)
	assert.Equal(t, "mine", r.Identity().JobID)
	assert.Equal(t, "named", r.Identity().JobName)
	nameless := newFakeRing(0, 2)
	nameless.header.JobID = ""
	r, _ = attach(nameless, DefaultConfig())
	assert.Equal(t, "dir", r.Identity().JobID)
	_ = g
}

// Communicator ranks are global ranks in a world communicator, unless a local
// member shows otherwise; in others only local members are known.
func TestPeersByGlobalRank(t *testing.T) {
	n := NewNode(DefaultConfig())
	n.learn(&ring.Comm{Hash: 1, Ranks: 4, Rank: 0}, 4, 0)
	assert.Equal(t, model.Some(int64(3)), n.globalRank(1, 3))
	n.learn(&ring.Comm{Hash: 1, Ranks: 4, Rank: 1}, 4, 2)
	assert.Equal(t, model.Optional[int64]{}, n.globalRank(1, 3), "a member of another rank: the world is permuted")
	assert.Equal(t, model.Some(int64(2)), n.globalRank(1, 1))
	n.learn(&ring.Comm{Hash: 2, Ranks: 2, Rank: 0}, 4, 4)
	assert.Empty(t, n.comms[2].digest)
	n.learn(&ring.Comm{Hash: 2, Ranks: 2, Rank: 1}, 4, 6)
	assert.Equal(t, model.Some(int64(6)), n.globalRank(2, 1))
	assert.Equal(t, model.RanksDigest([]int64{4, 6}), n.comms[2].digest)
	assert.Equal(t, model.Optional[int64]{}, n.globalRank(9, 0))
}

func TestOperationOfARecord(t *testing.T) {
	f := newFakeRing(0, 4)
	f.comms = append(f.comms, ring.Comm{Index: 2, Hash: 0xaa, Ranks: 2, Rank: 0})
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	f.op(opSpec{fn: "AllReduce", seq: 9, step: 0, launch: 10, start: 20, end: 90, bytes: 77, wire: 30, wirePeer: 3})
	f.op(opSpec{fn: "Send", seq: 4, step: 0, launch: 100, start: 110, end: 190, bytes: 5, flags: ring.FlagSend, peer: 2})
	f.op(opSpec{comm: 2, fn: "Recv", step: 0, launch: 200, start: 210, end: 290, flags: ring.FlagRecv, peer: 1})
	r.Finish(at(300), false, g.emit(t))
	require.Len(t, g.ops, 4)
	reduce, send, recv := g.ops[0], g.ops[1], g.ops[2]
	assert.Equal(t, model.KindCollective, reduce.Kind)
	assert.Equal(t, "all_reduce world", reduce.Key)
	assert.Equal(t, model.Some(int64(3)), reduce.Peer, "the peer of the longest wire wait")
	assert.InDelta(t, 30e-6, reduce.Waits.Wire.V, 1e-12)
	assert.Equal(t, []int64{unixAt(20), unixAt(90), unixAt(10)}, []int64{reduce.Start, reduce.End, reduce.Launch.V})
	assert.Equal(t, model.Some(int64(9)), reduce.Collective.Seq)
	assert.Equal(t, model.ScopeCommFunc, reduce.Collective.SeqScope)
	assert.Equal(t, model.KindSend, send.Kind)
	assert.Equal(t, model.Some(int64(2)), send.Peer)
	assert.Equal(t, model.KindRecv, recv.Kind)
	assert.Equal(t, model.Some(int64(1)), recv.PeerLocal, "not known globally")
	assert.False(t, recv.Peer.OK)
	key, ok := model.Rendezvous(&g.rank, &send)
	require.True(t, ok)
	assert.Equal(t, model.Some(int64(0)), key.Src)
}

func TestFunctionNames(t *testing.T) {
	for in, want := range map[string]string{
		"AllReduce": model.AllReduce, "ncclAllGather": model.AllGather, "AlltoAll": model.AllToAll, "": "unknown", "New Thing": "new thing",
	} {
		assert.Equal(t, want, functionName(in), in)
	}
}

func TestKeysAreBounded(t *testing.T) {
	var k keyTable
	k.init()
	for i := range 1000 {
		k.id(itoa(int64(i)))
	}
	assert.Len(t, k.names, maxKeys+1)
	assert.Equal(t, int64(1000-maxKeys), k.overflowed)
	assert.Equal(t, k.id(otherKey), k.id("beyond"))
}

func TestANodeOutlivesItsRanks(t *testing.T) {
	n := NewNode(DefaultConfig())
	for life := range uint64(50) {
		var ranks []*Rank
		for i := range int32(2) {
			f := newFakeRing(i, 2)
			f.comms[1].Hash = hash0 + life
			r := n.Attach(f, "")
			r.Pass(at(1), newGot().emit(t))
			ranks = append(ranks, r)
		}
		require.Len(t, n.comms, 1)
		n.links.link(linkKey{comm: hash0 + life}, Link{})
		n.Detach(ranks[0])
		require.Len(t, n.comms, 1, "one of its members is there")
		n.Detach(ranks[1])
		require.Empty(t, n.comms)
		require.Empty(t, n.links.links)
	}
}

// An entry of the table that becomes another communicator, which no producer writes, adds nothing for ever.
func TestRank_EntryIsWrittenAgain_NodeForgetsTheFormer(t *testing.T) {
	n := NewNode(DefaultConfig())
	f := newFakeRing(0, 2)
	r := n.Attach(f, "")
	emit := newGot().emit(t)
	f.comms = append(f.comms, ring.Comm{Index: 2}, ring.Comm{Index: 3})
	for i := range uint64(50) {
		f.comms[2] = ring.Comm{Index: 2, Hash: 0xaa, Ranks: 1 << 20, Rank: int32(i), Created: i}
		f.comms[3] = ring.Comm{Index: 3, Hash: 0xbb00 + i, Ranks: 2, Created: i}
		r.Pass(at(1+i), emit)
	}
	require.Contains(t, n.comms, uint64(0xaa))
	assert.Equal(t, map[int32]int64{49: 0}, n.comms[0xaa].global)
	assert.Contains(t, n.comms, uint64(0xbb00+49))
	assert.Len(t, n.comms, 3, "the world, and one of each entry")
	n.Detach(r)
	assert.Empty(t, n.comms)
}
