// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// Two processes of one host call themselves rank 2, and nothing tells them apart: what both
// took is no rank's time, and nobody is named for it.
func TestTwoProcessesOfOneNumberAreLeftOut(t *testing.T) {
	job, err := training.New(training.Spec{Name: "x", Layout: training.Layout{DP: 8}, Noise: training.DefaultNoise(), Steps: 24}, 5)
	require.NoError(t, err)
	e := New(NewDefaultConfig(), time.Now)
	ranks := job.Ranks()
	for {
		step, ok := job.Next()
		if !ok {
			break
		}
		for i := range ranks {
			ops := slices.Clone(step.Ops(i))
			if ranks[i].Rank == 2 {
				isStep := func(op model.Op) bool { return op.Kind == model.KindStep }
				other := slices.DeleteFunc(slices.Clone(step.Ops(3)), isStep)
				slices.Reverse(other)
				ops = slices.Concat(other, ops)
			}
			e.Add(ranks[i], ops)
		}
	}
	e.Flush()
	e.Verdicts()
	assert.Empty(t, accusedOf(e))
	assert.Positive(t, e.Stats().OpsOfTwins)
	rep := e.Jobs()[0]
	require.Len(t, rep.Problems, 1)
	assert.Contains(t, rep.Problems[0], "in 24 steps of ranks one was in collectives twice, at different times")
	assert.Contains(t, rep.Problems[0], "the last: rank 2 in step 23")
}

// Where most ranks seem to be two, groups share a name.
func TestGroupsThatShareANameAreNoTwoProcesses(t *testing.T) {
	for name, of := range map[string]struct {
		twice, comms []int
		left         int
	}{
		"nobody":              {[]int{0, 0, 0, 0}, []int{4, 4, 4, 4}, 4},
		"one":                 {[]int{0, 4, 0, 0}, []int{4, 8, 4, 4}, 3},
		"one, in part":        {[]int{0, 2, 0, 0}, []int{4, 6, 4, 4}, 3},
		"a stamp again":       {[]int{0, 1, 0, 0}, []int{4, 5, 4, 4}, 4},
		"half of them":        {[]int{4, 4, 0, 0}, []int{8, 8, 4, 4}, 4},
		"who met nobody else": {[]int{0, 0, 0, 0}, []int{0, 0, 0, 0}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			j := &job{e: New(NewDefaultConfig(), nil), keys: newInterner()}
			s := &openStep{ranks: map[int64]*rankStep{}}
			var views []*rankView
			for i := range of.twice {
				rs := &rankStep{rank: model.Rank{Rank: int64(i)}, comms: make([]commOp, of.comms[i])}
				s.ranks[int64(i)] = rs
				views = append(views, &rankView{rankStep: rs, twice: of.twice[i], index: i})
			}
			out := j.leaveOutMixed(s, views)
			assert.Len(t, out, of.left)
			assert.Len(t, s.ranks, of.left)
			for i, v := range out {
				assert.Equal(t, i, v.index)
			}
			assert.Len(t, j.problems(), min(1, 4-of.left))
		})
	}
}
