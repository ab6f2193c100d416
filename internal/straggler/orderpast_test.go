// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/sim/training"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// Of ten things three are drawn: the chance that two or three of them are the largest three
// is (C(3,2) C(7,1) + 1) / C(10,3).
func TestHypergeometricTail(t *testing.T) {
	assert.InDelta(t, 22.0/120, hypergeometricTail(2, 10, 3), 1e-12)
	assert.InDelta(t, 1.0/120, hypergeometricTail(3, 10, 3), 1e-12)
	assert.InDelta(t, 1, hypergeometricTail(1, 3, 3), 1e-12)
	for _, of := range [][3]int{{0, 10, 3}, {1, 2, 3}, {0, 0, 0}} {
		assert.InDelta(t, 1, hypergeometricTail(of[0], of[1], of[2]), 0)
	}
}

// A pair of ranks over 40 steps, of which the first took longer in those of the episode.
func pairWith(excess func(step int) int64, from, to int, memory float64) (*job, *candidate) {
	j := &job{looks: 1}
	for n := range 40 {
		rec := &record{step: int64(n), index: map[int64]int{0: 0, 1: 1}, ranks: make([]rankRecord, 2)}
		for r := range rec.ranks {
			rec.ranks[r].weighed = true
		}
		rec.ranks[0].excess.compute = excess(n)
		j.window = append(j.window, rec)
	}
	c := &candidate{place: place{sort: placeRank}, Conclusion: judge.Conclusion{Memory: memory}}
	c.in = stretch(j.window)[from:to]
	return j, c
}

func TestOwnStepsTellAnEpisodeOfAPair(t *testing.T) {
	episode := func(n int) int64 {
		if n >= 10 && n < 18 {
			return 1000
		}
		return int64(n%7) - 4
	}
	j, c := pairWith(episode, 10, 18, 0)
	assert.Greater(t, j.byOrder(c, 1), 0.01, "one of two leads in eight steps")
	got, asked := j.byPast(c)
	require.True(t, asked)
	assert.InEpsilon(t, 2*820/76904685.0, got, 1e-6, "ranks, stretches, and C(40, 8)")
	assert.Less(t, j.byOrders(c, 1), 0.01)

	j, c = pairWith(func(n int) int64 { return int64(n*7919%40) - 20 }, 10, 18, 0)
	got, _ = j.byPast(c)
	assert.InDelta(t, 1, got, 0, "any steps")
	j, c = pairWith(func(int) int64 { return 5 }, 10, 18, 0)
	got, _ = j.byPast(c)
	assert.InDelta(t, 1, got, 0, "all alike")
	j, c = pairWith(episode, 10, 18, 0.9)
	got, _ = j.byPast(c)
	assert.Greater(t, got, 0.01, "noise that lasts has such stretches")
	j, c = pairWith(episode, 10, 31, 0)
	_, asked = j.byPast(c)
	assert.False(t, asked, "little is known of what it did before")
}

// Two replicas of a pipeline: a data loader that is slow for twelve steps.
func TestEpisodeInAPairIsTold(t *testing.T) {
	for seed := uint64(1); seed <= uint64(tier.N(t, 2, 4)); seed++ {
		spec := training.Spec{
			Name: "pipeline", Layout: training.Layout{DP: 2, PP: 4, Microbatches: 8, Layers: 2, Scale: 0.25, PerNode: 2},
			Noise: training.DefaultNoise(), Steps: 48,
			Faults: []training.Fault{{Family: training.HostDataLoader, Severity: 0.05, From: 12, To: 24}},
		}
		job, err := training.New(spec, seed)
		require.NoError(t, err)
		ranks, _ := accused(t, spec, seed)
		assert.Equal(t, job.Truth().Culprits[0].Ranks, ranks, "seed %d", seed)
	}
}
