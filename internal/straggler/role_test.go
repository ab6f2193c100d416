// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// stages runs 8 ranks in two pipeline stages of four; the second has twice the
// work. All meet in one all-reduce.
func stages(t *testing.T, known bool, but map[int]program) []Verdict {
	t.Helper()
	w := newWorld(t, 8)
	if known {
		w.stage = func(r int64) model.Optional[int64] { return model.Some(r / 4) }
	}
	programs := append(each(4, "c20 *", nil), each(4, "c40 *", nil)...)
	for r, p := range but {
		programs[r] = p
	}
	for n := range int64(6) {
		w.step(n, programs...)
	}
	return w.e.Verdicts()
}

// accusations are the verdicts that name a rank.
func accusations(vs []Verdict) (out []Verdict) {
	for _, v := range vs {
		if v.Finding.Rank.OK {
			out = append(out, v)
		}
	}
	return out
}

func TestStagesAreNotComparedWithEachOther(t *testing.T) {
	assert.Empty(t, accusations(stages(t, true, nil)), "a stage with more work is nobody's fault")
	vs := accusations(stages(t, true, map[int]program{6: "c60 *"}))
	require.Len(t, vs, 1)
	assert.Equal(t, int64(6), vs[0].Finding.Rank.V)
	assert.Equal(t, 3, evidenceOf(t, vs[0].Finding).Peers, "the others of its stage")
	assert.InDelta(t, 0.020, evidenceOf(t, vs[0].Finding).ExcessCompute, 1e-6)
}

func TestALonelyRoleIsNotAccused(t *testing.T) {
	w := newWorld(t, 4)
	w.stage = model.Some[int64]
	for n := range int64(8) {
		w.step(n, "c20 *", "c20 *", "c20 *", "c40 *")
	}
	assert.Empty(t, accusations(w.e.Verdicts()), "nobody does the same work as rank 3")
}

func TestTheSidesOfAMessageAreNotPeers(t *testing.T) {
	w := newWorld(t, 2)
	w.clock = "host"
	message := func(kind model.OpKind, peer int64, n int64, from, to float64) model.Op {
		return model.Op{
			Kind: kind, Name: string(kind), Seq: n, Start: nanos(from), End: nanos(to), Step: model.Some(n),
			Peer: model.Some(peer), Comm: model.Comm{ID: "pp"},
			Collective: model.Collective{Seq: model.Some(n), SeqScope: model.ScopeCommFunc},
		}
	}
	for n := range int64(10) {
		at := float64(n) * 100
		// The first stage computes for 50 ms, then sends; the second waits for it.
		w.e.Add(w.rank(0), []model.Op{
			{Kind: model.KindCompute, Name: "gemm", Start: nanos(at), End: nanos(at + 50), Step: model.Some(n)},
			message(model.KindSend, 1, n, at+50, at+51), stepOp(n, at, at+90),
		})
		w.reports = append(w.reports, w.e.Add(w.rank(1), []model.Op{message(model.KindRecv, 0, n, at, at+51), stepOp(n, at, at+90)})...)
	}
	require.Len(t, w.reports, 10)
	assert.Equal(t, 50*ms, w.reports[3].Ranks[1].WaitSuffered, "the wait is seen")
	assert.Empty(t, w.e.Verdicts(), "and nobody accused for it")
}

func TestWhatARankDoesWithNobodyDoesNotChangeItsRole(t *testing.T) {
	w := newWorld(t, 4)
	w.extra = func(r, n int64) []model.Op {
		if r != 0 {
			return nil
		}
		alone := collective(n, 50, 8, float64(n), float64(n))
		alone.Comm = model.Comm{ID: "logging", Size: model.Some(int64(1))}
		return []model.Op{alone}
	}
	for n := range int64(6) {
		w.step(n, each(4, "c20 *", map[int]program{0: "c60 *"})...)
	}
	vs := w.e.Verdicts()
	require.Len(t, vs, 1)
	assert.Equal(t, int64(0), vs[0].Finding.Rank.V)
}

func TestANoisyRoleOfTwoIsNotAccusedByChance(t *testing.T) {
	named := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 9))
		w := newWorld(t, 8)
		w.stage = func(r int64) model.Optional[int64] { return model.Some(r / 2) }
		for n := range int64(24) {
			programs := make([]program, 8)
			for r := range programs {
				base := 20.0
				if r >= 6 {
					base = 60
				}
				programs[r] = fmt.Sprintf("c%.3f *", base*(1+0.6*(rng.Float64()-0.5)))
			}
			w.step(n, programs...)
		}
		named += len(accusations(w.e.Verdicts()))
	}
	assert.LessOrEqual(t, named, 1)
}

func TestExcessIsAShareOfThePeersOwnTime(t *testing.T) {
	w := newWorld(t, 8)
	w.stage = func(r int64) model.Optional[int64] { return model.Some(r / 2) }
	for n := range int64(12) {
		// 3 % over its only peer, and 30 % of what the other stages do.
		w.step(n, "c10 *", "c10 *", "c10 *", "c10 *", "c10 *", "c10 *", "c100 *", "c103 *")
	}
	assert.Empty(t, accusations(w.e.Verdicts()))
}

func TestUnevenGathersMeet(t *testing.T) {
	w := newWorld(t, 2)
	for r := range int64(2) {
		c := collective(1, 0, 100*(r+1), 0, 1)
		c.Collective.Name, c.Name = model.AllGather, model.AllGather
		w.reports = append(w.reports, w.e.Add(w.rank(r), []model.Op{c, stepOp(1, 0, 1)})...)
	}
	assert.Len(t, w.reports[0].Meetings, 1, "members may gather different sizes")
}

// A pipeline whose stages nothing names: each waits for the one before, computes,
// and sends on. All end in one all-reduce, to which the last stage comes last.
func TestStagesAreToldApartByTheirMessages(t *testing.T) {
	w := newWorld(t, 4)
	w.clock = "host"
	stages := []float64{10, 10, 40, 10} // ms
	for n := range int64(12) {
		begin := float64(n) * 200
		at := begin
		for r, work := range stages {
			rank, step := int64(r), model.Some(n)
			message := func(kind model.OpKind, peer int64, from, to float64) model.Op {
				return model.Op{
					Kind: kind, Name: string(kind), Start: nanos(from), End: nanos(to), Step: step, Peer: model.Some(peer),
					Comm: model.Comm{ID: "pp"}, Collective: model.Collective{Seq: model.Some(n), SeqScope: model.ScopeCommFunc},
				}
			}
			var ops []model.Op
			if r > 0 {
				ops = append(ops, message(model.KindRecv, rank-1, begin, at))
			}
			ops = append(ops, model.Op{Kind: model.KindCompute, Name: "gemm", Start: nanos(at), End: nanos(at + work), Step: step})
			at += work
			if r < len(stages)-1 {
				ops = append(ops, message(model.KindSend, rank+1, at, at+1))
			}
			all := collective(n, 0, 8, at+1, begin+75)
			all.Comm.Size = model.Some(int64(4))
			w.reports = append(w.reports, w.e.Add(w.rank(rank), append(ops, all, stepOp(n, begin, begin+80)))...)
		}
	}
	require.Len(t, w.reports, 12)
	assert.Len(t, w.reports[3].Meetings, 4)
	assert.Empty(t, w.e.Verdicts(), "every stage is the only one of its kind")
}

func TestRolesFollowWhatRanksDoTogether(t *testing.T) {
	w := newWorld(t, 4)
	w.extra = func(r, n int64) []model.Op {
		if r < 2 {
			return nil
		}
		pair := collective(n, 50, 8, 0, 1)
		pair.Comm = model.Comm{ID: "experts", Size: model.Some(int64(2))}
		return []model.Op{pair}
	}
	w.step(0, each(4, "c20 *", nil)...)
	ranks := w.e.sorted()[0].window[0].ranks
	assert.Equal(t, ranks[0].role, ranks[1].role)
	assert.Equal(t, ranks[2].role, ranks[3].role)
	assert.NotEqual(t, ranks[0].role, ranks[2].role)
}
