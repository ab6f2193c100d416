// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"testing"
)

// Three of four siblings are slow, so that their median is. Nobody is named, and least of all is
// the fourth said to have more to do: that the cohort is divided is told.
func TestMostOfACohortIsSlow(t *testing.T) {
	for _, of := range []struct {
		dp, pp, tp  int
		kernels     []kernel
		stage, part int
	}{
		{4, 1, 1, testKernels, 0, 0},
		{4, 4, 1, testKernels, 1, 0},
		{4, 4, 1, unshaped(), 1, 0},
		{4, 1, 4, testKernels, 0, 1},
		{4, 2, 4, testKernels, 1, 1},
	} {
		for _, by := range []float64{1.1, 1.2, 1.5} {
			for seed := range uint64(5) {
				t.Run(fmt.Sprint(of.dp, of.pp, of.tp, of.kernels[0].shape, by, seed), func(t *testing.T) {
					job := pipelined(of.dp, of.pp, of.tp, seed)
					job.kernels = of.kernels
					var slow []int64
					job.with(func(_ int, rows []testRow) {
						slow = slow[:0]
						for r := range rows {
							if rows[r].pp == of.stage && rows[r].tp == of.part && len(slow) < 3 {
								rows[r].slow = by
								slow = append(slow, int64(r))
							}
						}
					})
					got := job.judged()
					expect(t, got)
					if a := got.Abstained; a == nil || a.Gate != gateHalf || !slices.Equal(a.Ranks, slow) {
						t.Errorf("got %+v, want an abstention for %s of ranks %v", a, gateHalf, slow)
					}
				})
			}
		}
	}
}
