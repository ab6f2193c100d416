// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// candidate is a conclusion under examination: what it costs, and whether it is told.
// Seconds are per step.
type candidate struct {
	judge.Conclusion
	place place
	rank  *model.Rank // of Rank, nil where there is none
	twin  bool        // two processes say that they are Rank
	few   bool        // from single meetings of few steps
	early bool        // more steps may come

	in    stretch // where it holds; what follows is of it
	steps int     // in which something of it was seen

	caused    float64
	perhaps   float64 // of it, what may be owed to who was not seen
	waitShare float64 // of all wait, 0 to 1
	excess    own     // ns per step, of the segments of its ranks over their peers'
	before    float64 // share of the wait caused that precedes the recording

	cost   float64 // alone
	beside float64 // once all others are mended, where alone it is too little
	// Where ranks that were not seen may have been later, or hide whom it held up: what it
	// costs at least and at most, and for how long it may have waited for them itself.
	least        *float64 // nil where that is what it costs
	most, stayed float64
	costBy       string
}

// placeSort tells kinds of places apart.
type placeSort string

const (
	placeRank  placeSort = "rank"
	placeHost  placeSort = "host"
	placeStage placeSort = "stage"
	placeLink  placeSort = "link"
	placeGroup placeSort = "group" // links of a communicator
	placeWork  placeSort = "work"  // amounts of work: nobody
	placeAll   placeSort = "all"   // pauses that rotate: nobody
	placeJob   placeSort = "job"   // a change of the whole job: nobody
)

// place is the coarse place of a finding: what its identity rests on.
type place struct {
	sort placeSort
	name string
}

func (p place) key() string {
	if p.name == "" {
		return string(p.sort)
	}
	return string(p.sort) + "/" + p.name
}

// placeSortOf returns the kind of place that a key is of.
func placeSortOf(key string) placeSort {
	sort, _, _ := strings.Cut(key, "/")
	return placeSort(sort)
}

// accuses reports whether somebody is at fault.
func (p place) accuses() bool {
	return p.sort == placeRank || p.sort == placeHost || p.sort == placeLink || p.sort == placeGroup
}

func placeOf(c *judge.Conclusion) place {
	switch c.Class {
	case model.ClassNode:
		return place{placeHost, c.Host}
	case model.ClassStageImbalance:
		return place{placeStage, strconv.Itoa(int(c.Stage))}
	case model.ClassWorkImbalance:
		return place{sort: placeWork}
	case model.ClassJitter:
		return place{sort: placeAll}
	case model.ClassJobWide:
		return place{sort: placeJob}
	case model.ClassLink:
		switch rank := strconv.FormatInt(c.Rank, 10); {
		case c.Rank < 0:
			return place{placeGroup, groupKey(c.Comm, c.Digest)}
		case c.Side == judge.SideReceive:
			return place{placeLink, "to/" + rank}
		default:
			return place{placeLink, rank}
		}
	}
	return place{placeRank, strconv.FormatInt(c.Rank, 10)}
}

// groupKey tells groups apart: those without a common member may bear one name.
func groupKey(comm, digest string) string {
	if digest == "" {
		return comm
	}
	return comm + "/" + digest
}

// candidate takes up a conclusion.
func (j *job) candidate(told judge.Conclusion) *candidate {
	c := &candidate{Conclusion: told, place: placeOf(&told)}
	if told.Rank >= 0 {
		if p := j.ranks[told.Rank]; p != nil {
			c.rank = &p.rank
		}
		c.twin = j.faults.twins[told.Rank] != nil
		if len(c.Ranks) == 0 {
			c.Ranks = []int64{told.Rank}
		}
	}
	c.in = stretch(j.window).between(told.First, told.Last)
	switch {
	case c.Intermittent: // the typical step shows nothing of it
	case c.place.sort == placeRank:
		c.in = c.in.around(told.Rank, beyondPeers)
	case c.place.sort == placeLink && c.in.wired(told.Rank):
		c.in = c.in.around(told.Rank, func(r *rankRecord) int64 { return r.wire })
	}
	return c
}

// beyondPeers is by how much a rank took longer than its peers, ns: as the judge finds it.
func beyondPeers(r *rankRecord) int64 {
	if r.judged {
		return int64(float64(r.beyond) * 1e9)
	}
	return r.excess.total()
}

// around returns the part of the stretch in which the rank's excess is more than half of
// its typical one: the steps before an episode began, or after it ended, must not dilute
// what it costs.
func (in stretch) around(rank int64, of func(*rankRecord) int64) stretch {
	excess := make([]float64, len(in))
	for n, rec := range in {
		if i, ok := rec.index[rank]; ok {
			excess[n] = float64(of(&rec.ranks[i]))
		}
	}
	typical := stats.MedianOf(excess)
	if typical <= 0 {
		return in
	}
	best, from, to := 0.0, 0, len(in)
	sum, begin := 0.0, 0
	for n, x := range excess {
		if sum <= 0 {
			sum, begin = 0, n
		}
		// One wild step counts no more than two typical ones.
		if sum += max(-typical, min(2*typical, x)) - typical/2; sum > best {
			best, from, to = sum, begin, n+1
		}
	}
	return in[from:to]
}

// between returns the part of the stretch from one step to another; all of it where
// that is unknown or not kept any more.
func (in stretch) between(first, last int64) stretch {
	from, to := 0, len(in)
	for from < to && in[from].step < first {
		from++
	}
	for to > from && in[to-1].step > last {
		to--
	}
	if from == to {
		return in
	}
	if to-from < minTrials {
		return in
	}
	return in[from:to]
}

// share returns what part of the step so many seconds are.
func (c *candidate) share(seconds float64) float64 { return seconds / c.in.stepSeconds() }

// worth is what mending the place is worth.
func (c *candidate) worth() float64 { return max(c.cost, c.beside) }

// typicality returns the typical step's excess over the mean one's, at most 1: one long
// stall makes no steady straggler. What comes in some steps only is taken as its mean.
func (c *candidate) typicality() float64 {
	if c.few || c.Intermittent || c.Mean <= 0 || c.Excess <= 0 || !c.place.accuses() {
		return 1
	}
	return min(1, c.Excess/c.Mean)
}

// Gates that are asked here; the judge has its own.
const (
	gateFewSteps   = "few_steps"
	gateFalseAlarm = "false_alarm"
	gateExcess     = "excess_share"
	gateSteadiness = "steadiness"
	gateCost       = "cost_share"
	gateLink       = "link"
	gateLate       = "late"
	gateUnseen     = "unseen"
	gatePair       = "pair" // of the judge
	gateHalf       = "half" // of the judge
)

// failure is the first gate that a candidate fails, "" for none.
type failure struct {
	gate      string
	got, want float64
}

func (c *candidate) failed(links, named []*candidate, cfg *Config) failure {
	if c.few {
		if f := c.failedFew(cfg); f.gate != "" {
			return f
		}
	}
	if c.orderly() && c.Chance > cfg.MaxFalseAlarm {
		return failure{gateFalseAlarm, c.Chance, cfg.MaxFalseAlarm}
	}
	if f := c.behindLink(links); f.gate != "" {
		return f
	}
	if f := c.besideLateness(named); f.gate != "" {
		return f
	}
	if f := c.behindUnseen(); f.gate != "" {
		return f
	}
	if got := c.share(max(c.worth(), c.most)) * c.typicality(); got < cfg.MinCostShare {
		return failure{gateCost, got, cfg.MinCostShare}
	}
	return failure{}
}

// behindLink reports whether a slow link may be all that makes the candidate
// seem slower than its peers. Ranks leave a collective behind a slow link at
// different times, so that it hides different parts of what their devices and
// hosts do meanwhile. Where that was not recorded, what is left to see of it
// differs by up to what the link adds.
func (c *candidate) behindLink(links []*candidate) failure {
	if c.place.sort != placeRank || !c.in.dark(c.Rank) {
		return failure{}
	}
	for _, l := range links {
		if l.Mean >= c.Mean {
			return failure{gateLink, c.Mean, l.Mean}
		}
	}
	return failure{}
}

// lateShare is what a link must add, of what its rank is late by, to be more than
// an effect of that: a tenth was seen where eight ranks share two cores.
const lateShare = 0.25

// besideLateness reports whether a link is that of a rank whose lateness may be
// all there is. Who comes last sends while all others wait for it, and its sends
// are not under the same conditions as theirs.
func (c *candidate) besideLateness(named []*candidate) failure {
	if c.place.sort != placeLink || c.Side == judge.SideReceive {
		return failure{}
	}
	for _, r := range named {
		if want := lateShare * r.Mean; r.place.sort == placeRank && r.Rank == c.Rank && c.Mean < want {
			return failure{gateLate, c.Mean, want}
		}
	}
	return failure{}
}

// someDark reports whether in some step nothing but communication was recorded of some
// rank's device.
func (in stretch) someDark() bool {
	return slices.ContainsFunc(in, func(rec *record) bool {
		return slices.ContainsFunc(rec.ranks, func(r rankRecord) bool { return r.dark })
	})
}

// dark reports whether in some step nothing but the rank's communication was
// recorded of its device.
func (in stretch) dark(rank int64) bool {
	return slices.ContainsFunc(in, func(rec *record) bool {
		i, ok := rec.index[rank]
		return ok && rec.ranks[i].dark
	})
}
