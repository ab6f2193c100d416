package straggler

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// candidate is a rank under judgement over the window; seconds are per step.
type candidate struct {
	rank  *model.Rank
	steps int

	caused    float64 // s per step
	waitShare float64 // of all wait, 0 to 1
	top       int     // trials in which it caused most
	trials    int
	byStep    bool    // trials are steps; else single meetings
	chance    float64 // false alarm probability over all ranks

	excess      own     // ns per step
	excessShare float64 // of its peers' own time
	steadiness  float64 // the excess's median over its standard error

	cost, costShare float64 // s per step, share of the step
	before          float64 // share of the wait caused that precedes the recording
}

// Gates, in the order in which they are tried.
const (
	gateFewSteps   = "few_steps"
	gateFalseAlarm = "false_alarm"
	gateExcess     = "excess_share"
	gateSteadiness = "steadiness"
	gateCost       = "cost_share"
)

// minTrials is the fewest steps that are judged as independent trials. Below
// it single meetings are counted, which within a step are not independent; the
// confidence says so.
const minTrials = 3

// minSteadiness is how many standard errors the median excess must stand above
// zero.
const minSteadiness = 3

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

// addStep counts one step's trials and returns its samples of excess. In a step
// the rank with the largest excess stands out, not the one that caused most
// wait: what a slow rank of a tensor-parallel group delays, all of that group
// delay in turn.
func (c *candidate) addStep(rec *record, i int) (samples []float64) {
	c.excess = c.excess.plus(rec.ranks[i].excess)
	if !c.byStep {
		return c.addMeetings(rec)
	}
	if worst := worstExcess(rec.ranks); worst >= 0 {
		c.trials++
		if i == worst {
			c.top++
		}
	}
	return []float64{float64(rec.ranks[i].excess.total())}
}

// addMeetings counts single meetings as trials: who was last.
func (c *candidate) addMeetings(rec *record) (samples []float64) {
	for _, mr := range rec.meets {
		k := mr.find(c.rank.Rank)
		if k < 0 {
			continue
		}
		if mr.attributed {
			c.trials++
			if mr.last == k {
				c.top++
			}
		}
		if mr.members[k].known {
			samples = append(samples, float64(mr.members[k].excess.total()))
		}
	}
	return samples
}

// worstExcess returns the rank with the largest excess, or -1 where none has any.
func worstExcess(ranks []rankRecord) int {
	best, excess := -1, int64(0)
	for i := range ranks {
		if x := ranks[i].excess.total(); x > excess {
			best, excess = i, x
		}
	}
	return best
}

// failedGate returns the first gate that the candidate fails, "" for none. In
// few steps a rank that computes longer may just have had more to do.
func (c *candidate) failedGate(cfg *Config) (gate string, got, want float64) {
	switch {
	case !c.byStep && c.excess.busy() >= c.excess.idle:
		return gateFewSteps, float64(c.steps), minTrials
	case c.chance > cfg.MaxFalseAlarm:
		return gateFalseAlarm, c.chance, cfg.MaxFalseAlarm
	case c.excessShare < cfg.MinExcessShare:
		return gateExcess, c.excessShare, cfg.MinExcessShare
	case c.steadiness < minSteadiness:
		return gateSteadiness, c.steadiness, minSteadiness
	case c.costShare < cfg.MinCostShare:
		return gateCost, c.costShare, cfg.MinCostShare
	}
	return "", 0, 0
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

// binomialTail returns P(X >= k) for X ~ Binomial(n, p).
func binomialTail(k, n int, p float64) float64 {
	if k <= 0 {
		return 1
	}
	if p >= 1 {
		return 1
	}
	sum := 0.0
	for i := k; i <= n; i++ {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(i + 1))
		c, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(1, sum)
}

// steadiness returns the median of the samples over its standard error, taken
// from the median absolute deviation so that one wild step does not hide a
// steady excess. The spread is floored at 1 % of the median: equal samples say
// that the timer is coarse, not that the certainty is endless.
func steadiness(samples []float64) float64 {
	if len(samples) < 2 {
		return 0
	}
	mid := medianFloat(samples)
	dev := make([]float64, len(samples))
	for i, x := range samples {
		dev[i] = math.Abs(x - mid)
	}
	const madToSigma, medianEfficiency, floor = 1.4826, 1.2533, 0.01
	spread := max(madToSigma*medianFloat(dev), floor*math.Abs(mid))
	if spread == 0 {
		return 0
	}
	return mid / (medianEfficiency * spread / math.Sqrt(float64(len(samples))))
}

func medianFloat(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}
