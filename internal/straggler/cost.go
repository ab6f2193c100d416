// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
	"github.com/lockstep-otel/lockstep/internal/straggler/blame"
)

// How a cost was found, for the evidence.
const (
	byMedian  = "replay with its segments at its peers' median"
	byShrink  = "replay with its own time shortened by its excess"
	byEven    = "replay with everybody's segments at the mean of their role"
	byWire    = "replay with its sends as fast as its peers'"
	byPassage = "replay with its transfers shortened by their excess"
	byChange  = "typical step after the change less that before"
	byWalks   = "replay of the walked steps' operations without its excess"
	byLastOne = "replay of steps' operations without their excess"

	byEvened    = "replay of steps' operations with everybody's work at the mean of their role"
	byUnheld    = "replay of steps' operations with no host held up beyond its peers"
	byLighter   = "replay of steps' operations with the stage's work shortened by its excess"
	byTransfers = "replay of steps' operations with its transfers shortened by their excess"
	byUnpaused  = "steps with such pauses less the typical one without, up to what was paused"
	byNoPause   = "replay with no host held up for as long as its pauses"
	byPace      = "excess of the stage over the others: a pipeline goes at the pace of its slowest"
)

// byOperations are the costs by replay of operations, which what others cost is taken from
// in the same way.
var byOperations = []string{byTransfers, byEvened, byUnheld, byLighter, byLastOne}

// measure fills what the candidate costs.
func (j *job) measure(c *candidate) {
	for _, rank := range c.Ranks {
		x, steps := c.in.excessOf(rank)
		c.excess = c.excess.plus(x)
		c.steps = max(c.steps, steps)
		c.caused += c.in.caused(rank) / float64(len(c.in))
		c.perhaps += c.in.perhapsCaused(rank)
	}
	if all := c.in.allCaused() / float64(len(c.in)); c.caused > 0 {
		c.waitShare = c.caused / max(c.caused, all)
	}
	switch c.place.sort {
	case placeJob:
		c.cost, c.costBy = j.change(c), byChange
	case placeStage:
		if c.cost, c.costBy = c.replayed(); c.cost < c.Mean && c.messaged() {
			c.cost, c.costBy = c.Mean, byPace
			if saved, ok := j.lastWithout(c); ok && saved > 0 {
				c.cost, c.costBy = saved, byLighter
			}
		}
	case placeLink, placeGroup:
		c.cost, c.costBy = c.replayed()
		if saved, ok := j.lastWithout(c); ok {
			c.cost, c.costBy = saved, byTransfers
		}
	case placeWork:
		c.cost, c.costBy = c.replayed()
		if saved, ok := j.lastWithout(c); ok && (saved > 0 || !c.in.someDark()) {
			c.cost, c.costBy = saved, byEvened
		}
	case placeAll:
		if saved, ok := c.longerHeld(); ok {
			c.cost, c.costBy = saved, byUnpaused
			break
		}
		c.cost, c.costBy = c.replayed()
		if saved, ok := j.lastWithout(c); ok && saved > c.cost {
			c.cost, c.costBy = saved, byUnheld
		}
	case placeHost:
		c.cost, c.costBy = c.replayed()
		if saved, ok := j.lastWithout(c); ok && !c.in.someDark() {
			c.cost, c.costBy = saved, byLastOne
		}
	case placeRank:
		c.before = c.in.beforeWindow(c.Rank)
		if saved, ok := c.longerHeld(); ok && c.Intermittent && !c.steadily() {
			c.cost, c.costBy = saved, byUnpaused
			return
		}
		c.cost, c.costBy = c.replayed()
		if saved := j.walksWithout(c); saved > c.cost && !c.in.dark(c.Rank) {
			c.cost, c.costBy = saved, byWalks
		}
		// Where spans were lost, the path may end before it comes to the rank.
		if j.walks.holed() && !c.in.someDark() {
			if saved, ok := j.lastWithout(c); ok && saved > c.cost {
				c.cost, c.costBy = saved, byLastOne
			}
		}
		c.cost = c.atMost(c.cost)
	default:
		c.cost, c.costBy = c.replayed()
	}
	c.bound()
}

// messaged reports whether the candidate's ranks send messages, as stages of a pipeline do.
func (c *candidate) messaged() bool {
	last := c.in[len(c.in)-1]
	return slices.ContainsFunc(last.meets, func(mr *meetingRecord) bool {
		return mr.rule == waitForSender && slices.ContainsFunc(mr.ranks, func(r int64) bool { return slices.Contains(c.Ranks, r) })
	})
}

// walksWithout returns what the walked steps of the candidate's stretch would take less
// without its rank's excess, s per step. Segments between rendezvous say little of a rank
// that only sends and receives, or whose own group always waits for it. (Where nothing but
// communication was recorded, they are all there is.)
func (j *job) walksWithout(c *candidate) float64 {
	first, last := c.in[0].step, c.in[len(c.in)-1].step
	sum, steps := 0.0, 0
	for i := range j.walks.steps {
		w := &j.walks.steps[i]
		if !w.replayed || w.step < first || w.step > last {
			continue
		}
		steps++
		for k := range w.causes {
			if a := &w.causes[k]; a.rank == c.Rank && a.class != model.ClassLink {
				sum += max(0, a.saved)
			}
		}
	}
	return sum / float64(max(1, steps))
}

// lastWithout returns what mending the candidate saves of the last step that was walked, as
// without does.
func (j *job) lastWithout(c *candidate) (float64, bool) {
	return j.without(c.in, question{c.place.key(), c.mends(j)})
}

// mends returns what a replay of operations takes to be mended; nil where it is not asked.
func (c *candidate) mends(j *job) func(*record) []blame.Mend {
	switch c.place.sort {
	case placeLink, placeGroup:
		return c.faster
	case placeWork:
		return j.evened
	case placeAll:
		return unheld
	case placeStage:
		return c.lighter
	case placeRank, placeHost:
		return asPeers(c.Ranks)
	}
	return nil
}

// asPeers mends all that ranks do by themselves.
func asPeers(ranks []int64) func(*record) []blame.Mend {
	return func(*record) (mends []blame.Mend) {
		for _, r := range ranks {
			mends = append(mends, blame.Own(r)...)
		}
		return mends
	}
}

// faster shortens the transfers of the candidate's link by their excess. Between
// rendezvous nothing is to be seen of transfers that run beside computing and hold up the
// next ones.
func (c *candidate) faster(rec *record) []blame.Mend {
	m, _ := c.mending()
	less := map[int32]int64{}
	for k, mr := range rec.meets {
		by := mr.wireRelief(m.links)
		for i := range m.passages {
			by = max(by, m.passages[i].relief(mr))
		}
		if by > 0 {
			less[int32(k)] = by
		}
	}
	return []blame.Mend{{Kind: blame.Link, Less: less}}
}

// unheld takes away what all hosts are held up by beyond their peers.
func unheld(*record) []blame.Mend { return []blame.Mend{{Rank: -1, Peer: -1, Kind: blame.Host}} }

// lighter has the candidate's stage compute no more than the others.
func (c *candidate) lighter(*record) []blame.Mend {
	return []blame.Mend{{Rank: -1, Peer: -1, Kind: blame.Stage, Stage: c.Stage, Scale: 1 / (1 + c.Share)}}
}

// evened shares all work of a role evenly, over its ranks and over its microbatches.
func (j *job) evened(*record) []blame.Mend {
	return []blame.Mend{{Kind: blame.Work, Alike: j.keys.alike}}
}

// replayed returns what mending the candidate saves per step.
func (c *candidate) replayed() (cost float64, by string) {
	m, by := c.mending()
	return max(0, float64(replay(c.in, m))) / 1e9 / float64(len(c.in)), by
}

// saved returns how much less the stretch takes without the candidates, s.
func (in stretch) saved(of ...*candidate) float64 {
	m := mending{ranks: map[int64]bool{}, links: map[int64]bool{}, shrink: map[int64]float64{}}
	for _, c := range of {
		one, _ := c.mending()
		m.add(one)
	}
	return float64(replay(in, m)) / 1e9
}

// beyond takes from what is nobody's fault the cost that others explain: those at fault,
// and what else is nobody's. Stages are asked about each for itself, and what one is worth
// once the others are mended comes beside.
func (j *job) beyond(c *candidate, named []*candidate) {
	if c.place.accuses() || c.place.sort == placeJob || c.costBy == byUnpaused {
		return // others hold up steps with and without pauses alike
	}
	others := slices.DeleteFunc(slices.Clone(named), func(o *candidate) bool {
		return o.place.sort == c.place.sort
	})
	switch {
	case len(others) == len(named):
	case c.costBy == byPace:
		c.beside = c.Mean
	default:
		c.beside = j.marginal(c, named)
	}
	if len(others) > 0 {
		c.cost = j.marginal(c, others)
		c.costBy += ", those at fault mended before"
	}
}

// paced takes from what stages cost by the pace of the pipeline what the next slowest
// makes of it.
func paced(suspects []*candidate) {
	for _, c := range suspects {
		for _, o := range suspects {
			if c.costBy == byPace && o != c && o.place.sort == placeStage {
				c.cost = min(c.cost, max(0, c.Mean-o.Mean))
			}
		}
	}
}

// marginal returns what mending the candidate saves per step once others are, s.
func (j *job) marginal(c *candidate, others []*candidate) float64 {
	if slices.Contains(byOperations, c.costBy) {
		if saved, ok := j.gained(c.in, j.mended(append(slices.Clone(others), c)), j.mended(others)); ok {
			return saved
		}
	}
	return max(0, c.in.saved(append(slices.Clone(others), c)...)-c.in.saved(others...)) / float64(len(c.in))
}

// besides finds what mending the candidate saves per step once all others are mended: by
// operations, and where these do not show it, by segments. Between rendezvous little is to
// be seen of who always waits for others of its group or for messages.
func (j *job) besides(c *candidate, all []*candidate) {
	rest := slices.DeleteFunc(slices.Clone(all), func(o *candidate) bool { return o == c })
	c.beside = 0
	if with, ok := j.without(c.in, j.mended(all)); ok && with > 0 && !c.in.someDark() {
		saved, _ := j.gained(c.in, j.mended(all), j.mended(rest))
		c.beside = c.atMost(saved)
	}
	if c.share(c.beside) < j.e.cfg.MinCostShare {
		c.beside = max(c.beside, c.atMost(max(0, c.in.saved(all...)-c.in.saved(rest...))/float64(len(c.in))))
	}
}

// alikeShare is within which factor ranks are slow alike.
const alikeShare = 2

// carries reports whether a rank is one of several that are slow alike and together cost
// enough, and carries its part of that, more or less: who mends the others would mend it,
// too.
func (j *job) carries(c *candidate, all []*candidate) bool {
	alike := slices.DeleteFunc(slices.Clone(all), func(o *candidate) bool {
		return o.place.sort != placeRank || o.Class != c.Class || max(o.Share, c.Share) > alikeShare*min(o.Share, c.Share)
	})
	if len(alike) < 2 || c.place.sort != placeRank || c.typicality() < 1/float64(alikeShare) {
		return false
	}
	cost := c.in.saved(alike...) / float64(len(c.in))
	if saved, ok := j.without(c.in, j.mended(alike)); ok && !c.in.someDark() {
		cost = max(cost, saved)
	}
	return c.share(cost) >= j.e.cfg.MinCostShare && alikeShare*c.beside >= cost/float64(len(alike))
}

// atMost bounds what mending a rank saves by what it takes longer than its peers.
func (c *candidate) atMost(cost float64) float64 {
	if c.place.sort != placeRank || c.before >= 0.5 || c.in.dark(c.Rank) {
		return cost
	}
	return min(cost, max(0, c.in.ownOf(c.Rank)-c.in.peersOwn(c.Rank))/1e9)
}

// names tells sets of candidates apart.
func names(of []*candidate) string {
	var keys []string
	for _, c := range of {
		keys = append(keys, c.place.key())
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// mendsOf returns what mends all of the candidates that hold in a step.
func (j *job) mendsOf(of []*candidate) func(*record) []blame.Mend {
	return func(rec *record) (out []blame.Mend) {
		for _, c := range of {
			if f := c.mends(j); f != nil && rec.step >= c.in[0].step && rec.step <= c.in[len(c.in)-1].step {
				out = append(out, f(rec)...)
			}
		}
		return out
	}
}

// joint returns what mending all of them saves per step, s: by replay of segments, or of
// operations, as their own costs were found. All are worth no less than one.
func (j *job) joint(named []*candidate) (joint float64) {
	if len(named) == 0 {
		return 0
	}
	segments, operations := false, false
	for _, c := range named {
		joint = max(joint, c.cost)
		switch {
		case c.costBy == byPace:
			joint = max(joint, c.Mean)
		case c.byOperations():
			operations = true
		default:
			segments = true
		}
	}
	if len(named) == 1 {
		return joint
	}
	whole := stretch(j.window)
	if operations {
		if saved, ok := j.without(whole, j.mended(named)); ok {
			joint = max(joint, saved)
		}
	}
	if segments {
		joint = max(joint, whole.saved(named...)/float64(len(whole)))
	}
	return joint
}

// byOperations reports whether the candidate's cost was found by replay of operations.
func (c *candidate) byOperations() bool {
	by, _, _ := strings.Cut(c.costBy, ",")
	return by == byWalks || slices.Contains(byOperations, by)
}

// change returns how much longer the typical step is since the change; what the judge
// remembers of it where no step before is kept.
func (j *job) change(c *candidate) float64 {
	lengths := func(in []*record) (v []float64) {
		for _, rec := range in {
			v = append(v, float64(rec.end-rec.start)/1e9)
		}
		slices.Sort(v)
		return v
	}
	at, _ := slices.BinarySearchFunc(j.window, c.First, func(rec *record, step int64) int { return int(rec.step - step) })
	if at < minTrials || len(j.window)-at < minTrials {
		return max(0, c.Excess)
	}
	return max(0, stats.Median(lengths(j.window[at:]))-stats.Median(lengths(j.window[:at])))
}

// wired reports whether waits on the wire of the rank's sends were compared.
func (in stretch) wired(rank int64) bool {
	return slices.ContainsFunc(in, func(rec *record) bool {
		i, ok := rec.index[rank]
		return ok && rec.ranks[i].wired
	})
}

// excessOf returns the rank's excess per step in which it was seen, ns.
func (in stretch) excessOf(rank int64) (mean own, steps int) {
	for _, rec := range in {
		if i, ok := rec.index[rank]; ok {
			steps++
			mean = mean.plus(rec.ranks[i].excess)
		}
	}
	n := int64(max(1, steps))
	return own{mean.compute / n, mean.overlapped / n, mean.idle / n}, steps
}
