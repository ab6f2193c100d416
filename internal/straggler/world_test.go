// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// stated returns the engine of a job of eight ranks that state worlds of their own; rank 2 is
// slow by 20 ms.
func stated(t *testing.T, sized bool, world func(rank int64) int64) *Engine {
	t.Helper()
	w := newWorld(t, 8)
	if !sized {
		w.change = func(_ int64, op *model.Op) { op.Comm.Size = model.Optional[int64]{} }
	}
	w.sink = func(rank int64, ops []model.Op) {
		r := w.rank(rank)
		r.WorldSize = model.Some(world(rank))
		w.e.Add(r, ops)
	}
	for step := range int64(12) {
		w.step(step, each(8, "c30 * c5 *", map[int]program{2: "c50 * c5 *"})...)
	}
	w.e.Flush()
	return w.e
}

func TestAWorldOfNoSize(t *testing.T) {
	e := stated(t, true, func(rank int64) int64 { return 8 - 9*(rank/7) })
	require.Len(t, e.Verdicts(), 1)
	assert.Contains(t, e.Jobs()[0].Problems, "check world size: got -1 of rank 7; want at least 1. It is left out")
	assert.Positive(t, e.Stats().WorldsContradicted)
}

func TestAWorldSizeThatIsWrong(t *testing.T) {
	same := func(size int64) func(int64) int64 { return func(int64) int64 { return size } }
	right := stated(t, true, same(8))
	want := right.Verdicts()
	require.Len(t, want, 1)
	assert.Empty(t, right.Jobs()[0].Problems)
	assert.Zero(t, right.Stats().WorldsContradicted)
	for name, tc := range map[string]struct {
		sized   bool
		world   func(int64) int64
		says    string
		late    bool
		counted bool
	}{
		"four fewer": {true, same(4), "check world size: got 4 as stated; want at least 8, since so many ranks are members of one group", false, true},
		"four fewer, and no sizes of groups": {
			false, same(4), "check world size: got 4 as stated; want at least 8, since so many ranks came", true, true,
		},
		"four more":   {true, same(12), "check world size: got 12 as stated, and 8 ranks; want 8 where these are all", false, false},
		"two of them": {true, func(rank int64) int64 { return 8 - 4*(rank/5%2) }, "check world size: got 8 of rank 0 and 4 of rank 7; want one", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := stated(t, tc.sized, tc.world)
			vs, job := e.Verdicts(), e.Jobs()[0]
			assert.Contains(t, strings.Join(job.Problems, "\n"), tc.says)
			assert.Equal(t, tc.counted, e.Stats().WorldsContradicted > 0)
			assert.Equal(t, tc.late, e.Stats().LateOps > 0, "its first step was over before all had delivered")
			require.Len(t, vs, 1)
			got := vs[0].Finding
			assert.Equal(t, int64(2), got.Rank.V)
			assert.InDelta(t, want[0].Finding.CostSeconds.V, got.CostSeconds.V, 1e-6)
			assert.InDelta(t, want[0].Finding.Confidence, got.Confidence, 0.02)
			assert.Len(t, job.Ranks, 8)
		})
	}
}

// Ranks that are missing and share nothing with those seen hide nobody whom a rank held up: what
// it costs is known, and too little is too little.
func TestWhoIsMissingForAWrongWorldHidesNobody(t *testing.T) {
	w := newWorld(t, 8)
	w.sink = func(rank int64, ops []model.Op) {
		r := w.rank(rank)
		r.WorldSize = model.Some[int64](64)
		w.e.Add(r, ops)
	}
	for step := range int64(20) {
		w.step(step, each(8, "c30 *", map[int]program{2: "c33 *", 5: "c32.9 *"})...)
	}
	w.e.Flush()
	in := stretch(onlyJob(t, w.e).window)
	assert.InDelta(t, 1, in.seenShare(), 0)
	for _, v := range w.e.Verdicts() {
		assert.False(t, v.Finding.CostMost.OK, "nothing is hidden")
	}
	// One who is missing from their group does hide it.
	w = newWorld(t, 8)
	w.drop = map[int64]bool{3: true}
	for step := range int64(4) {
		w.step(step, each(8, "c30 *", nil)...)
	}
	w.e.Flush()
	assert.InDelta(t, 7.0/8, stretch(onlyJob(t, w.e).window).seenShare(), 1e-12)
}

// Communication that met nobody may have waited for a rank that was not seen.
func TestWhatTouchesThoseMissing(t *testing.T) {
	op := commOp{form: &commForm{commName: commName{kind: model.KindCollective, size: 2}}}
	alone := &rankView{rankStep: &rankStep{comms: []commOp{op}}}
	assert.True(t, touched([]*rankView{alone}, nil))
	a, b := &rankView{rankStep: &rankStep{comms: []commOp{op}}, met: []metOp{{}}}, &rankView{rankStep: &rankStep{comms: []commOp{op}}, met: []metOp{{}}}
	whole := &meeting{gathering: &gathering{kind: model.KindCollective, parties: []party{{at: a, op: &op}, {at: b, op: &op}}}}
	assert.False(t, touched([]*rankView{a, b}, []*meeting{whole}))
	assert.True(t, touched([]*rankView{a, b, alone}, []*meeting{whole}))
	whole.parties = whole.parties[:1]
	assert.True(t, touched([]*rankView{a, b}, []*meeting{whole}), "one of its members")
}
