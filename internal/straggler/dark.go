// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// Where only communication was recorded, a rank that makes the others wait shows all of
// its own time, and they hide theirs in the waits. Its own time says little of what is
// usual then, and a judge that measures by it is told too small a share. Such ranks are
// asked here by their peers' own time, where the judge found nobody.

// minDarkShare is the excess over the peers' own time that is asked there: the 10 % of
// Greyhound and MegaScan, since what the peers hide makes their own time too short.
const minDarkShare = 0.10

// minDarkSteps is in how many steps it is measured whether they are alike: before that a
// rank that leads in each of them may be warm for a while, and no other test is asked.
const minDarkSteps = judge.MemoryBlock

// darkSuspects returns ranks of which only communication was recorded and that lead by
// their excess in so many steps that it is no chance.
func (j *job) darkSuspects(told *judge.Judgement) (out []judge.Conclusion) {
	if slices.ContainsFunc(told.Conclusions, func(c judge.Conclusion) bool { return c.Class != model.ClassLink }) {
		return nil
	}
	in := stretch(j.window)
	if len(in) < minDarkSteps {
		return nil
	}
	for _, rank := range in.darkLeaders() {
		if c := j.darkConclusion(in, rank, told.Memory); c.Share*c.typicality() >= minDarkShare && c.Steadiness >= minSteadiness {
			out = append(out, c.Conclusion)
		}
	}
	return out
}

// darkLeaders returns the dark ranks with the largest excess.
func (in stretch) darkLeaders() []int64 {
	excess := map[int64]int64{}
	for _, rec := range in {
		for i := range rec.ranks {
			if r := &rec.ranks[i]; r.dark {
				excess[r.rank.Rank] += r.excess.total()
			}
		}
	}
	leaders := sorted(excess)
	leaders = slices.DeleteFunc(leaders, func(r int64) bool { return excess[r] <= 0 })
	slices.SortStableFunc(leaders, func(a, b int64) int { return cmp.Compare(excess[b], excess[a]) })
	return leaders[:min(len(leaders), maxFew)]
}

func (j *job) darkConclusion(in stretch, rank int64, memory float64) *candidate {
	c := j.candidate(judge.Conclusion{
		Rank: rank, Stage: -1, Peer: -1, First: in[0].step, Last: in[len(in)-1].step, Rung: judge.RungSegment,
		Memory: memory,
	})
	var samples []float64
	for _, rec := range c.in {
		if i, ok := rec.index[rank]; ok {
			samples = append(samples, float64(rec.ranks[i].excess.total())/1e9)
		}
	}
	c.First, c.Last, c.Steps = c.in[0].step, c.in[len(c.in)-1].step, len(samples)
	c.Class = model.ClassCompute
	excess, _ := c.in.excessOf(rank)
	if excess.idle > excess.busy() {
		c.Class = model.ClassHost
	}
	c.Mean = float64(excess.total()) / 1e9
	c.Share = c.Mean * 1e9 / c.in.peersOwn(rank)
	if len(samples) > 0 {
		c.Excess, c.Steadiness = stats.MedianOf(samples), steadiness(samples, judge.Worth(len(samples), memory))
	}
	c.Chance = j.byOrder(c, 1)
	c.Confidence = min(judge.RungConfidence(c.Rung), 1-c.Chance)
	return c
}
