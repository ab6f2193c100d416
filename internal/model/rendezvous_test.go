// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func allReduce(scope SeqScope, seq int64) Op {
	return Op{
		Kind: KindCollective, Step: Some(int64(8)), Comm: Comm{ID: "c1"},
		Collective: Collective{Name: AllReduce, Seq: Some(seq), SeqScope: scope},
	}
}

// The hash was computed with an FNV-1a of a few lines of Python over the same bytes.
func TestRendezvousWireForm(t *testing.T) {
	op := allReduce(ScopeCommFunc, 5)
	k, ok := Rendezvous(&Rank{Incarnation: "inc"}, &op)
	require.True(t, ok)
	assert.Equal(t, []byte("inc\x00c1\x00comm_func\x00all_reduce\x00\x005\x00\x00\x00"), k.Bytes())
	assert.Equal(t, uint64(0x9b8ae161adc66aad), k.Hash())
}

func TestRendezvousScopes(t *testing.T) {
	tests := []struct {
		name string
		op   Op
		want RendezvousKey
		ok   bool
	}{
		{"counted per function", allReduce(ScopeCommFunc, 5), RendezvousKey{Incarnation: "inc", Comm: "c1", Scope: ScopeCommFunc, Name: AllReduce, Seq: 5}, true},
		{"counted over functions", allReduce(ScopeComm, 5), RendezvousKey{Incarnation: "inc", Comm: "c1", Scope: ScopeComm, Seq: 5}, true},
		{"counted by us", allReduce(ScopeOrdinal, 5), RendezvousKey{Incarnation: "inc", Comm: "c1", Scope: ScopeOrdinal, Name: AllReduce, Step: Some(int64(8)), Seq: 5}, true},
		{"shared by nobody", allReduce(ScopeProcess, 5), RendezvousKey{}, false},
		{"scope unknown", allReduce("", 5), RendezvousKey{}, false},
		{"no number", Op{Kind: KindCollective, Collective: Collective{SeqScope: ScopeComm}}, RendezvousKey{}, false},
		{"local", Op{Kind: KindCompute, Collective: Collective{Seq: Some(int64(1)), SeqScope: ScopeComm}}, RendezvousKey{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := Rendezvous(&Rank{Incarnation: "inc"}, &tt.op)
			assert.Equal(t, tt.ok, ok)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestBothSidesOfAMessageMeet(t *testing.T) {
	message := func(kind OpKind, peer, seq int64) Op {
		return Op{Kind: kind, Peer: Some(peer), Comm: Comm{ID: "pp"}, Collective: Collective{Seq: Some(seq), SeqScope: ScopeComm}}
	}
	send, recv, back := message(KindSend, 5, 1), message(KindRecv, 4, 1), message(KindSend, 4, 1)
	four, five := &Rank{Incarnation: "inc", Rank: 4}, &Rank{Incarnation: "inc", Rank: 5}
	sent, ok := Rendezvous(four, &send)
	require.True(t, ok)
	received, ok := Rendezvous(five, &recv)
	require.True(t, ok)
	assert.Equal(t, sent, received)
	answered, ok := Rendezvous(five, &back)
	require.True(t, ok)
	assert.NotEqual(t, sent, answered, "the other direction is counted apart")

	alone := Op{Kind: KindSend, PeerLocal: Some(int64(1)), Collective: Collective{Seq: Some(int64(1)), SeqScope: ScopeComm}}
	_, ok = Rendezvous(four, &alone)
	assert.False(t, ok, "a peer known only inside its communicator joins nobody")
}

// Keys that differ in any part must differ on the wire too.
func TestKeyBytesAreInjective(t *testing.T) {
	one := Some(int64(1))
	keys := []RendezvousKey{
		{Incarnation: "a"},
		{Comm: "a"},
		{Scope: "a"},
		{Name: "a"},
		{Step: one},
		{Seq: 1},
		{Src: one},
		{Dst: one},
		{Step: Some(int64(0))},
		{Src: Some(int64(0))},
		{Src: one, Dst: one},
		{Seq: -1},
		{},
	}
	seen := map[string]RendezvousKey{}
	for _, k := range keys {
		b := string(k.Bytes())
		assert.NotContains(t, seen, b, "%+v and %+v", k, seen[b])
		seen[b] = k
	}
}

func TestSynchronising(t *testing.T) {
	for name, want := range map[string]bool{
		AllReduce: true, AllGather: true, ReduceScatter: true, Barrier: true,
		Broadcast: false, Reduce: false, AllToAll: false, SendRecv: false, "": false,
	} {
		assert.Equal(t, want, Synchronising(name), name)
	}
}
