// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// sampleOps are operations that differ in one field each.
func sampleOps() []model.Op {
	base := model.Op{
		Kind: model.KindCollective, Name: "nccl", Key: "reduce", Seq: 3, Start: 10, End: 20, ClockID: "c", EndInferred: true,
		Step: model.Some(int64(0)), WorkBytes: model.Some(int64(7)), WorkGrid: "1,2,3", Stream: model.Some(int64(5)), Launch: model.Some(int64(4)),
		Microbatch: model.Some(int64(2)), Peer: model.Some(int64(1)), PeerLocal: model.Some(int64(2)),
		Comm:       model.Comm{ID: "a", Digest: "d", Size: model.Some(int64(4)), Rank: model.Some(int64(1))},
		Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(int64(9)), SeqScope: model.ScopeComm, Bytes: model.Some(int64(8)), Root: model.Some(int64(2))},
		Waits:      model.ProxyWaits{Wire: model.Some(0.5), WireSteps: model.Some(int64(6))},
	}
	out := []model.Op{base, {Kind: model.KindCollective, Name: "nccl"}, {Kind: model.KindCompute, Name: "nccl"}}
	for _, change := range []func(*model.Op){
		func(o *model.Op) { o.Kind = model.KindSend },
		func(o *model.Op) { o.Key = "gather" },
		func(o *model.Op) { o.Key, o.Name = "", "reduce" },
		func(o *model.Op) { o.Comm.ID = "b" },
		func(o *model.Op) { o.Comm.Digest = "e" },
		func(o *model.Op) { o.Comm.Size = model.Some(int64(5)) },
		func(o *model.Op) { o.Collective.Name = model.AllGather },
		func(o *model.Op) { o.Collective.SeqScope = model.ScopeOrdinal },
		func(o *model.Op) { o.Kind = model.KindCompute },
		func(o *model.Op) { o.Kind, o.Name = model.KindCompute, "other" },
		func(o *model.Op) { o.Kind, o.WorkGrid = model.KindCompute, "" },
		func(o *model.Op) { o.Kind = model.KindScope },
		func(o *model.Op) { o.Kind, o.Key = model.KindScope, model.ScopeDataLoading },
	} {
		op := base
		change(&op)
		out = append(out, op)
	}
	return out
}

// What a rank did before, in the room that an operation takes, shows in nothing that is kept
// of it, and makes it no other.
func TestTheStepBeforeLeavesNoTrace(t *testing.T) {
	ops := sampleOps()
	j := newWorld(t, 2).e.job(&model.Rank{JobID: "job"})
	fresh := func(op *model.Op) *rankStep {
		rs := &rankStep{}
		rs.add(op, j)
		return rs
	}
	var want []*rankStep
	for i := range ops {
		want = append(want, fresh(&ops[i]))
	}
	for i := range ops {
		for k := range ops {
			rs := fresh(&ops[k])
			for n := range rs.comms {
				o := &rs.comms[n]
				o.met, o.numbered, o.wired, o.inferred, o.stream, o.spot = true, true, true, true, 7, 7
			}
			rs.acts, rs.comms = rs.acts[:0], rs.comms[:0]
			rs.add(&ops[i], j)
			assert.True(t, slices.Equal(want[i].acts, rs.acts), "%d after %d", i, k)
			assert.True(t, slices.Equal(want[i].comms, rs.comms), "%d after %d", i, k)
		}
	}
	forms := map[*commForm]bool{}
	keys := map[uint32]bool{}
	for _, rs := range want {
		for i := range rs.comms {
			forms[rs.comms[i].form] = true
		}
		for i := range rs.acts {
			keys[rs.acts[i].key] = true
		}
	}
	assert.Len(t, forms, 9, "what meets differently is told apart")
	assert.Len(t, keys, 6)
}

func TestMeetingsAreOrderedByArrival(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for _, spread := range []int64{1, 5, 1e9, math.MaxInt64} {
		for n := range 40 {
			var r placer
			for range n {
				r.meetings = append(r.meetings, meeting{arrived: rng.Int64N(spread)})
			}
			for i := range r.meetings {
				r.out = append(r.out, &r.meetings[i])
			}
			want := slices.Clone(r.out)
			slices.SortStableFunc(want, func(a, b *meeting) int { return cmp.Compare(a.arrived, b.arrived) })
			got := r.byArrival()
			require.Len(t, got, n)
			for i := range got {
				require.Same(t, want[i], got[i])
			}
		}
	}
}

// Where own time was asked for before does not change what it is.
func TestOwnTimeInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	v := &rankView{rankStep: &rankStep{start: 100}}
	at, sum := v.start, own{}
	for range 60 {
		p := piece{start: at, end: at + 1 + rng.Int64N(20), part: part(rng.IntN(int(parts)))}
		v.pieces, v.cum = append(v.pieces, p), append(v.cum, sum)
		sum, at = sum.plus(p.own(p.start, p.end)), p.end
	}
	for range 5000 {
		t0 := v.start - 5 + rng.Int64N(at-v.start+10)
		var want own
		for i := range v.pieces {
			if p := &v.pieces[i]; p.start <= t0 {
				want = want.plus(p.own(p.start, min(t0, p.end)))
			}
		}
		require.Equal(t, want, v.ownUntil(t0), "until %d", t0)
	}
}
