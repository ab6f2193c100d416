// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// worldCounts answers for eight members of one communicator.
func worldCounts(a *desync.Analyzer, at time.Duration, of func(rank int64) map[string]int64) {
	members := []int64{0, 1, 2, 3, 4, 5, 6, 7}
	for _, rank := range members {
		answered(a, at, rank, counted{"w", members, of(rank)})
	}
}

// The operation is the first one that the rank lacks, however far others ran ahead, and each rank that
// launched it waits.
func TestSavedAnswers_OthersRanAhead_NamesTheFirstLacking(t *testing.T) {
	ar, bc := model.AllReduce, "broadcast"
	for name, tc := range map[string]struct {
		counts func(rank int64) map[string]int64
		rank   int64
		op     string
	}{
		"a root far ahead": {func(r int64) map[string]int64 {
			return map[string]int64{ar: 40, bc: map[int64]int64{0: 200, 6: 1}[r] + 2*flag(r != 0 && r != 6)}
		}, 6, "Broadcast 2"},
		"two ran ahead": {func(r int64) map[string]int64 {
			return map[string]int64{ar: 31 - flag(r == 5) + 2*flag(r == 2) + flag(r == 1)}
		}, 5, "AllReduce 31"},
		"a root ahead in another function": {func(r int64) map[string]int64 {
			return map[string]int64{ar: 40 - flag(r == 6), bc: 1 + 2*flag(r == 0)}
		}, 6, "AllReduce 40"},
		"all others ahead by different numbers": {func(r int64) map[string]int64 {
			return map[string]int64{ar: 10 + r}
		}, 0, "AllReduce 11"},
		"nothing ran ahead": {func(r int64) map[string]int64 { return map[string]int64{ar: 31 - flag(r == 3)} }, 3, "AllReduce 31"},
	} {
		t.Run(name, func(t *testing.T) {
			a := desync.New(desync.Config{})
			a.SetSaved(true, "")
			worldCounts(a, 0, tc.counts)
			rep := a.Conclude(0)
			require.Len(t, rep.Roots, 1)
			f := rep.Roots[0].Finding
			assert.Equal(t, model.ClassNotScheduled, f.Class)
			assert.Equal(t, []int64{tc.rank}, f.Ranks)
			assert.Equal(t, tc.op, f.Op)
			assert.Len(t, f.Waiting, 7)
			assert.Equal(t, 7, rep.Victims)
		})
	}
}

func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// Counts do not give the order of functions: each that the rank lacks is named.
func TestSavedAnswers_SeveralFunctionsLacking_NamesEach(t *testing.T) {
	a := desync.New(desync.Config{})
	a.SetSaved(true, "")
	worldCounts(a, 0, func(r int64) map[string]int64 {
		return map[string]int64{"all_gather": 11 - flag(r == 5), "reduce_scatter": 10 - flag(r == 5), model.AllReduce: 3}
	})
	rep := a.Conclude(0)
	require.Len(t, rep.Roots, 1)
	f := rep.Roots[0].Finding
	assert.Equal(t, []int64{5}, f.Ranks)
	assert.Equal(t, "AllGather 11 or ReduceScatter 10", f.Op)
	assert.Contains(t, evidence.Encode(f.Evidence), "counts do not give the order")
	require.NotEmpty(t, rep.Roots[0].Members)
	assert.Equal(t, "launched AllGather 10, ReduceScatter 9", rep.Roots[0].Members[0].State)
	assert.Empty(t, rep.Roots[0].Op.Name)
}

// Each rank has one row, those that may be at fault first.
func TestSavedAnswers_Members_EachOnce(t *testing.T) {
	a := desync.New(desync.Config{})
	a.SetSaved(true, "")
	worldCounts(a, 0, func(r int64) map[string]int64 { return map[string]int64{"broadcast": 1 + 4*flag(r == 0)} })
	rep := a.Conclude(0)
	require.Len(t, rep.Roots, 1)
	var ranks []int64
	for _, m := range rep.Roots[0].Members {
		ranks = append(ranks, m.Rank)
	}
	assert.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7}, ranks)
}

// A job whose ranks all went on by more than they are apart runs, or did a moment ago.
func TestSavedAnswers_AllWentOn_NamesNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		before, last func(r int64) int64
		hung         bool
		verdict      desync.Verdict
		ranks        []int64
	}{
		"one is ahead":          {func(r int64) int64 { return 100 + flag(r == 2) }, func(r int64) int64 { return 130 + flag(r == 3) }, false, desync.Healthy, nil},
		"one is behind":         {func(int64) int64 { return 100 }, func(r int64) int64 { return 130 - flag(r == 3) }, false, desync.Healthy, nil},
		"one is ahead, hung":    {func(int64) int64 { return 100 }, func(r int64) int64 { return 130 + flag(r == 3) }, true, desync.Undecided, nil},
		"one is behind, hung":   {func(int64) int64 { return 100 }, func(r int64) int64 { return 130 - flag(r == 3) }, true, desync.Hang, []int64{3}},
		"one stands":            {func(int64) int64 { return 100 }, func(r int64) int64 { return 130 - 30*flag(r == 3) }, false, desync.Undecided, []int64{3}},
		"one moved by too few":  {func(int64) int64 { return 100 }, func(r int64) int64 { return 130 - 25*flag(r == 3) }, false, desync.Undecided, []int64{3}},
		"one moved by one only": {func(int64) int64 { return 100 }, func(r int64) int64 { return 102 - flag(r == 3) }, false, desync.Undecided, []int64{3}},
	} {
		t.Run(name, func(t *testing.T) {
			a := desync.New(desync.Config{})
			a.SetSaved(tc.hung, "")
			worldCounts(a, 0, func(r int64) map[string]int64 { return map[string]int64{model.AllReduce: tc.before(r)} })
			worldCounts(a, time.Minute, func(r int64) map[string]int64 { return map[string]int64{model.AllReduce: tc.last(r)} })
			rep := a.Conclude(0)
			assert.Equal(t, tc.verdict, rep.Verdict)
			assert.Equal(t, tc.ranks, blamedIn(rep))
			if tc.ranks == nil {
				assert.Empty(t, rep.Roots)
			}
			assert.Equal(t, tc.verdict == desync.Undecided, rep.MayRun != "")
		})
	}
}
