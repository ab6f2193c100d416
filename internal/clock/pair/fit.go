// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"math"
	"math/bits"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

const (
	// calm is how much less than Wander the frequency is believed to change: what
	// the estimate may rest on, and no bound.
	calm = 0.1
	// lengths is how many lengths of what was before are compared, each twice the one before.
	lengths = 6
	// agree is within how many standard deviations of the shorter fits a longer one
	// must lie to be taken (Lepski's rule): a change of frequency that is too small
	// for the bounds to contradict bends the longer ones first.
	agree = 6
	// enough is of how many comparisons of halves a median is relied on.
	enough = 3
	// telling is how many samples of each direction a fit rests on that can contradict a
	// longer one: of fewer the soonest is soon by chance.
	telling = 24
	// spans is how many lengths of evidence the noise is kept of, each up to twice the one before.
	spans = 13
)

// recent holds the last values of something that now and then is far off.
type recent struct {
	last  [remembered]float32
	order [remembered]uint8 // their places, the least first
	n     int
}

// remembered is of how many values recent tells the median: half a minute of windows.
const remembered = 15

func (r *recent) learn(v float64) {
	at, count := r.n%remembered, min(r.n+1, remembered)
	i := count - 1
	if r.n >= remembered {
		i = slices.Index(r.order[:], uint8(at))
	}
	r.last[at] = float32(v)
	for ; i > 0 && r.last[r.order[i-1]] > r.last[at]; i-- {
		r.order[i] = r.order[i-1]
	}
	for ; i+1 < count && r.last[r.order[i+1]] < r.last[at]; i++ {
		r.order[i] = r.order[i+1]
	}
	r.order[i] = uint8(at)
	if r.n++; r.n == 2*remembered {
		r.n = remembered
	}
}

// median is that of the last values, 0 while they are not enough to rely on it, and by what
// factor so few of them may understate it.
func (r *recent) median() (v, doubt float64) {
	n := min(r.n, remembered)
	if n < enough {
		return 0, 0
	}
	return float64(r.last[stats.MedianHigh(r.order[:n])]), 1 + 3/float64(n)
}

// noise is what is known of fits to evidence of one length: how far apart the lines are
// that rest on its even and on its odd cells of time, and how wide their strips.
type noise struct{ apart, width recent }

// halvesApart is the median distance of both halves, in standard deviations of the whole: the
// soonest of half as many samples is twice as late, and there are two of them.
const halvesApart = 0.6745 * 2 * math.Sqrt2

// soonest is how many times late the soonest of n samples is believed to be at least, in
// shares 1/n of the usual strip. Long fits of windows in a row rest on the same samples
// mostly, so that the last comparisons of their halves are worth two or three: of pairs that
// are equally good some would seem many times better, and who goes by sigmas would go by
// those alone.
const soonest = 3

// sigma is the standard deviation of a line whose strip is so wide. One that is wider than
// usual lacks prompt samples of one direction or both, and the middle can be off by half of
// what is too much. Until enough was compared it is taken from the width, which is too much.
func (n *noise) sigma(width float64) float64 {
	apart, doubt := n.apart.median()
	if doubt == 0 {
		return max(width/4, 1)
	}
	usual, _ := n.width.median()
	return max(math.Hypot(doubt*apart/halvesApart, max(0, width-usual)/4), 1)
}

// least is what sigma is believed to be at least, of so many samples of the sparser direction.
// It is for who weighs pairs against one another: evidence that does not belong to one line
// is told by less.
func (n *noise) least(samples int) float64 {
	usual, _ := n.width.median()
	return soonest / float64(samples) * usual
}

// doubt widens the sigmas of estimates to what they do from one to the next. Errors
// of stamps that last longer than a cell, such as those of the clocks by which the
// kernel's stamps are placed, are the same in both halves; but they do not last from
// window to window. Nor is anything known better than two stamps of the resolution can
// tell.
func (e *Estimator) doubt(out []Estimate) {
	before, known := e.last, e.known
	for i := range out {
		o := &out[i]
		if o.Sigma > 0 && o.DriftBound > 0 {
			if known && before.Sigma > 0 && !o.Stepped && o.From-before.Until <= int64(e.cfg.Window) && e.era(o.From) == e.era(before.Until) {
				e.jumps.learn(math.Abs(float64(o.OffsetAt(o.From) - before.OffsetAt(o.From))))
			}
			jump, _ := e.jumps.median()
			o.Sigma = max(o.Sigma, jump/jumpsApart, float64(e.cfg.Resolution)/math.Sqrt(6))
		}
		before, known = *o, true
	}
}

// jumpsApart is the median distance of two estimates in a row, in their standard deviations.
const jumpsApart = 0.6745 * math.Sqrt2

// fitting is the search for the longest evidence that agrees with all shorter ones.
type fitting struct {
	accepted [lengths + 2]line
	sigmas   [lengths + 2]float64
	least    float64           // of the last
	few      [lengths + 2]bool // rests on too few samples to contradict a longer one
	n        int
}

func (f *fitting) best() (l line, sigma float64, ok bool) {
	if f.n == 0 {
		return line{}, 0, false
	}
	return f.accepted[f.n-1], math.Hypot(f.sigmas[f.n-1], f.least), true
}

// fit is the line between the envelopes of all evidence around [from, until] that
// belongs to one line, at the anchor, and its standard deviation. What lies beyond a change
// that the bounds are sure of is no evidence.
func (e *Estimator) fit(from, until, reach int64, o sample) (best line, sigma float64, ok bool) {
	var f fitting
	first, last := e.steady(from, until)
	from, until = max(from, first), min(until, last)
	e.chains.begin(until, o)
	e.lengthen(&f, from, until)
	if later := min(until+reach, last); later > until {
		e.chains.begin(later, o)
		if e.lengthen(&f, from, later) {
			until = later
		} else {
			e.chains.begin(until, o)
		}
	}
	for j := range lengths {
		back := reach << j
		if back > int64(e.cfg.MaxFit) || !e.lengthen(&f, max(from-back, first), until) || from-back <= first {
			break
		}
	}
	return f.best()
}

// lengthen takes a length of evidence if it agrees with what was taken before.
func (e *Estimator) lengthen(f *fitting, from, until int64) bool {
	e.chains.extend(&e.finder, from)
	all := &e.chains.of[every]
	l, width, ok := e.line(all)
	if !ok {
		return false
	}
	for i := range f.n {
		if !f.few[i] && math.Abs(l.A-f.accepted[i].A) > agree*f.sigmas[i] {
			return false
		}
	}
	n := &e.noise[e.length(from, until)]
	e.compare(n, width)
	samples := min(all.ups, all.lows)
	f.few[f.n] = samples < telling
	f.accepted[f.n], f.sigmas[f.n], f.least = l, n.sigma(width), n.least(samples)
	if f.n > 0 { // what agrees with less is no worse than that
		f.sigmas[f.n] = min(f.sigmas[f.n], f.sigmas[f.n-1])
	}
	f.n++
	return true
}

// compare learns from both halves of the evidence.
func (e *Estimator) compare(n *noise, width float64) {
	var halves [2]line
	for parity := range halves {
		l, _, ok := e.line(&e.chains.of[parity])
		if !ok {
			return
		}
		halves[parity] = l
	}
	n.apart.learn(math.Abs(halves[0].A - halves[1].A))
	n.width.learn(width)
}

// length is the place of what is known of the noise of so long evidence.
func (e *Estimator) length(from, until int64) int {
	return min(bits.Len64(uint64(max(until-from, 0)/e.cell())), spans-1)
}

// every takes the samples of all cells, 0 and 1 those of even and odd ones.
const every = 2

// chains are the evidence of a fit, which grows into the past: all of it, and its halves.
type chains struct {
	of   [every + 1]chain
	from int64
	o    sample // the anchor
}

// chain is the hulls of evidence, the latest point first, and of how many samples they are.
type chain struct {
	up, low   []point
	ups, lows int
	widths    float64 // of all of them together
}

// wrong is what a sample is mostly wrong by at most.
func (c *chain) wrong() float64 { return c.widths / float64(c.ups+c.lows) }

// begin makes the evidence end at a reading.
func (c *chains) begin(until int64, o sample) {
	for i := range c.of {
		c.of[i] = chain{up: c.of[i].up[:0], low: c.of[i].low[:0]}
	}
	c.from, c.o = until+1, o
}

// extend takes what is between a reading and what is there.
func (c *chains) extend(f *finder, from int64) {
	if from >= c.from {
		return
	}
	cell := f.cell()
	up := f.upper.between(from, c.from-1)
	for i := len(up) - 1; i >= 0; i-- {
		p := c.point(f, up[i], 1)
		for _, half := range [2]int64{every, up[i].t / cell & 1} {
			to := &c.of[half]
			to.up = push(to.up, p, 1, -1)
			to.ups++
			to.widths += float64(up[i].width)
		}
	}
	low := f.lower.between(from, c.from-1)
	for i := len(low) - 1; i >= 0; i-- {
		p := c.point(f, low[i], -1)
		for _, half := range [2]int64{every, low[i].t / cell & 1} {
			to := &c.of[half]
			to.low = push(to.low, p, -1, -1)
			to.lows++
			to.widths += float64(low[i].width)
		}
	}
	c.from = from
}

// point is where the stamps say that the offset is. What they can be wrong by is for bounds:
// it differs from sample to sample by more than their errors do, and as part of a delay it
// would choose which samples count.
func (c *chains) point(f *finder, s sample, sign float64) point {
	x := float64(s.t - c.o.t)
	return point{x, float64(s.v-c.o.v) + sign*(calm*f.slack(x)-float64(s.width))}
}

// line is the middle of the widest strip between the envelopes, and the strip's width. Where
// stamps are wrong by more than messages take, envelopes cross, and are a line if it is by
// no more than that.
func (e *Estimator) line(c *chain) (mid line, width float64, ok bool) {
	if len(c.up) == 0 || len(c.low) == 0 {
		return line{}, 0, false
	}
	if mid, width = widest(c.up, c.low, e.cfg.MaxDrift); width < -2*c.wrong() {
		return e.vague(c, mid, width) // they contradict one another, or are few
	}
	for _, b := range [2]float64{mid.B - e.cfg.MaxDrift/2, mid.B + e.cfg.MaxDrift/2} {
		if high, low := strip(c.up, c.low, b); high >= low {
			return e.vague(c, mid, width)
		}
	}
	return mid, math.Abs(width), true
}

// vague is the line where there may be none, or too few samples to tell a drift.
func (e *Estimator) vague(c *chain, mid line, width float64) (line, float64, bool) {
	e.before.clip(c.up, c.low, e.cfg.MaxDrift)
	if e.before.empty() {
		return line{}, 0, false
	}
	if lo, hi := e.before.drift(); hi-lo > e.cfg.MaxDrift {
		b := lo + (hi-lo)/2
		high, low := strip(c.up, c.low, b)
		return line{A: low + (high-low)/2, B: b}, math.Abs(high - low), true
	}
	return mid, math.Abs(width), true
}
