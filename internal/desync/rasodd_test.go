// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Who ran ahead of the others, or sends to all as their root, called nothing else than they did.
func TestSavedAnswers_MismatchAndRunAhead_NamesWhoDiffers(t *testing.T) {
	ar, ag, bc, rs := model.AllReduce, "all_gather", "broadcast", "reduce_scatter"
	for name, tc := range map[string]struct {
		counts     func(rank int64) map[string]int64
		ranks      []int64
		candidates []int64
		op         string
	}{
		"one ran ahead": {func(r int64) map[string]int64 {
			return map[string]int64{rs: 12 + flag(r == 3), ag: 20 - flag(r == 3) + 3*flag(r == 6)}
		}, []int64{3}, nil, "AllGather 20"},
		"one ran ahead to what the other called": {func(r int64) map[string]int64 {
			return map[string]int64{ar: 9 - flag(r == 7), bc: 2 + flag(r == 7 || r == 1)}
		}, []int64{7}, nil, "AllReduce 9"},
		"each ran ahead by another number": {func(r int64) map[string]int64 {
			return map[string]int64{ar: 30 + r*flag(r != 4) - flag(r == 4), ag: 6 + flag(r == 4)}
		}, []int64{4}, nil, "AllReduce 30"},
		"more ran ahead than did not": {func(r int64) map[string]int64 {
			return map[string]int64{ar: 30 + 2*flag(r > 2) - flag(r == 0), ag: 6 + flag(r == 0)}
		}, []int64{0}, nil, "AllReduce 30"},
		"a root of broadcasts": {func(r int64) map[string]int64 {
			return map[string]int64{bc: 7 + 90*flag(r == 2), ar: 15 - flag(r == 5), ag: 1 + flag(r == 5)}
		}, []int64{5}, nil, "AllReduce 15"},
		"a root, and one that ran ahead": {func(r int64) map[string]int64 {
			return map[string]int64{bc: 7 + 90*flag(r == 2), ar: 15 - flag(r == 5) + flag(r == 2 || r == 3), ag: 1 + flag(r == 5)}
		}, []int64{5}, nil, "AllReduce 15"},
		"two that differ, one ran ahead": {func(r int64) map[string]int64 {
			return map[string]int64{ar: 15 - flag(r == 5 || r == 6) + 4*flag(r == 0), ag: 1 + flag(r == 5), bc: 3 + flag(r == 6)}
		}, []int64{5, 6}, nil, "AllReduce 15"},
		"either of two": {func(r int64) map[string]int64 {
			return map[string]int64{ar: 15 + flag(r == 2), ag: 3 + flag(r == 5)}
		}, nil, []int64{2, 5}, "AllGather 4 or AllReduce 16"},
		"half and half, one of each ran ahead": {func(r int64) map[string]int64 {
			return map[string]int64{ar: 15 + flag(r < 4) + flag(r == 1), ag: 3 + flag(r > 3) + flag(r == 6)}
		}, []int64{0, 1, 2, 3, 4, 5, 6, 7}, nil, ""},
		"no two alike": {func(r int64) map[string]int64 {
			return map[string]int64{ar: 15 + r, ag: 30 - r}
		}, []int64{0, 1, 2, 3, 4, 5, 6, 7}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := desync.New(desync.Config{})
			a.SetSaved(true, "")
			worldCounts(a, 0, tc.counts)
			rep := a.Conclude(0)
			require.Len(t, rep.Roots, 1)
			f := rep.Roots[0].Finding
			assert.Equal(t, tc.ranks, f.Ranks)
			assert.Equal(t, tc.candidates, f.Candidates)
			assert.Len(t, f.Waiting, 8-len(tc.ranks)-len(tc.candidates))
			if tc.op != "" {
				assert.Equal(t, tc.op, f.Op)
			}
			assert.Equal(t, model.ClassMismatchOp, f.Class)
			assert.Equal(t, desync.Hang, rep.Verdict)
		})
	}
}
