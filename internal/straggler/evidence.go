// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// locate fills the operation or scope that holds most of a rank's excess, where the judge
// was told none, and its cause.
func (j *job) locate(c *candidate) {
	if c.place.sort != placeRank {
		return
	}
	if c.Op == "" {
		pick := func(r *rankRecord) ownTimes { return r.computeBy }
		if c.Class == model.ClassHost {
			pick = func(r *rankRecord) ownTimes { return r.idleBy }
		}
		id, ns := c.in.worstKey(c.Rank, pick)
		if c.Class != model.ClassHost && c.in.dark(c.Rank) {
			ns = min(ns, float64(c.excess.busy())) // part of its peers' work is out of sight
		}
		c.Op, c.OpSec = j.keys.name(id), ns/1e9
	}
	c.Cause = c.why()
}

// why returns the cause of a rank's excess, where its scopes tell it: most of the
// host's idleness beyond its peers' lies in scopes of one.
func (c *candidate) why() string {
	if c.Class != model.ClassHost {
		return model.CauseUnknown
	}
	name, most := model.CauseUnknown, float64(c.excess.idle)/2
	for k := firstTold; k < causes; k++ {
		if x := c.in.excess(c.Rank, func(r *rankRecord) int64 { return r.idleFor[k] }); x > most {
			name, most = causeNames[k], x
		}
	}
	return name
}

// scoped reports whether in some step a scope of the rank was recorded.
func (in stretch) scoped(rank int64) bool {
	return slices.ContainsFunc(in, func(rec *record) bool {
		i, ok := rec.index[rank]
		return ok && rec.ranks[i].scoped
	})
}

// excess returns the mean of a quantity of the rank over its peers' median, per
// step.
func (in stretch) excess(rank int64, of func(*rankRecord) int64) (mean float64) {
	for _, rec := range in {
		if i, ok := rec.index[rank]; ok {
			mean += float64(of(&rec.ranks[i])-stats.MedianMidpoint(rec.peers(i, of))) / float64(len(in))
		}
	}
	return mean
}

// peers returns a quantity of the ranks of the i-th rank's role besides it, sorted.
func (rec *record) peers(i int, of func(*rankRecord) int64) (out []int64) {
	for k := range rec.ranks {
		if k != i && rec.ranks[k].role == rec.ranks[i].role {
			out = append(out, of(&rec.ranks[k]))
		}
	}
	slices.Sort(out)
	return out
}

// worstKey returns the key with the largest mean excess of the rank over its
// peers' median, in ns per step.
func (in stretch) worstKey(rank int64, pick func(*rankRecord) ownTimes) (best uint32, excess float64) {
	sums := map[uint32]float64{}
	for _, rec := range in {
		i, ok := rec.index[rank]
		if !ok {
			continue
		}
		for _, t := range pick(&rec.ranks[i]) {
			peers := rec.peers(i, func(r *rankRecord) int64 { return pick(r).of(t.key) })
			sums[t.key] += float64(t.ns-stats.MedianMidpoint(peers)) / float64(len(in))
		}
	}
	for key, x := range sums {
		if x > excess || (x == excess && key < best) {
			best, excess = key, x
		}
	}
	return best, excess
}

// evidence returns the numbers that decided, and the meeting that shows them best; nil
// where there is none.
func (c *candidate) evidence(method string) (*Meeting, evidence.Straggler) {
	ev := evidence.Straggler{
		Method: cmp.Or(method, evidence.MethodLockstep), Steps: c.steps, FalseAlarm: c.Chance, Trials: "step",
		Excess: c.Excess, ExcessMean: c.Mean, ExcessShare: c.Share, Intermittent: c.Intermittent, Steadiness: bounded(c.Steadiness),
		ExcessCompute: float64(c.excess.busy()) / 1e9, ExcessHost: float64(c.excess.idle) / 1e9,
		BeforeWindow: c.before, PlaceExcess: copied(&c.OpSec), CostBy: c.costBy, CostBeside: c.beside, CostLeast: copied(c.leastCost()), CostMost: c.mostCost(),
		CohortRung: string(c.Rung), Peers: c.Peers, Pauses: copied(c.Pauses), Numbers: finite(c.Numbers),
	}
	if ops, _, _ := c.lost(); ops >= minLost {
		ev.Lost = ops
	}
	if c.few {
		ev.Trials = "meeting"
	}
	if c.steps == 0 {
		ev.Steps = len(c.in)
	}
	if c.waitShare > 0 {
		ev.WaitAll = c.caused / c.waitShare
	}
	if c.perhaps > 0 {
		least := max(0, c.caused-c.perhaps)
		ev.WaitLeast = &least
	}
	ev.MissingRanks, ev.MissingCount = c.in.missing()
	decisive := c.decisive(&ev)
	if decisive == nil {
		return nil, ev
	}
	shown := decisive.show()
	ev.Decisive = &evidence.Decisive{
		Step: decisive.step, Collective: decisive.name, Comm: decisive.shown.form.comm,
		Wait: shown.WaitCaused().Seconds(), Gap: shown.Gap().Seconds(),
	}
	if len(c.Ranks) == 1 {
		ev.NextRanks = shown.next()
	}
	if ev.Peers == 0 {
		ev.Peers = decisive.peersOfLast()
	}
	return shown, ev
}

// peersOfLast counts those in the role of the one that waits are owed to.
func (mr *meetingRecord) peersOfLast() (n int) {
	for k := range mr.members {
		if k != mr.last && mr.members[k].role == mr.members[mr.last].role {
			n++
		}
	}
	return n
}

// decisive returns the meeting in which the candidate's ranks caused most wait, and
// counts their meetings; nil where they were waited for in none.
func (c *candidate) decisive(ev *evidence.Straggler) (decisive *meetingRecord) {
	for _, rec := range c.in {
		var worst *meetingRecord
		for _, rank := range c.Ranks {
			i, ok := rec.index[rank]
			if !ok {
				continue
			}
			r := &rec.ranks[i]
			ev.ClockSigma = max(ev.ClockSigma, r.sigma.Seconds())
			ev.LastArrivals += int(r.lasts)
			if r.lasts > 0 {
				if mr := rec.meets[r.worst]; worst == nil || mr.waited > worst.waited || mr.waited == worst.waited && mr.order < worst.order {
					worst = mr
				}
			}
			if len(c.Ranks) == 1 {
				ev.Meetings += int(r.attributed)
			}
		}
		if worst != nil && (decisive == nil || worst.waited > decisive.waited) {
			decisive = worst
		}
	}
	if len(c.Ranks) > 1 {
		ev.Meetings = c.in.meetingsOf(c.Ranks)
	}
	return decisive
}

// meetingsOf counts the meetings in which somebody was waited for and some of the ranks were.
func (in stretch) meetingsOf(ranks []int64) (n int) {
	of := make(map[int64]bool, len(ranks))
	for _, r := range ranks {
		of[r] = true
	}
	for _, rec := range in {
		for _, mr := range rec.meets {
			if mr.attributed && slices.ContainsFunc(mr.ranks, func(r int64) bool { return of[r] }) {
				n++
			}
		}
	}
	return n
}

// missing lists the ranks that at least half of the steps lack, the first 64,
// and counts the ranks that the fullest of those steps lack.
func (in stretch) missing() (first []int64, count int) {
	lacks := map[int64]int{}
	fewest := -1
	for _, rec := range in {
		for _, r := range rec.missing {
			lacks[r]++
		}
		if fewest < 0 || rec.missingCount < fewest {
			fewest = rec.missingCount
		}
	}
	for r, n := range lacks {
		if 2*n >= len(in) {
			first = append(first, r)
		}
	}
	slices.Sort(first)
	first = first[:min(len(first), maxListed)]
	return first, max(len(first), fewest)
}

// maxListed bounds lists of ranks in evidence, as semconv.MaxFindingRanks does
// in attributes.
const maxListed = 64

// nextShare is how near the second-last arrival others must be to be named with
// it: a tenth of the gap to the last.
const nextShare = 0.1

// next returns the ranks that would be last if the last were mended.
func (m *Meeting) next() []int64 {
	var rest []Member
	for _, x := range m.Members {
		if x.Rank != m.LastRank {
			rest = append(rest, x)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	second := rest[len(rest)-1].Enter
	var out []int64
	for i := len(rest) - 1; i >= 0 && len(out) < maxListed; i-- {
		if float64(second-rest[i].Enter) <= nextShare*float64(m.Gap()) {
			out = append(out, rest[i].Rank)
		}
	}
	slices.Sort(out)
	return out
}

// Factors by which the confidence is lowered. They are a judgement of how much
// each shortcoming weakens the evidence, not yet calibrated.
const (
	fewTrials    = 0.8 // collectives of one step are not independent
	beforeStart  = 0.7 // the cause was not recorded
	clockVague   = 0.7 // the clocks are known no better than the gap
	eitherHost   = 0.5 // a host is as good an explanation
	eitherIdle   = 0.8 // idleness is mostly the host's, but may be a dependency's
	eitherTwin   = 0.5 // another process is as good a culprit
	clockStrange = 0.5 // clocks of one host that are seconds apart: another run's file?
)

// seenShare returns the share of the world's ranks that was seen per step. Of those that have
// nothing to do with who was seen nothing is asked.
func (in stretch) seenShare() float64 {
	seen, all := 0, 0
	for _, rec := range in {
		seen += len(rec.ranks)
		all += len(rec.ranks)
		if !rec.apart {
			all += rec.missingCount
		}
	}
	return float64(seen) / float64(max(1, all))
}

// maxHostSpread is how far apart the clocks of processes of one host can be read:
// they are one clock. A second leaves room for hosts that share a name.
const maxHostSpread = time.Second

// strangeHost returns a host whose ranks' clocks differ by more than one clock
// can, and by how much.
func (in stretch) strangeHost() (host string, spread time.Duration) {
	type span struct{ low, high time.Duration }
	hosts := map[string]span{}
	for _, r := range in[len(in)-1].ranks {
		if r.rank.HostName == "" {
			continue
		}
		s, ok := hosts[r.rank.HostName]
		if !ok {
			s = span{r.offset, r.offset}
		}
		s = span{min(s.low, r.offset), max(s.high, r.offset)}
		hosts[r.rank.HostName] = s
		if d := s.high - s.low; d > maxHostSpread && d > spread {
			host, spread = r.rank.HostName, d
		}
	}
	return host, spread
}

// confidence lowers what the judge is sure of by what the engine knows besides.
func (c *candidate) confidence(ev *evidence.Straggler) float64 {
	v := c.Confidence
	lower := func(factor float64, why string) {
		v *= factor
		ev.LoweredBy = append(ev.LoweredBy, why)
	}
	if c.few {
		lower(fewTrials, fmt.Sprintf("steps judged: %d, fewer than %d", len(c.in), minTrials))
	}
	if c.before >= 0.5 {
		lower(beforeStart, "the cause precedes the recording")
	}
	if ev.Decisive != nil && ev.ClockSigma > ev.Decisive.Gap && c.place.sort == placeRank {
		lower(clockVague, "clock offsets are as uncertain as the gap")
	}
	if ev.Undivided = c.undivided(); ev.Undivided {
		lower(eitherIdle, "no launches say whether its host was late, or its device "+c.otherwise())
	}
	if c.place.sort == placeRank && c.Class == model.ClassHost && c.in.hostless(c.Rank) {
		lower(clockVague, "its host and its device are stamped by clocks that contradict each other")
	}
	if c.twin {
		lower(eitherTwin, "two processes say that they are this rank")
	}
	if host, spread := c.in.strangeHost(); host != "" {
		lower(clockStrange, fmt.Sprintf("clocks of host %s differ by %v: files of different runs?", host, spread.Round(time.Millisecond)))
	}
	if c.place.sort == placeStage && c.Host != "" {
		lower(eitherHost, fmt.Sprintf("host %s holds this stage and nothing else: it may be slow instead", c.Host))
	}
	switch ranks, members := c.in.seenShare(), c.in.seenMembers(); {
	case ranks <= members && ranks < 1:
		lower(ranks, missingWords(ev.MissingRanks, ev.MissingCount))
	case members < 1:
		lower(members, "members of collectives that were not seen")
	}
	if doubt := c.doubt(); doubt < 1 {
		lower(doubt, fmt.Sprintf("it may itself have waited %v a step for who was not seen", time.Duration(c.stayed*1e9).Round(time.Microsecond)))
	}
	return certainty(v)
}

// undivided reports whether a host is accused of idleness of which neither launches nor scopes
// say whose it is.
func (c *candidate) undivided() bool {
	if c.place.sort != placeRank || c.Class != model.ClassHost || c.Op != model.OpOther {
		return false
	}
	idle := c.in.excess(c.Rank, func(r *rankRecord) int64 { return r.own.idle })
	return 2*c.in.excess(c.Rank, func(r *rankRecord) int64 { return r.undivided }) > max(0, idle)
}

// otherwise is what the device may have done in idleness that nothing divides.
func (c *candidate) otherwise() string {
	if c.in.someDark() {
		return "did what was not recorded"
	}
	return "waited for something else"
}

// mostCost returns what the candidate may cost at most, 0 where that is what it costs.
func (c *candidate) mostCost() float64 {
	most := max(c.most, c.whole())
	if most <= c.worth() {
		return 0
	}
	return most
}

// leastCost returns what the candidate costs at least, nil where that is what it costs: a
// replay of steps of which something was lost gains less than there is.
func (c *candidate) leastCost() *float64 {
	if c.least != nil || c.mostCost() == 0 {
		return c.least
	}
	return &c.cost
}

// copied returns a pointer to a copy, which a later change of the candidate does not reach.
func copied[T any](of *T) *T {
	if of == nil {
		return nil
	}
	v := *of
	return &v
}

// finite leaves out what JSON cannot say.
func finite(of map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for name, x := range of {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			out[name] = x
		}
	}
	return out
}

// bounded returns a number that JSON can say.
func bounded(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return max(-math.MaxFloat32, min(math.MaxFloat32, x))
}

// certainty rounds a probability to what a confidence may say.
func certainty(v float64) float64 { return math.Round(100*min(0.99, max(0.01, v))) / 100 }

// maxNamed is how many missing ranks a sentence names.
const maxNamed = 8

func missingWords(first []int64, count int) string {
	switch {
	case len(first) == 0:
		return "steps that not all ranks delivered"
	case count > maxNamed:
		return fmt.Sprintf("%d missing ranks", count)
	default:
		return "missing ranks: " + strings.Trim(fmt.Sprint(first), "[]")
	}
}
