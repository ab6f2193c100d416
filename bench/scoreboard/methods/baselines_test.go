// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const ms = 1_000_000

func ranksOf(n int) []model.Rank {
	out := make([]model.Rank, n)
	for i := range out {
		out[i] = model.Rank{Rank: int64(i), JobID: "job", Incarnation: "life", WorldSize: model.Some(int64(n))}
	}
	return out
}

func kernel(name string, start, took int64) model.Op {
	return model.Op{Kind: model.KindCompute, Name: name, Start: start, End: start + took, Stream: model.Some(int64(7))}
}

func reduce(name string, seq, start, end int64) model.Op {
	return model.Op{
		Kind: model.KindCollective, Name: name, Start: start, End: end, Stream: model.Some(int64(9)),
		Comm:       model.Comm{ID: "world"},
		Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(seq), SeqScope: model.ScopeComm},
	}
}

func step(start, end int64) model.Op {
	return model.Op{Kind: model.KindStep, Name: "step", Start: start, End: end}
}

func ranksNamed(all []Accusation) (out []int64) {
	for _, a := range all {
		out = append(out, a.Ranks...)
	}
	return out
}

// Three ranks, two iterations. ncclDevKernel_A starts at 10, 11, 30 ms and ends at 40 on
// all: durations 30, 29, 10, of sample deviation sqrt((49+36+169)/2) = 11.27 ms.
// ncclDevKernel_B differs by 1 ms only, and its latest is rank 0. So A is looked at, and
// the last two to start it are 2 and 1.
func TestLatestStartVotesForTheLastOfTheMostUneven(t *testing.T) {
	m := newLatestStart()
	m.Begin(ranksOf(3))
	for n := range int64(2) {
		for r, starts := range [][2]int64{{10, 52}, {11, 51}, {30, 51}} {
			m.Add(r, []model.Op{
				reduce("ncclDevKernel_A", 2*n, starts[0]*ms, 40*ms),
				reduce("ncclDevKernel_B", 2*n+1, starts[1]*ms, 60*ms),
				step(0, 100*ms),
			})
		}
		m.Close(n)
	}
	t1 := m.(*latestStart).widest()
	assert.InDelta(t, 0.01127, t1.mean(), 1e-5)
	assert.Equal(t, []int64{2}, ranksNamed(m.Named()))
	assert.Equal(t, []int64{2, 1}, ranksNamed(m.End()))
	assert.InDelta(t, 2, m.End()[0].Score, 1e-3, "one vote in each iteration")
}

// Of an operation that a rank has twice in an iteration the last counts, and one below
// 1 % of the iteration does not count at all.
func TestLatestStartTakesTheLastAndLeavesOutTheShort(t *testing.T) {
	m := newLatestStart()
	m.Begin(ranksOf(2))
	m.Add(0, []model.Op{reduce("A", 0, 1*ms, 9*ms), reduce("A", 1, 20*ms, 22*ms), reduce("tiny", 2, 30*ms, 30*ms+ms/2), step(0, 100*ms)})
	m.Add(1, []model.Op{reduce("A", 0, 8*ms, 9*ms), reduce("A", 1, 15*ms, 22*ms), reduce("tiny", 2, 31*ms, 31*ms+1), step(0, 100*ms)})
	m.Close(0)
	assert.Equal(t, []int64{0}, ranksNamed(m.Named()))
	assert.Equal(t, 0, m.(*latestStart).tally[laneName{9, "tiny"}].iterations)
}

func TestLatestStartNamesSomebodyOnAnEvenJob(t *testing.T) {
	m := newLatestStart()
	m.Begin(ranksOf(4))
	for r := range 4 {
		m.Add(r, []model.Op{reduce("A", 0, 10*ms, 20*ms), step(0, 100*ms)})
	}
	m.Close(0)
	assert.Len(t, m.Named(), 1)
}

// Dixon's ratios by hand, of the smallest against the rest.
func TestDixonRatios(t *testing.T) {
	assert.InDelta(t, 4.0/5, dixon([]float64{0, 4, 5}), 1e-12, "r10: (x2-x1)/(xn-x1)")
	assert.InDelta(t, 4.0/6, dixon([]float64{0, 4, 5, 5, 5, 5, 6, 100}), 1e-12, "r11: (x2-x1)/(x[n-1]-x1)")
	assert.InDelta(t, 5.0/8, dixon([]float64{0, 4, 5, 5, 5, 5, 5, 5, 5, 8, 100}), 1e-12, "r21: (x3-x1)/(x[n-1]-x1)")
	assert.InDelta(t, 5.0/7, dixon([]float64{0, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 7, 8, 100}), 1e-12, "r22: (x3-x1)/(x[n-2]-x1)")
	assert.Zero(t, dixon([]float64{3, 3, 3}))
}

// Critical values for 0.5 % on one side, as Dixon (1951) printed them.
func TestDixonLimitsAreThePublishedOnes(t *testing.T) {
	for n, want := range map[int]float64{3: 0.994, 5: 0.821, 7: 0.680, 8: 0.725, 10: 0.639, 12: 0.675, 20: 0.562, 30: 0.483} {
		assert.InDelta(t, want, dixonLimit(n), 0.012, "n = %d", n)
	}
}

func TestLowOutlier(t *testing.T) {
	assert.Equal(t, -1, lowOutlier([]float64{1, 10}), "two values show nothing")
	assert.Equal(t, 3, lowOutlier([]float64{30, 30.1, 30.2, 10, 30, 30.3, 30.1, 30.2}))
	assert.Equal(t, -1, lowOutlier([]float64{30, 31, 32, 29, 33, 28, 30, 34}))
	big := make([]float64, 200)
	for i := range big {
		big[i] = 30 + float64(i%5)
	}
	assert.Equal(t, -1, lowOutlier(big))
	big[77] = 10
	assert.Equal(t, 77, lowOutlier(big), "more than three deviations low")
}

// Rank 3 is always last and so has the shortest collectives; two votes are too few to
// name it, three are not.
func TestShortestCollectiveNamesTheLast(t *testing.T) {
	m := newShortestCollective()
	m.Begin(ranksOf(8))
	for n := range int64(3) {
		for r := range int64(8) {
			start := 10*ms + r*1000
			if r == 3 {
				start = 30 * ms
			}
			m.Add(int(r), []model.Op{reduce("A", n, start, 40*ms)})
		}
		m.Close(n)
		if n == 1 {
			assert.Empty(t, m.Named())
			require.Len(t, m.End(), 1)
			assert.False(t, m.End()[0].Decided)
		}
	}
	assert.Equal(t, []int64{3}, ranksNamed(m.Named()))
}

func TestShortestCollectiveNamesNobodyWhereVotesAreSpread(t *testing.T) {
	m := newShortestCollective()
	m.Begin(ranksOf(8))
	for n := range int64(8) {
		for r := range int64(8) {
			start := 10*ms + r*1000
			if r == n {
				start = 30 * ms
			}
			m.Add(int(r), []model.Op{reduce("A", n, start, 40*ms)})
		}
		m.Close(n)
	}
	assert.Empty(t, m.Named())
	assert.Len(t, m.End(), maxSuspects)
}

// Rank 1's matmul takes 20 ms where the fastest median is 10, its copy is as fast:
// score = (20*10/20 + 5*5/5) / (20+5) = 15/25 = 0.6.
func TestMedianRatioScore(t *testing.T) {
	m := newMedianRatio()
	m.Begin(ranksOf(3))
	for n := range int64(reportSteps) {
		for r, took := range []int64{10, 20, 11} {
			m.Add(r, []model.Op{kernel("matmul", 0, took*ms), kernel("copy", 30*ms, 5*ms), reduce("nccl", n, 40*ms, (60-took)*ms)})
		}
		m.Close(n)
	}
	r := m.(*medianRatio)
	assert.InDelta(t, 0.4, r.worst[1], 1e-6)
	// (11*10/11 + 5) / 16 = 0.9375: above the threshold.
	assert.InDelta(t, 1-0.9375, r.worst[2], 1e-6)
	assert.Equal(t, []int64{1}, ranksNamed(m.Named()))
	assert.Equal(t, []int64{1, 2}, ranksNamed(m.End()))
}

func TestMedianRatioIgnoresCommunicationAndOtherNames(t *testing.T) {
	m := newMedianRatio()
	m.Begin(ranksOf(2))
	for n := range int64(reportSteps) {
		m.Add(0, []model.Op{kernel("matmul_a", 0, 10*ms), reduce("nccl", n, 40*ms, 41*ms)})
		m.Add(1, []model.Op{kernel("matmul_b", 0, 20*ms), reduce("nccl", n, 40*ms, 60*ms)})
		m.Close(n)
	}
	assert.Empty(t, m.End(), "no kernel of one is also the other's")
}

func TestSelect(t *testing.T) {
	all, err := Select("")
	require.NoError(t, err)
	assert.Len(t, all, len(All))
	some, err := Select(LatestStart + "," + Lockstep)
	require.NoError(t, err)
	assert.Equal(t, LatestStart, some[0].Name)
	_, err = Select("oracle")
	assert.ErrorContains(t, err, "oracle")
}

func TestStrongest(t *testing.T) {
	assert.Equal(t, []int{2, 0, 3}, strongest([]float64{3, 0, 5, 3, 1}, 3))
	assert.Empty(t, strongest([]float64{0, 0}, 2))
}
