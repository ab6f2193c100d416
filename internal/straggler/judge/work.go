// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// typicalOf returns the typical share of a part of a rank's step, its spread over steps
// and their number.
func (t *trial) typicalOf(s *standing, of func(*entry) float64) (mid, sigma float64, n int) {
	t.buf = t.buf[:0]
	t.over(s.n, 0, len(t.frames), func(e *entry) { t.buf = append(t.buf, e.share(of(e))) })
	n = len(t.buf)
	mid, sigma = stats.Spread(t.buf)
	return mid, sigma, n
}

// mostly reports whether a part is the gate's share or more in at least half of the
// rank's steps: else its median is less.
func (t *trial) mostly(s *standing, gate float64, of func(*entry) float64) bool {
	n, all := 0, 0
	t.over(s.n, 0, len(t.frames), func(e *entry) {
		all++
		if of(e) >= gate*max(float64(e.base), leastBase) {
			n++
		}
	})
	return 2*n >= all
}

func (e *entry) choiceSeconds() float64 { return float64(e.choice) }
func (e *entry) workSeconds() float64   { return float64(e.work) }
func (e *entry) moreSeconds() float64   { return float64(e.work) + e.slow() }

// choiceGate is what part of the gate's share another kernel must take longer. The gate
// keeps off what devices of one kind differ by, and by that no kernel gets another name.
const choiceGate = 0.5

// choices names ranks whose library chose another kernel than the peers' for the same
// work, and which take longer by it.
func (t *trial) choices() {
	gate := choiceGate * t.cfg.MinExcessShare
	for i := range t.ranks {
		s := &t.ranks[i]
		if !t.mostly(s, gate, (*entry).choiceSeconds) {
			continue
		}
		share, sigma, n := t.typicalOf(s, (*entry).choiceSeconds)
		if share < gate {
			continue
		}
		// Of who runs what its peers run the excess is none at all: what is uncertain is
		// how much it is.
		z := share / math.Hypot(leastSpread, sigma*stats.MedianError*math.Sqrt(inflation(n, t.noise.likely)/float64(n)))
		chance := min(1, stats.StudentTail(z, float64(n+priorSteps))*float64(len(t.ranks)*t.looks))
		if chance > t.cfg.MaxFalseAlarm {
			continue
		}
		c := Conclusion{
			Class: model.ClassKernelChoice, Rank: s.m.seat.Rank, Host: s.m.seat.Host, Stage: -1, Peer: -1,
			Ranks: []int64{s.m.seat.Rank}, Rung: choiceRung(s.m.device), Peers: s.m.device.peers,
			Share: share, Chance: chance, Steadiness: z, Steps: n,
		}
		t.spread(&c, share*s.level)
		t.place(&c, []*suspect{{standing: s}}, 0, len(t.frames))
		c.Confidence = confidence(&c, &features{gate: gate, limit: t.cfg.MaxFalseAlarm})
		t.out = append(t.out, c)
	}
}

// choiceRung returns who says which kernel is usual: of a pair that is the rest of the job.
func choiceRung(b basis) Rung {
	if b.pair {
		return RungKernel
	}
	return b.rung
}

// spread fills a conclusion about the whole window.
func (t *trial) spread(c *Conclusion, seconds float64) {
	c.Excess, c.Mean = seconds, seconds
	c.First, c.Last = t.frames[0].step, t.frames[len(t.frames)-1].step
}

// What tells that compute that rotates is work, where nobody counts it: the microbatches
// of a step, or the ranks, differ forward and backward alike (see passes). That ranks
// differ from step to step is told by nothing: whatever is noise does that.
const (
	// workCorrelation is the least correlation of the passes: most of what they differ by
	// is the same.
	workCorrelation = 0.6
	// workPart is how much of the excess of who leads must be known as work otherwise.
	workPart = 0.5
	// workAlarm is what part of the false alarms may come from ranks that have more for good:
	// of work that rotates some rank has most.
	workAlarm = 0.3
	// rotates is the largest share of steps in which one rank may lead.
	rotates = 0.5
)

// works tells of amounts of work that differ: the same ranks have more in most steps,
// or others in every step.
func (t *trial) works() {
	fixed := t.fixedWork()
	t.cohortWork(fixed)
	if !t.rotatingWork(fixed) {
		t.unevenWork(fixed)
	}
}

// fixedWork tells of ranks that have more to do than their peers for good.
func (t *trial) fixedWork() map[int32]bool {
	fixed := map[int32]bool{}
	c := Conclusion{Class: model.ClassWorkImbalance, Rank: -1, Stage: -1, Peer: -1, Steadiness: math.Inf(1)}
	var of []*suspect
	most := 0.0
	for i := range t.ranks {
		s := &t.ranks[i]
		if !t.mostly(s, t.cfg.MinExcessShare, (*entry).workSeconds) {
			continue
		}
		share, sigma, n := t.typicalOf(s, (*entry).workSeconds)
		if share < t.cfg.MinExcessShare {
			continue
		}
		z := share / max(leastSpread, sigma*stats.MedianError/math.Sqrt(float64(n)))
		chance := min(1, stats.StudentTail(z, float64(n))*float64(len(t.ranks)*t.looks))
		if chance > workAlarm*t.cfg.MaxFalseAlarm {
			continue
		}
		fixed[s.n] = true
		of = append(of, &suspect{standing: s})
		c.Ranks = append(c.Ranks, s.m.seat.Rank)
		c.Steadiness, c.Chance = min(c.Steadiness, z), max(c.Chance, chance)
		c.Rung, c.Peers, c.Steps = s.m.device.rung, s.m.device.peers, max(c.Steps, n)
		if share > c.Share {
			c.Share, most = share, share*s.level
		}
	}
	// What most have is usual.
	if len(of) == 0 || 2*len(of) > len(t.ranks) {
		return fixed
	}
	slices.Sort(c.Ranks)
	t.spread(&c, most)
	t.place(&c, of, 0, len(t.frames))
	c.Numbers = map[string]float64{"ranks_concerned": float64(len(of))}
	c.Confidence = confidence(&c, &features{gate: t.cfg.MinExcessShare, limit: t.cfg.MaxFalseAlarm})
	t.out = append(t.out, c)
	return fixed
}

// cohortWork tells of a cohort of a stage that has more to do than its other cohorts,
// in all of its data-parallel ranks: a hot expert, or an uneven split.
func (t *trial) cohortWork(fixed map[int32]bool) {
	type cell struct {
		key   cohortKey
		of    []*standing
		value float64
		noise float64
	}
	type stage struct {
		role uint64
		pp   int32
	}
	byStage := map[stage][]*cell{}
	byKey := map[cohortKey]*cell{}
	for i := range t.ranks {
		s := &t.ranks[i]
		k := s.m.cohort
		if s.m.device.rung != RungRole || k.level != levelSiblings || fixed[s.n] {
			continue
		}
		x := byKey[k]
		if x == nil {
			x = &cell{key: k}
			byKey[k] = x
			at := stage{k.role, k.pp}
			byStage[at] = append(byStage[at], x)
		}
		x.of = append(x.of, s)
	}
	for _, of := range byStage {
		if len(of) < minCohort {
			continue
		}
		t.buf2 = t.buf2[:0]
		values := make([]float64, 0, len(of))
		for _, x := range of {
			v := stageValue{ranks: x.of}
			t.measureStage(&v)
			x.value, x.noise = v.seconds, v.noise
			values = append(values, v.seconds)
		}
		m := stats.SelectMiddle(slices.Clone(values))
		c := Conclusion{Class: model.ClassWorkImbalance, Rank: -1, Stage: -1, Peer: -1, Rung: RungMembers, Peers: len(of) - 1, Steps: len(t.frames)}
		most := 0.0
		for _, x := range of {
			other := m.Without(x.value)
			excess := x.value - other
			z := excess / max(x.noise, timerFloor, workerSpread*other)
			chance := min(1, stats.StudentTail(z, float64(len(t.frames)+priorSteps))*float64(len(byKey)*t.looks))
			if excess < t.cfg.MinExcessShare*other || chance > t.cfg.MaxFalseAlarm {
				continue
			}
			for _, s := range x.of {
				c.Ranks = append(c.Ranks, s.m.seat.Rank)
				fixed[s.n] = true
			}
			c.Chance = max(c.Chance, chance)
			if share := excess / max(other, leastBase); share > c.Share {
				c.Share, c.Steadiness, most = share, z, excess
			}
		}
		if len(c.Ranks) == 0 {
			continue
		}
		slices.Sort(c.Ranks)
		t.spread(&c, most)
		c.Numbers = map[string]float64{"cohorts": float64(len(of))}
		c.Confidence = confidence(&c, &features{gate: t.cfg.MinExcessShare, limit: t.cfg.MaxFalseAlarm})
		t.out = append(t.out, c)
	}
}

// leader is the rank that had most to do in a step.
type leader struct {
	n           int32
	share, work float64
}

// rotatingWork tells of compute that is more on another rank in every step.
func (t *trial) rotatingWork(fixed map[int32]bool) bool {
	worst := make([]float64, 0, len(t.frames))
	work := make([]float64, 0, len(t.frames))
	leads := map[int32]int{}
	var noise, correlation, variation []float64
	tops := make([]leader, len(t.frames))
	for i := range t.ranks {
		s := &t.ranks[i]
		// Its own past tells of no rank what work the others had.
		if s.named || fixed[s.n] || s.m.device.rung == RungHistory {
			continue
		}
		_, sigma, _ := t.typicalOf(s, (*entry).moreSeconds)
		noise = append(noise, sigma)
		for k, f := range t.frames {
			e := t.h.at(s.n, f)
			if e == nil || e.flags&entryCompared == 0 {
				continue
			}
			if x := e.share(e.moreSeconds()) - max(0, s.typical); x > tops[k].share {
				tops[k] = leader{s.n, x, e.share(e.workSeconds())}
			}
		}
	}
	for k, f := range t.frames {
		if l := &tops[k]; l.share > 0 {
			worst, work = append(worst, l.share), append(work, l.work/l.share)
			leads[l.n]++
		}
		if !math.IsNaN(f.correlation) {
			correlation = append(correlation, f.correlation)
		}
		if !math.IsNaN(f.variation) {
			variation = append(variation, f.variation)
		}
	}
	if len(worst) < leastSteps {
		return false
	}
	lead, first := 0, int32(math.MaxInt32)
	for rank, n := range leads {
		if n > lead || (n == lead && rank < first) {
			lead, first = n, rank
		}
	}
	on := t.h.members[first].device
	c := Conclusion{Class: model.ClassWorkImbalance, Rank: -1, Stage: -1, Peer: -1, Rung: on.rung, Peers: on.peers, Steps: len(worst)}
	steps := float64(len(worst))
	c.Share = stats.SelectMedian(worst)
	c.Numbers = map[string]float64{
		"noise": stats.SelectMedian(noise), "correlation": stats.SelectMedian(correlation), "variation": stats.SelectMedian(variation),
		"work_part": stats.SelectMedian(work), "leader": float64(lead) / steps,
	}
	// Microbatches that differ cost one after the other, however even their sum is.
	longest := c.Numbers["variation"] * largestOf(&on)
	uneven := longest >= t.cfg.MinExcessShare && c.Numbers["correlation"] >= workCorrelation
	if uneven {
		c.Share = max(c.Share, longest)
	}
	counted := c.Numbers["work_part"] >= workPart
	if c.Share < t.cfg.MinExcessShare || (!uneven && !counted) || float64(lead) > rotates*steps {
		return false
	}
	c.Chance = t.workChance(work, correlation, counted)
	if c.Chance > t.cfg.MaxFalseAlarm {
		return false
	}
	t.spread(&c, c.Share*t.level())
	t.place(&c, nil, 0, len(t.frames))
	c.Confidence = confidence(&c, &features{gate: t.cfg.MinExcessShare, limit: t.cfg.MaxFalseAlarm})
	t.out = append(t.out, c)
	return true
}

// largestOf returns by how many standard deviations the longest of the microbatches that
// ranks of a role compute at a time exceeds the others, typically: all wait for it (Blom's
// approximation of a normal maximum). How many there are is only known of a role.
func largestOf(on *basis) float64 {
	if on.rung != RungRole {
		return 1
	}
	n := float64(on.peers + 1)
	return max(1, math.Sqrt2*math.Erfinv(2*(n-0.375)/(n+0.25)-1))
}

// workChance returns how often chance would tell of work as surely: counts of it in most
// steps, or microbatches that differ forward and backward alike.
func (t *trial) workChance(work, correlation []float64, counted bool) float64 {
	if counted {
		n := 0
		for _, x := range work {
			if x >= workPart {
				n++
			}
		}
		return min(1, stats.BinomialTail(n, len(work), 0.5)*float64(t.looks))
	}
	z := math.Atanh(min(0.99, stats.SelectMedian(correlation))) * math.Sqrt(float64(len(correlation)))
	return min(1, stats.StudentTail(z, float64(len(work)))*float64(t.looks))
}
