// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// judge brings the job's findings up to date with what has come.
func (j *job) judge() {
	if j.judged || len(j.window) == 0 {
		return
	}
	j.judged, j.unjudged = true, 0
	if !j.early() {
		j.looks = min(j.looks+1, maxLooks)
	}
	suspects := j.suspects()
	for _, c := range suspects {
		j.measure(c)
	}
	j.order(suspects)
	j.settle(j.gated(suspects))
	j.walks.release()
}

// minTrials is the fewest steps that are told apart from chance by comparing steps.
// Below it single meetings are counted, which within a step are not independent; the
// confidence says so.
const minTrials = 3

// early reports whether there are too few steps yet, and more may come: nobody is
// named then, so that such a look raises no alarm.
func (j *job) early() bool { return j.steps < minTrials && !j.e.final && !j.quiet }

// maxSuspects bounds how many conclusions are looked into: each costs a few replays of its
// steps, alone, beside others, and as if who was not seen had been late.
const maxSuspects = 16

// suspects returns whom the judged steps accuse, and notes whom they do not.
func (j *job) suspects() []*candidate {
	j.abstain, j.priced = nil, false
	if j.steps < minTrials && j.e.cfg.Method != evidence.MethodKAIR {
		return j.fewSteps()
	}
	return j.looked(j.conclusions())
}

// looked returns the conclusions to look into.
func (j *job) looked(told []judge.Conclusion) (out []*candidate) {
	// The dearest by their own reckoning, where there are too many.
	slices.SortStableFunc(told, func(a, b judge.Conclusion) int { return cmp.Compare(b.Mean, a.Mean) })
	if over := len(told) - maxSuspects; over > 0 {
		j.e.stats.ConclusionsDropped += int64(over)
		told = told[:maxSuspects]
	}
	for i := range told {
		out = append(out, j.candidate(told[i]))
	}
	return out
}

func (j *job) conclusions() []judge.Conclusion {
	if j.e.cfg.Method == evidence.MethodKAIR {
		return j.kairNamed()
	}
	told := j.judgement.Judge()
	if a := told.Abstained; a != nil && a.Rank >= 0 {
		j.abstain = &Abstention{
			Rank: a.Rank, Ranks: a.Ranks, Link: a.Link, Class: a.Class, Gate: a.Gate, Got: a.Got, Want: a.Want, FalseAlarm: a.Chance,
		}
		if step := stretch(j.window).stepSeconds(); len(a.Ranks) > 1 {
			j.abstain.CostShare = a.Seconds / step
		}
	}
	return append(told.Conclusions, j.darkSuspects(&told)...)
}

// gated returns the candidates that pass all gates, most costly first, and notes the
// strongest that does not.
func (j *job) gated(suspects []*candidate) []*candidate {
	slices.SortStableFunc(suspects, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.turn(), b.turn()), cmp.Compare(b.cost, a.cost))
	})
	if j.e.cfg.Method == evidence.MethodKAIR {
		return distinct(suspects)
	}
	paced(suspects)
	var links, named, poor []*candidate
	for _, c := range suspects {
		if c.place.sort == placeLink {
			links = append(links, c)
		}
	}
	pass := func(of []*candidate) {
		for _, c := range of {
			j.beyond(c, named)
			switch f := c.failed(links, named, &j.e.cfg); {
			case f.gate == "":
				named = append(named, c)
			case f.gate == gateCost && c.place.accuses() && c.place.sort != placeLink:
				poor = append(poor, c)
			default:
				j.decline(c, f)
			}
		}
		named, poor = j.together(named, poor)
	}
	nobodys := slices.IndexFunc(suspects, func(c *candidate) bool { return !c.place.accuses() })
	if nobodys < 0 {
		nobodys = len(suspects)
	}
	pass(suspects[:nobodys])
	pass(suspects[nobodys:])
	named = j.saving(named)
	for _, c := range poor {
		j.decline(c, c.failed(nil, nil, &j.e.cfg))
	}
	slices.SortStableFunc(named, func(a, b *candidate) int { return cmp.Compare(b.worth(), a.worth()) })
	return distinct(named)
}

// turn orders candidates: a link is held against the rank that it belongs to, and what is
// nobody's fault against all who are at fault.
func (c *candidate) turn() int {
	switch {
	case !c.place.accuses():
		return 2
	case c.place.sort == placeLink:
		return 1
	}
	return 0
}

// together names those of the poor that cost little alone, but not once all others are
// mended: ranks that are equally slow hide each other's cost.
func (j *job) together(named, poor []*candidate) (rich, left []*candidate) {
	if len(named)+len(poor) < 2 {
		return named, poor
	}
	all := slices.Concat(named, poor)
	for _, c := range poor {
		j.besides(c, all)
		if f := c.failed(nil, nil, &j.e.cfg); f.gate == "" || f.gate == gateCost && j.carries(c, all) {
			named = append(named, c)
		} else {
			left = append(left, c)
		}
	}
	return named, left
}

// noSaving is the share of the step below which a report prints 0.0 %.
const noSaving = 0.0005

// saving returns the candidates whose fix saves something, alone or together with the
// others. Each removal changes what the rest saves together.
func (j *job) saving(named []*candidate) []*candidate {
	for i := 0; i < len(named); {
		c := named[i]
		if got := j.saves(c, named); got < noSaving {
			j.decline(c, failure{gateCost, got, max(noSaving, j.e.cfg.MinCostShare)})
			named, i = slices.Delete(named, i, i+1), 0
			continue
		}
		i++
	}
	return named
}

// saves returns the share of the step that the candidate's fix saves at most: alone, or
// together with the named ones. Work shared out evenly would hide what a slow rank costs, so
// a fault is looked at beside faults only.
func (j *job) saves(c *candidate, named []*candidate) float64 {
	if alone := c.share(max(c.cost, c.most)); alone >= noSaving {
		return alone
	}
	j.besides(c, slices.DeleteFunc(slices.Clone(named), func(o *candidate) bool {
		return c.place.accuses() && !o.place.accuses()
	}))
	return c.share(c.beside)
}

// order raises the probability that chance names a candidate to what the order of ranks
// says of it.
func (j *job) order(suspects []*candidate) {
	among := map[role]int{}
	for _, c := range suspects {
		if c.place.sort == placeRank {
			among[c.in.role(c.Rank)]++
		}
	}
	for _, c := range suspects {
		if c.orderly() {
			m := 1
			if c.place.sort == placeRank {
				m = among[c.in.role(c.Rank)]
			}
			c.Chance = max(c.Chance, j.byOrders(c, m))
			c.Confidence = min(c.Confidence, 1-c.Chance)
		}
	}
}

// distinct keeps the first candidate of each place: a place has one finding.
func distinct(named []*candidate) []*candidate {
	seen := map[string]bool{}
	return slices.DeleteFunc(named, func(c *candidate) bool {
		key := c.place.key()
		dup := seen[key]
		seen[key] = true
		return dup
	})
}

// decline notes the strongest rank that is not named.
func (j *job) decline(c *candidate, f failure) {
	if j.priced || c.Rank < 0 {
		return
	}
	j.priced = true
	j.abstain = &Abstention{
		Rank: c.Rank, Link: c.place.sort == placeLink, Class: c.Class, Gate: f.gate, Got: f.got, Want: f.want,
		WaitShare: c.waitShare, CostShare: c.share(c.cost), FalseAlarm: c.Chance, Dear: c.share(c.cost) >= j.e.cfg.MinCostShare,
	}
}

// refused counts what the judge left out of what it was told.
func (j *job) refused() int64 {
	s := j.judgement.Stats()
	return int64(s.RowsRefused + s.CellsRefused + s.PlacesRefused + s.LinksRefused + s.StepsRefused)
}

// abstained returns the strongest candidate that was not named, with what it costs.
func (j *job) abstained() *Abstention {
	a := j.abstain
	if a == nil || j.priced || len(j.window) == 0 {
		return a
	}
	if a.Rank >= 0 && !a.Link {
		c := j.candidate(judge.Conclusion{Class: model.ClassCompute, Rank: a.Rank, Ranks: a.Ranks, Stage: -1, Peer: -1})
		j.measure(c)
		a.WaitShare = c.waitShare
		// What ranks alike cost together is by how much they are slower.
		if len(a.Ranks) == 0 {
			a.CostShare = c.share(c.cost)
		}
		a.Dear = a.CostShare >= j.e.cfg.MinCostShare
	}
	j.priced = true
	return a
}

// maxLooks bounds the factor by which repeated judgement raises the probability of
// a false alarm: most judgements share most of their steps.
const maxLooks = 6

// StepsNeeded is in how many steps in a row one of so many ranks must stand out until
// it is named, however often it was judged meanwhile.
func (c *Config) StepsNeeded(ranks int) int64 {
	n := int64(minTrials)
	for ranks > 1 && float64(ranks*maxLooks)*math.Pow(float64(ranks), -float64(n)) > c.MaxFalseAlarm {
		n++
	}
	return n
}
