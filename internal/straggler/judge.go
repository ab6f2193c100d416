package straggler

import (
	"cmp"
	"slices"
)

// judge brings the job's findings up to date with its window.
func (j *job) judge() {
	if j.judged || len(j.window) == 0 {
		return
	}
	j.judged = true
	j.abstain = nil
	candidates := j.candidates()
	var named []*candidate
	for _, c := range candidates {
		gate, got, want := c.failedGate(&j.e.cfg)
		if gate == "" {
			named = append(named, c)
		} else if j.abstain == nil {
			j.abstain = &Abstention{
				Rank: c.rank.Rank, Gate: gate, Got: got, Want: want,
				WaitShare: c.waitShare, CostShare: c.costShare, FalseAlarm: c.chance,
			}
		}
	}
	slices.SortStableFunc(named, func(a, b *candidate) int { return cmp.Compare(b.cost, a.cost) })
	j.settle(named)
}

// maxCandidates bounds how many ranks are examined: those that cause most wait,
// and as many of those with the largest excess. Each costs one replay of the
// window.
const maxCandidates = 8

// candidates returns the ranks to examine, in order of the wait caused.
func (j *job) candidates() []*candidate {
	byRank := map[int64]*candidate{}
	excess := map[int64]int64{}
	var total float64
	for _, rec := range j.window {
		for i := range rec.ranks {
			r := &rec.ranks[i]
			c := byRank[r.rank.Rank]
			if c == nil {
				c = &candidate{rank: r.rank}
				byRank[r.rank.Rank] = c
			}
			c.steps++
			caused := float64(r.caused) / 1e9 / float64(len(j.window))
			c.caused += caused
			total += caused
			excess[r.rank.Rank] += r.excess.total()
		}
	}
	all := make([]*candidate, 0, len(byRank))
	for _, c := range byRank {
		if c.caused > 0 {
			c.waitShare = c.caused / total
			all = append(all, c)
		}
	}
	out := pick(all, excess)
	for _, c := range out {
		j.examine(c, len(byRank))
	}
	return out
}

// pick returns the candidates that lead in wait caused or in excess.
func pick(all []*candidate, excess map[int64]int64) []*candidate {
	byExcess := slices.SortedFunc(slices.Values(all), func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(excess[b.rank.Rank], excess[a.rank.Rank]), cmp.Compare(a.rank.Rank, b.rank.Rank))
	})
	leads := map[*candidate]bool{}
	for _, c := range byExcess[:min(len(byExcess), maxCandidates)] {
		leads[c] = true
	}
	slices.SortFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.caused, a.caused), cmp.Compare(a.rank.Rank, b.rank.Rank))
	})
	var out []*candidate
	for i, c := range all {
		if i < maxCandidates || leads[c] {
			out = append(out, c)
		}
	}
	return out
}

func (j *job) examine(c *candidate, ranks int) {
	c.byStep = len(j.window) >= minTrials
	var samples []float64
	for _, rec := range j.window {
		i, ok := rec.index[c.rank.Rank]
		if !ok {
			continue
		}
		samples = append(samples, c.addStep(rec, i)...)
	}
	c.chance = min(1, float64(ranks)*binomialTail(c.top, c.trials, 1/float64(ranks)))
	n := int64(c.steps)
	c.excess = own{c.excess.compute / n, c.excess.overlapped / n, c.excess.idle / n}
	c.excessShare = float64(c.excess.total()) / j.peersOwn(c.rank.Rank)
	c.steadiness = steadiness(samples)
	c.before = j.beforeWindow(c.rank.Rank)
	c.cost = float64(replay(j.window, map[int64]bool{c.rank.Rank: true})) / 1e9 / float64(len(j.window))
	c.costShare = c.cost / j.stepSeconds()
}

// peersOwn returns the median over the other ranks of their own time per step, ns.
func (j *job) peersOwn(rank int64) float64 {
	sums, steps := map[int64]int64{}, map[int64]int64{}
	for _, rec := range j.window {
		for i := range rec.ranks {
			r := &rec.ranks[i]
			sums[r.rank.Rank] += r.own.total()
			steps[r.rank.Rank]++
		}
	}
	var v []int64
	for r, s := range sums {
		if r != rank {
			v = append(v, s/steps[r])
		}
	}
	return max(1, float64(median(v)))
}

// stepSeconds returns the mean step time of the window.
func (j *job) stepSeconds() float64 {
	var sum float64
	for _, rec := range j.window {
		sum += float64(rec.end-rec.start) / 1e9
	}
	return max(1e-9, sum/float64(len(j.window)))
}

// beforeWindow returns the share of the wait that the rank caused in meetings to
// which it came late because it was late when the recording began.
func (j *job) beforeWindow(rank int64) float64 {
	var before, all float64
	for _, rec := range j.window {
		for _, mr := range rec.meets {
			if !mr.attributed || mr.ranks[mr.last] != rank {
				continue
			}
			w := 0.0
			for i := range mr.members {
				w += float64(mr.members[i].wait)
			}
			all += w
			if m := &mr.members[mr.last]; m.lead && 2*mr.leadOf(mr.last) > mr.lateness(mr.last) {
				before += w
			}
		}
	}
	if all == 0 {
		return 0
	}
	return before / all
}

// leadOf returns how much later than its peers' median the member's step began.
func (mr *meetingRecord) leadOf(i int) int64 {
	began := func(m *memberRecord) int64 { return m.enter - m.segment }
	return began(&mr.members[i]) - mr.medianOthers(i, nil, began)
}

// lateness returns how much later than its peers' median the member arrived.
func (mr *meetingRecord) lateness(i int) int64 {
	enter := func(m *memberRecord) int64 { return m.enter }
	return mr.members[i].enter - mr.medianOthers(i, nil, enter)
}
