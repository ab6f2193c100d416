// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// Rank 0 of four leads in each of 12 steps. Where the noise forgets, that is one chance in
// 4^12; where each step is like the one before, they are worth less than two: one in four.
func TestWhoLeadsInStepsThatAreAlike(t *testing.T) {
	var in stretch
	for range 12 {
		rec := &record{index: map[int64]int{}}
		for r := range int64(4) {
			rec.index[r] = int(r)
			rec.ranks = append(rec.ranks, rankRecord{weighed: true, excess: own{compute: 10 - r}})
		}
		in = append(in, rec)
	}
	leads := func(memory float64) float64 {
		return in.leads(&candidate{place: place{sort: placeRank}, Conclusion: judge.Conclusion{Memory: memory}}, 1)
	}
	assert.InEpsilon(t, math.Pow(0.25, 12), leads(0), 1e-9)
	assert.InEpsilon(t, 0.25, leads(0.9), 1e-9)
}

// A share of a step in which the rank led is no step: 11 of 12 led are worth 1.3 and 0.1 where
// noise lasts, hence one led and one not.
func TestShareOfAStepIsNotLed(t *testing.T) {
	var in stretch
	for n := range int64(12) {
		rec := &record{index: map[int64]int{}}
		for r := range int64(4) {
			rec.index[r] = int(r)
			rec.ranks = append(rec.ranks, rankRecord{weighed: true, excess: own{compute: 10 - r}})
		}
		if n == 5 {
			rec.ranks[1].excess.compute = 20
		}
		in = append(in, rec)
	}
	c := &candidate{place: place{sort: placeRank}, Conclusion: judge.Conclusion{Memory: 0.9}}
	assert.InEpsilon(t, 1-0.75*0.75, in.leads(c, 1), 1e-9)
}

// Of a rank whose launches are unknown all idleness is compared, whatever it waited for: another
// is not behind it for that.
func TestIdlenessOfUnknownLaunchesLeadsNobody(t *testing.T) {
	for unlaunched, want := range map[bool]int{true: 0, false: 1} {
		rec := &record{ranks: []rankRecord{
			{weighed: true, excess: own{compute: 10}},
			{weighed: true, excess: own{compute: 1, idle: 100}, unlaunched: unlaunched},
			{weighed: true, excess: own{compute: 2}},
		}}
		at, peers := rec.position(0, byExcess)
		assert.Equal(t, want, at, "launches unknown: %t", unlaunched)
		assert.Equal(t, 3, peers)
	}
}
