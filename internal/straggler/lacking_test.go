// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Of each step the operations of rank 2's peers were lost in part, so that rank 2 looks slow.
func TestAsk_StepsOfWhichSpansWereLost_AccuseNoRank(t *testing.T) {
	slow := each(4, "c20 *", map[int]program{2: "c40 *"})
	for name, tc := range map[string]struct {
		lost Missing
		want int
	}{
		"nothing is known": {Missing{}, 1},
		"all lost some":    {Missing{Why: "gateway_ended", Spans: 3}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			asked := 0
			w.e.Ask(func(_, _ string, step int64) Missing {
				assert.EqualValues(t, asked, step)
				asked++
				return tc.lost
			})
			for n := range int64(24) {
				w.step(n, slow...)
			}
			for _, rep := range w.e.Flush() {
				assert.Equal(t, tc.lost, rep.Lacks)
			}
			assert.Len(t, w.e.Verdicts(), tc.want)
			assert.Equal(t, 24, asked, "each step is asked about once")
			if tc.want == 0 {
				assert.EqualValues(t, 24, w.e.Stats().StepsIncomplete)
				require.Empty(t, w.e.Jobs()[0].Ranks, "waits of such steps are not summed up")
			}
		})
	}
}

// Steps without losses go on being judged between others.
func TestAsk_SomeStepsLostSpans_OthersAreJudged(t *testing.T) {
	w := newWorld(t, 4)
	w.e.Ask(func(_, _ string, step int64) (lost Missing) {
		if step%3 == 0 {
			lost = Missing{Why: "gateway_ended", Spans: 1}
		}
		return lost
	})
	for n := range int64(36) {
		w.step(n, each(4, "c20 *", map[int]program{2: "c40 *"})...)
	}
	w.e.Flush()
	vs := w.e.Verdicts()
	require.Len(t, vs, 1)
	assert.Equal(t, int64(2), vs[0].Finding.Rank.V)
	assert.Equal(t, 24, w.e.Jobs()[0].Judged)
}
