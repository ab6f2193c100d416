package straggler

import (
	"cmp"
	"math"
	"slices"
)

// judge brings the job's findings up to date with its window.
func (j *job) judge() {
	if j.judged || len(j.window) == 0 {
		return
	}
	j.judged, j.unjudged = true, 0
	if !j.early() {
		j.looks = min(j.looks+1, maxLooks)
	}
	j.abstain = nil
	links := j.linkCandidates()
	candidates := append(j.candidates(), links...)
	var named []*candidate
	for _, c := range candidates {
		gate, got, want := c.failedGate(&j.e.cfg)
		if gate == "" {
			gate, got, want = c.behindLink(links, &j.e.cfg)
		}
		if gate == "" {
			gate, got, want = c.besideLateness(named)
		}
		if gate == "" {
			named = append(named, c)
		} else if j.abstain == nil {
			j.abstain = &Abstention{
				Rank: c.rank.Rank, Link: c.link, Gate: gate, Got: got, Want: want,
				WaitShare: c.waitShare, CostShare: c.costShare, FalseAlarm: c.chance,
			}
		}
	}
	slices.SortStableFunc(named, func(a, b *candidate) int { return cmp.Compare(b.cost, a.cost) })
	j.settle(named)
}

// maxLooks bounds the factor by which repeated judgement raises the probability of
// a false alarm: once for each judgement, until there were so many. Judged at
// every step over the last 64, ranks that stand out by chance alone pass a limit of
// 1 % in 5 % of all windows, and with this factor in 1 % (TestRepeatedLooks): most
// judgements share most of their steps.
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

// early reports whether there are too few steps yet, and more may come: nobody is
// named then, so that such a look raises no alarm.
func (j *job) early() bool { return j.steps < minTrials && !j.e.final && !j.quiet }

// maxCandidates bounds how many ranks are examined: those that cause most wait,
// and as many of those with the largest excess. Each costs one replay of the
// window.
const maxCandidates = 8

// candidates returns the ranks to examine, in order of the wait caused.
func (j *job) candidates() []*candidate {
	byRank := map[int64]*candidate{}
	excess := map[int64]int64{}
	for _, rec := range j.window {
		for i := range rec.ranks {
			r := &rec.ranks[i]
			c := byRank[r.rank.Rank]
			if c == nil {
				c = &candidate{rank: r.rank}
				byRank[r.rank.Rank] = c
			}
			c.caused += float64(r.caused)
			excess[r.rank.Rank] += r.excess.total()
		}
	}
	all := make([]*candidate, 0, len(byRank))
	for _, c := range byRank {
		if c.caused > 0 {
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

// examine fills the candidate: whether it stands out over the whole window, and
// by how much in the stretch of it in which it does.
func (j *job) examine(c *candidate, ranks int) {
	c.byStep = j.steps >= minTrials
	c.early = j.early()
	for _, rec := range j.window {
		if i, ok := rec.index[c.rank.Rank]; ok {
			c.addTrials(rec, i)
		}
	}
	c.chance = min(1, float64(ranks*max(1, j.looks))*binomialTail(c.top, c.trials, c.oneOf/float64(max(1, c.trials))))
	c.in = j.stretchOf(c)
	c.measure()
}

// stretchOf returns the part of the window in which the candidate had the largest
// excess more often than halfway between chance and its rate over the window: a
// finding must not be diluted by the steps before it began or after it ended.
func (j *job) stretchOf(c *candidate) stretch {
	whole := stretch(j.window)
	if !c.byStep || c.top == 0 {
		return whole
	}
	usual := (float64(c.top) + c.oneOf) / 2 / float64(c.trials)
	best, bestFrom, bestTo := 0.0, 0, len(whole)
	sum, from := 0.0, 0
	for n, rec := range whole {
		if sum <= 0 {
			sum, from = 0, n
		}
		if i, ok := rec.index[c.rank.Rank]; ok {
			if worst, _ := rec.worst(c, rec.ranks[i].role); worst == i {
				sum++
			}
		}
		sum -= usual
		if sum > best {
			best, bestFrom, bestTo = sum, from, n+1
		}
	}
	if in := whole[bestFrom:bestTo]; c.link || in.caused(c.rank.Rank) > 0 {
		return in
	}
	return whole
}

// measure fills what the candidate costs in its stretch.
func (c *candidate) measure() {
	if c.link {
		c.measureLink()
		return
	}
	var samples []float64
	for _, rec := range c.in {
		if i, ok := rec.index[c.rank.Rank]; ok {
			c.steps++
			c.excess = c.excess.plus(rec.ranks[i].excess)
			samples = append(samples, c.samples(rec, i)...)
		}
	}
	n, all := int64(max(1, c.steps)), float64(len(c.in))
	c.excess = own{c.excess.compute / n, c.excess.overlapped / n, c.excess.idle / n}
	c.mean = float64(c.excess.total())
	c.excessShare = c.mean / c.in.peersOwn(c.rank.Rank)
	c.typical = c.typicality(samples)
	c.steadiness = steadiness(samples)
	c.before = c.in.beforeWindow(c.rank.Rank)
	caused := c.in.caused(c.rank.Rank)
	c.waitShare = caused / max(caused, c.in.allCaused())
	c.caused = caused / all
	c.cost = float64(replay(c.in, mending{ranks: map[int64]bool{c.rank.Rank: true}})) / 1e9 / all
	if c.before < 0.5 && !c.in.dark(c.rank.Rank) {
		c.cost = min(c.cost, max(0, c.in.ownOf(c.rank.Rank)-c.in.peersOwn(c.rank.Rank))/1e9)
	}
	c.costShare = c.cost / c.in.stepSeconds()
}

// typicality returns the median over the mean of the steps' excess, at most 1.
// Single meetings of one step are too unlike one another to be asked that.
func (c *candidate) typicality(samples []float64) float64 {
	if !c.byStep || c.mean <= 0 {
		return 1
	}
	return min(1, max(0, medianFloat(samples)/c.mean))
}

// stretch is a part of the window.
type stretch []*record

// caused returns the wait that the rank caused, in s over the stretch.
func (in stretch) caused(rank int64) (sum float64) {
	for _, rec := range in {
		if i, ok := rec.index[rank]; ok {
			sum += float64(rec.ranks[i].caused) / 1e9
		}
	}
	return sum
}

// allCaused returns the wait that all ranks caused, in s over the stretch.
func (in stretch) allCaused() (sum float64) {
	for _, rec := range in {
		for i := range rec.ranks {
			sum += float64(rec.ranks[i].caused) / 1e9
		}
	}
	return sum
}

// peersOwn returns the median over the other ranks of the rank's role of their
// own time per step, ns.
func (in stretch) peersOwn(rank int64) float64 {
	sums, steps := map[int64]int64{}, map[int64]int64{}
	for _, rec := range in {
		self, ok := rec.index[rank]
		for i := range rec.ranks {
			r := &rec.ranks[i]
			if !ok || r.role != rec.ranks[self].role {
				continue
			}
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

// ownOf returns the rank's own time per step, ns. Where all that a rank did was
// recorded, mending it saves no more than it took longer than its peers: they do some
// of their work while they wait for it, which a replay of segments takes for granted.
func (in stretch) ownOf(rank int64) float64 {
	var sum, steps float64
	for _, rec := range in {
		if i, ok := rec.index[rank]; ok {
			sum += float64(rec.ranks[i].own.total())
			steps++
		}
	}
	return sum / max(1, steps)
}

// stepSeconds returns the mean step time.
func (in stretch) stepSeconds() float64 {
	var sum float64
	for _, rec := range in {
		sum += float64(rec.end-rec.start) / 1e9
	}
	return max(1e-9, sum/float64(len(in)))
}

// beforeWindow returns the share of the wait that the rank caused in meetings to
// which it came late because it was late when the recording began.
func (in stretch) beforeWindow(rank int64) float64 {
	var before, all float64
	for _, rec := range in {
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
