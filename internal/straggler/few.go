// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// A recording of one or two steps has no steps to compare. There single meetings are
// counted: in how many of them a rank was the last. Only idleness of the host accuses
// there; a rank that computes longer may have had more to do.

// fewSteps returns the ranks to examine, in order of the wait caused.
func (j *job) fewSteps() []*candidate {
	caused, excess := map[int64]int64{}, map[int64]int64{}
	for _, rec := range j.window {
		for i := range rec.ranks {
			r := &rec.ranks[i]
			caused[r.rank.Rank] += r.caused
			excess[r.rank.Rank] += r.excess.total()
		}
	}
	var out []*candidate
	for _, rank := range pick(caused, excess) {
		out = append(out, j.fewCandidate(rank, len(caused)))
	}
	return out
}

// maxFew bounds how many ranks are examined: those that cause most wait, and as many
// of those with the largest excess.
const maxFew = 8

// pick returns the ranks that lead in wait caused or in excess, of those that caused any.
func pick(caused, excess map[int64]int64) (out []int64) {
	var all []int64
	for r, ns := range caused {
		if ns > 0 {
			all = append(all, r)
		}
	}
	by := func(of map[int64]int64) func(a, b int64) int {
		return func(a, b int64) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) }
	}
	slices.SortFunc(all, by(excess))
	leads := slices.Clone(all[:min(len(all), maxFew)])
	slices.SortFunc(all, by(caused))
	for i, r := range all {
		if i < maxFew || slices.Contains(leads, r) {
			out = append(out, r)
		}
	}
	return out
}

// fewCandidate judges a rank by single meetings.
func (j *job) fewCandidate(rank int64, ranks int) *candidate {
	in := stretch(j.window)
	c := j.candidate(judge.Conclusion{
		Rank: rank, Stage: -1, Peer: -1, First: in[0].step, Last: in[len(in)-1].step, Steps: len(in), Rung: judge.RungSegment,
	})
	c.few, c.early = true, j.early()
	var samples []float64
	top, trials, oneOf := 0, 0, 0.0
	for _, rec := range in {
		for _, mr := range rec.meets {
			k := mr.find(rank)
			if k < 0 {
				continue
			}
			if mr.waited > 0 {
				trials++
				oneOf += 1 / float64(len(mr.members))
				if mr.last == k {
					top++
				}
			}
			if mr.members[k].known {
				samples = append(samples, float64(mr.members[k].excess.total()))
			}
		}
	}
	c.Chance = min(1, float64(ranks)*stats.BinomialTailSum(top, trials, oneOf/float64(max(1, trials))))
	c.Confidence = 1 - c.Chance
	c.Steadiness = steadiness(samples, float64(len(samples)))
	excess, _ := in.excessOf(rank)
	c.Mean = float64(excess.total()) / 1e9
	c.Excess, c.Share = c.Mean, c.Mean*1e9/in.peersOwn(rank)
	c.Class = model.ClassCompute
	if excess.idle > excess.busy() {
		c.Class = model.ClassHost
	}
	return c
}

// minSteadiness is how many standard errors the median excess must stand above zero.
const minSteadiness = 3

// failedFew asks the gates that the judge asks of more steps.
func (c *candidate) failedFew(cfg *Config) failure {
	switch {
	case c.early || c.Class != model.ClassHost:
		return failure{gateFewSteps, float64(c.steps), minTrials}
	case c.Chance > cfg.MaxFalseAlarm:
		return failure{gateFalseAlarm, c.Chance, cfg.MaxFalseAlarm}
	case c.Share < minFewShare:
		return failure{gateExcess, c.Share, minFewShare}
	case c.Steadiness < minSteadiness:
		return failure{gateSteadiness, c.Steadiness, minSteadiness}
	}
	return failure{}
}

// minFewShare is the excess over the peers' own time that single meetings must show:
// the 10 % of Greyhound and MegaScan, as little is averaged out.
const minFewShare = 0.10
