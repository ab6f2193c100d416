// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// accused returns the ranks that an engine accuses of a simulated job.
func accused(t *testing.T, spec training.Spec, seed uint64) (out []int64, decided []evidence.Straggler) {
	t.Helper()
	for _, v := range engineOf(t, spec, seed).Verdicts() {
		if f := v.Finding; f.Rank.OK {
			out = append(out, f.Rank.V)
			decided = append(decided, evidenceOf(t, f))
		}
	}
	return out, decided
}

var fewSeen = map[string]training.Layout{
	"data parallel":     {DP: 32, Coarse: true},
	"three dimensional": {DP: 4, PP: 2, TP: 4, Microbatches: 4, Layers: 1, Scale: 0.5, Coarse: true},
}

// A fifth of the ranks is not seen: who is slow is named all the same, wherever it is seen
// itself.
func TestMissingRanksLeaveTheRest(t *testing.T) {
	for name, layout := range fewSeen {
		t.Run(name, func(t *testing.T) {
			seen := 0
			seeds := tier.N(t, 3, 6)
			for seed := uint64(1); seed <= uint64(seeds); seed++ {
				spec := training.Spec{
					Name: name, Layout: layout, Noise: training.DefaultNoise(), Steps: 24, Missing: 0.2,
					Faults: []training.Fault{{Family: training.GPUClock, Severity: 1.5}},
				}
				job, err := training.New(spec, seed)
				require.NoError(t, err)
				culprit := job.Truth().Culprits[0]
				ranks, ev := accused(t, spec, seed)
				if culprit.Unseen {
					assert.Empty(t, ranks, "seed %d", seed)
					continue
				}
				seen++
				assert.Equal(t, culprit.Ranks, ranks, "seed %d", seed)
				for i := range ev {
					assert.NotZero(t, ev[i].MissingCount)
				}
			}
			assert.Greater(t, seen, seeds/3)
		})
	}
}

func TestMissingRanksAccuseNobody(t *testing.T) {
	for name, layout := range fewSeen {
		for _, faults := range [][]training.Fault{nil, {{Family: training.SeqLen, Severity: 0.4}}} {
			for seed := uint64(1); seed <= uint64(tier.N(t, 2, 4)); seed++ {
				ranks, _ := accused(t, training.Spec{
					Name: name, Layout: layout, Noise: training.DefaultNoise(), Steps: 24, Missing: 0.25, Faults: faults,
				}, seed)
				assert.Empty(t, ranks, "%s, seed %d, %v", name, seed, faults)
			}
		}
	}
}

// What a slow rank costs is known as an interval where whom it held up was not seen.
func TestCostBehindMissingRanks(t *testing.T) {
	c := &candidate{cost: 0.001, most: 0.01, in: stretch{{start: 0, end: int64(100 * time.Millisecond)}}}
	cfg := NewDefaultConfig()
	assert.Empty(t, c.failed(nil, nil, &cfg).gate, "it may cost a tenth")
	assert.InDelta(t, 0.01, c.mostCost(), 0)
	assert.InDelta(t, 0.001, *c.leastCost(), 0, "and no less than what a replay shows")
	c.cost = 0.02
	assert.Zero(t, c.mostCost(), "what it costs is known")
	assert.Nil(t, c.leastCost())
	c.cost, c.most = 0.001, 0
	assert.Equal(t, gateCost, c.failed(nil, nil, &cfg).gate)
}

// Who was not seen may have been later than the last one seen: what of the meeting is open.
func TestWhatUnseenMembersLeaveOpen(t *testing.T) {
	const ms = int64(1e6)
	meeting := func(open bool, last int, enter ...int64) *meetingRecord {
		mr := &meetingRecord{attributed: !open, open: open, last: last, arrived: enter[last], rule: waitAll}
		mr.shown.size = 4
		for i, at := range enter {
			mr.ranks = append(mr.ranks, int64(i))
			mr.members = append(mr.members, memberRecord{rank: int32(i), enter: at, exit: enter[last] + 5*ms})
		}
		return mr
	}
	in := stretch{{missingCount: 1, meets: []*meetingRecord{meeting(true, 2, 0, ms, 4*ms), meeting(false, 0, 3*ms, 0, 2*ms)}}}
	open, stayed, ahead := in.unseenBy(map[int64]bool{2: true})
	assert.True(t, open)
	assert.InDelta(t, 0.005, stayed, 1e-12, "after it had come itself")
	assert.InDelta(t, 0.003, ahead, 1e-12, "later than rank 1")
	in[0].meets[0].attributed = true
	open, stayed, _ = in.unseenBy(map[int64]bool{2: true})
	assert.True(t, open)
	assert.Zero(t, stayed, "it left as who is the last")
	in[0].meets[0].attributed = false
	in[0].missingCount, in[0].ranks = 0, make([]rankRecord, 4)
	_, stayed, _ = in.unseenBy(map[int64]bool{2: true})
	assert.Zero(t, stayed, "an operation was lost of a rank that was seen")
	in[0].ranks = in[0].ranks[:3]
	_, stayed, ahead = in.unseenBy(map[int64]bool{1: true})
	assert.InDelta(t, 0.005, stayed, 1e-12)
	assert.Zero(t, ahead, "it kept nobody waiting")
	for _, mr := range in[0].meets {
		in[0].count(mr)
	}
	assert.InDelta(t, 6.0/8, in.seenMembers(), 1e-12)

	for i := range in[0].ranks {
		in[0].ranks[i].rank = &model.Rank{Rank: int64(i)}
	}
	c := &candidate{place: place{sort: placeRank}, in: in, cost: 1, Conclusion: judge.Conclusion{Rank: 1, Ranks: []int64{1}, Class: model.ClassCompute}}
	_, c.costBy = c.mending()
	c.bound()
	require.NotNil(t, c.least, "what it costs at least is asked where a member was not seen")
	assert.InDelta(t, 0.005, c.stayed, 1e-12)

	whole := stretch{{ranks: make([]rankRecord, 9), missingCount: 1, meets: in[0].meets[1:]}}
	told := &candidate{place: place{sort: placeRank}, in: whole, Conclusion: judge.Conclusion{Rank: 0, Ranks: []int64{0}, Mean: 0.01}}
	told.bound()
	assert.InDelta(t, 0.001, told.most, 1e-12, "later than rank 2")
	told.Mean, told.most = 0.0004, 0
	told.bound()
	assert.InDelta(t, 0.0004, told.most, 1e-12, "no more than its excess")
	whole[0].missingCount, told.most = 0, 0
	told.bound()
	assert.Zero(t, told.most, "all were seen")

	c = &candidate{cost: 0.002, stayed: 0.008}
	assert.InDelta(t, 0.25, c.doubt(), 1e-12)
	assert.Equal(t, gateUnseen, c.behindUnseen().gate)
	c.most = 0.004
	assert.Empty(t, c.behindUnseen().gate, "it kept others waiting")
	c.stayed = 0.001
	assert.InDelta(t, 1, c.doubt(), 0)
}

// Rank 3 is slow, and rank 2 a little. Where nothing was recorded of rank 3, what mending
// rank 2 saves may be nothing.
func TestALittleSlowBehindOneWhoWasNotSeen(t *testing.T) {
	w := newWorld(t, 8)
	w.drop = map[int64]bool{3: true}
	usual := strings.Repeat("c10 * ", 4)
	for step := range int64(20) {
		w.step(step, each(8, usual, map[int]program{2: strings.Repeat("c11 * ", 4), 3: strings.Repeat("c20 * ", 4)})...)
	}
	w.e.Flush()
	assert.Empty(t, w.e.Verdicts())
	a := w.e.Jobs()[0].Abstained
	require.NotNil(t, a)
	assert.Equal(t, gateUnseen, a.Gate)
	assert.Equal(t, int64(2), a.Rank)
	assert.Less(t, a.Got, a.Want)
}

// Rank 3 was not seen, and came 3 ms after rank 2, for whom the others seem to wait 20 ms.
// They waited for both.
func TestWhoNearlyWasTheLast(t *testing.T) {
	for name, tc := range map[string]struct {
		drop  map[int64]bool
		third program
		open  bool
	}{
		"rank 3 came later, unseen":    {map[int64]bool{3: true}, "c33 *", true},
		"rank 3 came with the others":  {nil, "c10 *", false},
		"rank 3 came so, and was seen": {nil, "c33 *", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 8)
			w.drop = tc.drop
			for step := range int64(20) {
				w.step(step, each(8, "c10 *", map[int]program{2: "c30 *", 3: tc.third})...)
			}
			w.e.Flush()
			var f model.Finding
			for _, v := range w.e.Verdicts() {
				if v.Finding.Rank.V == 2 {
					f = v.Finding
				}
			}
			require.True(t, f.Rank.OK)
			ev := evidenceOf(t, f)
			if !tc.open {
				assert.Nil(t, ev.WaitLeast)
				assert.False(t, f.CostLeast.OK)
				return
			}
			assert.InDelta(t, 6*0.020, f.WaitCaused.V, 1e-6)
			require.NotNil(t, ev.WaitLeast)
			assert.InDelta(t, 0, *ev.WaitLeast, 1e-6)
			assert.InDelta(t, 0.020, f.CostSeconds.V, 1e-4)
			assert.InDelta(t, 0, f.CostLeast.Or(-1), 1e-4, "mended, nobody would have waited less")
		})
	}
}
