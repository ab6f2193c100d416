// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestQuantile(t *testing.T) {
	assert.Zero(t, quantile(nil, 0.5))
	assert.InDelta(t, 3.0, quantile([]float64{5, 1, 3}, 0.5), 0)
	assert.InDelta(t, 5.0, quantile([]float64{5, 1, 3}, 1), 0)
}

// The interval of a known mean covers it in about 95 of 100 draws.
func TestIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	covered := 0
	const draws = 60
	for range draws {
		values := make([]float64, 30)
		for i := range values {
			values[i] = 2 + rng.NormFloat64()
		}
		if low, high := interval(values, rng); low <= 2 && 2 <= high {
			covered++
		}
	}
	assert.GreaterOrEqual(t, covered, draws*85/100)
	assert.Less(t, covered, draws+1)
}

func TestOverlaps(t *testing.T) {
	reads := []span{{100, 110}}
	assert.True(t, overlaps(reads, stepTime{start: 90, took: 11}))
	assert.True(t, overlaps(reads, stepTime{start: 104, took: 2}))
	assert.False(t, overlaps(reads, stepTime{start: 90, took: 10}))
	assert.False(t, overlaps(reads, stepTime{start: 110, took: 10}))
}

func TestOutcomes(t *testing.T) {
	two, three := int64(2), int64(3)
	gc := expectation{"gc", "host", "gc", "garbage_collection"}
	of := func(rank *int64, class, cause string) said {
		return said{Finding: "straggler", Class: class, Cause: cause, Rank: rank}
	}
	for name, tc := range map[string]struct {
		e     expectation
		lines []said
		want  outcome
		notes int
	}{
		"right":             {gc, []said{of(&two, "host", "gc"), {Steps: 9}}, named, 0},
		"no cause":          {gc, []said{of(&two, "host", "unknown")}, causeless, 0},
		"other class":       {gc, []said{of(&two, "compute", "unknown")}, misread, 1},
		"other rank":        {gc, []said{of(&three, "host", "gc")}, wronged, 1},
		"other rank behind": {gc, []said{of(&two, "host", "gc"), of(&three, "host", "gc")}, named, 1},
		"no rank":           {gc, []said{of(nil, "host", "gc")}, wronged, 1},
		"nothing":           {gc, []said{{Steps: 9}}, silent, 0},
		"nothing, rightly":  {expectation{fault: "none"}, []said{{Steps: 9}}, silent, 0},
		"a false alarm":     {expectation{fault: "none"}, []said{of(&two, "host", "gc")}, wronged, 1},
	} {
		assert.Equal(t, tc.want, outcomeOf(&tc.e, 2, tc.lines), name)
		assert.Len(t, surprises(&tc.e, "kernels", 2, tc.lines), tc.notes, name)
	}
	assert.Equal(t, "2 right, 1 wrong", counted(map[outcome]int{wronged: 1, named: 2}))
}

func TestTally(t *testing.T) {
	rank, last, n := int64(2), int64(6), 1
	right := said{Finding: "straggler", Class: "host", Cause: "compile", Op: "compile", Rank: &rank, StepLast: &last, AtStep: 8}
	end := said{Steps: 40, Findings: &n}
	e := expectation{"compile", "host", "compile", "compile"}
	for name, tc := range map[string]struct {
		lines []said
		rank  int64
		right int
	}{
		"right":         {[]said{right, end}, 2, 1},
		"other rank":    {[]said{right, end}, 1, 0},
		"nothing":       {[]said{end}, 2, 0},
		"another after": {[]said{right, {Finding: "straggler", Class: "compute", Rank: &rank}, end}, 2, 1},
		"late":          {[]said{{Finding: "straggler", Class: "host", Cause: "compile", Op: "compile", Rank: &rank, StepLast: &last, AtStep: 11}, end}, 2, 0},
		"elsewhere":     {[]said{{Finding: "straggler", Class: "host", Cause: "compile", Op: "forward", Rank: &rank, StepLast: &last, AtStep: 8}, end}, 2, 0},
	} {
		var tl tally
		tl.add(e, tc.rank, tc.lines)
		assert.Equal(t, tc.right, tl.right, name)
		assert.Len(t, tl.wrong, 1-tc.right, name)
		assert.Equal(t, name == "another after", len(tl.also) == 1, name)
	}
}
