package straggler

import (
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

func TestStagesAreNotComparedWithEachOther(t *testing.T) {
	assert.Empty(t, stages(t, true, nil), "a stage with more work is nobody's fault")
	vs := stages(t, true, map[int]program{6: "c60 *"})
	require.Len(t, vs, 1)
	assert.Equal(t, int64(6), vs[0].Finding.Rank.V)
	assert.Equal(t, 3, evidence(t, vs[0].Finding).Peers, "the others of its stage")
	assert.InDelta(t, 0.020, evidence(t, vs[0].Finding).ExcessCompute, 1e-6)
}

func TestALonelyRoleIsNotAccused(t *testing.T) {
	w := newWorld(t, 4)
	w.stage = model.Some[int64]
	for n := range int64(8) {
		w.step(n, "c20 *", "c20 *", "c20 *", "c40 *")
	}
	assert.Empty(t, w.e.Verdicts())
	assert.Equal(t, gateFalseAlarm, w.e.Jobs()[0].Abstained.Gate, "nobody does the same work as rank 3")
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
