// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// All ranks of a host bear one clock id, and one of them is stamped 20 ms late, so that the
// others leave each collective before it comes. It is owed no wait and makes no step longer,
// and what another costs is not known.
func TestStampsThatCannotBeOweNobody(t *testing.T) {
	spec := training.Spec{
		Name: "x", Layout: training.Layout{DP: 8}, Noise: training.DefaultNoise(), Steps: 24,
		Faults: []training.Fault{{Family: training.GPUClock, Severity: 1.2, Ranks: []int64{3}}},
	}
	run := func(late int64, want map[int64]string) JobReport {
		e := bent(t, spec, func(rank int64, ops []model.Op) {
			if rank != 5 {
				return
			}
			for i := range ops {
				ops[i].Start += late
				ops[i].End += late
				if l := ops[i].Launch; l.OK {
					ops[i].Launch = model.Some(l.V + late)
				}
			}
		})
		assert.Equal(t, want, accusedOf(e))
		return e.Jobs()[0]
	}
	right, wrong := run(0, map[int64]string{3: model.ClassCompute}), run(20e6, map[int64]string{})
	assert.Zero(t, right.Unowed.Order)
	assert.Empty(t, right.Problems)
	assert.Equal(t, wrong.Meetings, wrong.Unowed.Order)
	assert.Zero(t, wrong.Attributed)
	assert.False(t, wrong.Unowed.Harmless())
	assert.Zero(t, wrong.Ranks[5].WaitCaused)
	assert.InEpsilon(t, right.StepTime, wrong.StepTime, 0.01)
	require.Len(t, wrong.Problems, 1)
	assert.Contains(t, wrong.Problems[0], "a member left before one that it waits for had come")
	assert.Contains(t, wrong.Problems[0], "the last: rank 5")
}

// causal gives a placed meeting of members that came and went, on the clocks named.
func causal(name string, root int, clocks []string, sigma time.Duration, times ...[2]int64) *meeting {
	m := &meeting{gathering: &gathering{kind: model.KindCollective}, rule: waitAll}
	if root >= 0 {
		m.rule = waitForRoot
	}
	form := &commForm{}
	form.kind, form.collective = model.KindCollective, name
	for i, x := range times {
		v := &rankView{rankStep: &rankStep{rank: model.Rank{Rank: int64(i), ClockID: clocks[i%len(clocks)]}}}
		v.offset.Sigma = sigma
		m.parties = append(m.parties, party{at: v, op: &commOp{form: form}})
		m.enter, m.exit = append(m.enter, x[0]), append(m.exit, x[1])
	}
	if m.last = argmax(m.enter); root >= 0 {
		m.last = root
	}
	m.arrived = m.enter[m.last]
	return m
}

func TestWhoLeavesEarly(t *testing.T) {
	one, two := []string{"c"}, []string{"a", "b"}
	const us = 1000
	for name, of := range map[string]struct {
		m    *meeting
		by   int64
		odd  int
		tell func(m *meeting)
	}{
		"nobody":                   {causal(model.AllReduce, -1, one, 0, [2]int64{0, 9 * us}, [2]int64{5 * us, 9 * us}), 0, -1, nil},
		"by whole microseconds":    {causal(model.AllReduce, -1, one, 0, [2]int64{0, 5 * us}, [2]int64{7 * us, 9 * us}), 0, -1, nil},
		"one of two":               {causal(model.AllReduce, -1, one, 0, [2]int64{0, 5 * us}, [2]int64{8 * us, 9 * us}), us, -1, nil},
		"all but the last":         {causal(model.AllReduce, -1, one, 0, [2]int64{0, 5 * us}, [2]int64{1, 5 * us}, [2]int64{8 * us, 9 * us}), us, 2, nil},
		"halves":                   {causal(model.AllReduce, -1, one, 0, [2]int64{0, 5 * us}, [2]int64{0, 5 * us}, [2]int64{8 * us, 9 * us}, [2]int64{8 * us, 9 * us}), us, -1, nil},
		"of vague clocks":          {causal(model.AllReduce, -1, two, us, [2]int64{0, 5 * us}, [2]int64{12 * us, 19 * us}), 0, -1, nil},
		"even of vague clocks":     {causal(model.AllReduce, -1, two, us, [2]int64{0, 5 * us}, [2]int64{14 * us, 19 * us}), us, -1, nil},
		"empty parts of exchanges": {causal(model.AllToAll, -1, one, 0, [2]int64{0, 5 * us}, [2]int64{8 * us, 9 * us}), 0, -1, nil},
		"a leaf before its root":   {causal(model.Broadcast, 1, one, 0, [2]int64{0, 5 * us}, [2]int64{8 * us, 9 * us}), us, -1, nil},
		"the root before its leaf": {causal(model.Broadcast, 0, one, 0, [2]int64{0, 5 * us}, [2]int64{8 * us, 9 * us}), 0, -1, nil},
		"an end that nobody saw":   {causal(model.AllReduce, -1, one, 0, [2]int64{0, 5 * us}, [2]int64{8 * us, 9 * us}), 0, -1, func(m *meeting) { m.parties[0].op.inferred = true }},
		"whom nothing makes wait":  {causal(model.AllReduce, -1, one, 0, [2]int64{0, 5 * us}, [2]int64{8 * us, 9 * us}), 0, -1, func(m *meeting) { m.rule = waitNobody }},
	} {
		t.Run(name, func(t *testing.T) {
			if of.tell != nil {
				of.tell(of.m)
			}
			assert.Equal(t, of.by, of.m.early())
			if of.by > 0 {
				assert.Equal(t, of.odd, of.m.odd())
			}
		})
	}
}
