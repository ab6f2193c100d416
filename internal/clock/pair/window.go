// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const (
	// evidence is how many samples of each direction the reach on either side of an
	// interval should hold: the slope and both envelopes need three.
	evidence = 6
	// hasty is how many it holds in a provisional estimate.
	hasty = 2.5
	// few is of how many exchanges one is made that trusts no line.
	few = 3
	// horizon is for how many windows Growth covers a wandering frequency.
	horizon = 4
)

// Close ends a window at reading a of Src, and returns what is now known of the
// readings before, oldest first; nothing while there is too little. All samples may be
// given before the first window is closed, and some may come after theirs: they serve
// what is not settled yet.
func (e *Estimator) Close(a int64) []Estimate {
	e.record(InputClose, a, 0, 0)
	a = min(max(a, -maxReading), maxReading)
	if e.late > 0 && e.upper.count == 0 && e.lower.count == 0 {
		e.restart() // Src reads less than it did: nothing that is kept can be compared
	}
	e.late = 0
	e.quarrel.look(e.upper.pending, e.lower.pending, e.cfg.MaxDrift)
	e.expel()
	e.upper.remember()
	e.lower.remember()
	e.upper.seal(e.cell(), 1)
	e.lower.seal(e.cell(), -1)
	e.stats.Overflow += int64(e.upper.bound(keptFactor*e.cfg.MaxSamples) + e.lower.bound(keptFactor*e.cfg.MaxSamples))
	newest, ok := e.newest()
	if !ok {
		return nil
	}
	a = min(a, newest)
	out := e.settle(a)
	if by, yes := e.quarrel.verdict(); yes {
		// What lies between is as wrong as the rest.
		e.stats.Contradicted++
		return e.quarrelling(a, by)
	}
	if len(out) > 0 {
		e.last, e.known = out[len(out)-1], true
	}
	e.keepBehind(e.reach(evidence))
	if !e.known || e.contradicted(a) {
		if latest, ok := e.provisional(a); ok {
			out = append(out, latest)
		}
	}
	past := e.done - int64(e.cfg.Window) - e.reach(evidence)
	e.upper.forget(e.done - int64(e.cfg.MaxFit) - int64(e.cfg.Window))
	e.lower.forget(e.done - int64(e.cfg.MaxFit) - int64(e.cfg.Window))
	e.upper.coarsen(past, 8*e.cell(), 1)
	e.lower.coarsen(past, 8*e.cell(), -1)
	return out
}

func (e *Estimator) restart() {
	e.begun, e.known, e.refuted, e.postponed = false, false, math.MinInt64, math.MinInt64
	e.turns, e.ahead, e.behind = e.turns[:0], math.MinInt64, e.behind[:0]
	for _, s := range []*side{&e.upper, &e.lower} {
		s.kept, s.tail = s.kept[:0], s.tail[:0]
	}
}

// newest is the latest reading of which there is a sample.
func (e *Estimator) newest() (t int64, ok bool) {
	t = math.MinInt64
	for _, s := range []*side{&e.upper, &e.lower} {
		if n := len(s.kept); n > 0 {
			t, ok = max(t, s.kept[n-1].t), true
		}
	}
	return t, ok
}

// oldest is the reading from which on there is a sample of each direction that has
// any.
func (e *Estimator) oldest() int64 {
	t := int64(math.MinInt64)
	for _, s := range []*side{&e.upper, &e.lower} {
		if len(s.kept) > 0 {
			t = max(t, s.kept[0].t)
		}
	}
	return t
}

// spacing is the mean distance of samples of the sparser direction, in ns.
func (e *Estimator) spacing() float64 {
	s := max(e.upper.spacing, e.lower.spacing)
	if s == 0 {
		return float64(e.cfg.Window)
	}
	return s
}

// reach is how far evidence is taken from, before and after an interval.
func (e *Estimator) reach(samples float64) int64 {
	return int64(min(max(samples*e.spacing(), float64(e.shortest())), float64(e.cfg.MaxFit)/4))
}

// shortest is the least reach.
func (e *Estimator) shortest() int64 { return int64(e.cfg.Window) * 3 / 8 }

func (e *Estimator) step() int64 {
	return max(int64(min(e.spacing(), float64(e.cfg.Window)/2)), e.cell())
}

// settle bounds what has enough evidence on both sides.
func (e *Estimator) settle(a int64) []Estimate {
	reach, step := e.reach(evidence), e.step()
	if !e.begun { // the pace is not well known yet, and the reach with it
		e.done = e.oldest() + reach
	}
	e.done = max(e.done, a-reach-int64(e.cfg.MaxFit))
	begin := e.done
	if n := len(e.behind); n > 0 && e.behind[n-1].until != begin {
		e.behind = e.behind[:0] // some time was left out
	}
	e.intervals = append(e.intervals[:0], e.behind...)
	for ; e.done <= a-reach-step; e.done += step {
		e.intervals = append(e.intervals, e.interval(e.done, e.done+step, reach))
		e.begun = true
	}
	if e.done == begin {
		return nil
	}
	e.distrust(reach)
	e.notice(reach)
	for _, i := range e.intervals {
		if i.changed() {
			e.count(i.from, reach)
		}
	}
	out := slices.DeleteFunc(e.describe(reach), func(o Estimate) bool { return o.Until <= begin })
	out = bothSides(e.postpone(out, begin))
	e.label(out)
	e.doubt(out)
	e.share(out)
	return out
}

// postpone leaves to the next Close what would come last, tells of no change and is
// vague, as where no message came for a while: who keeps the newest estimate of a pair
// would take it in the place of a better one that goes on. It is left once only.
func (e *Estimator) postpone(out []Estimate, begin int64) []Estimate {
	n := len(out)
	for n > 0 {
		before, known := e.last, e.known
		if n > 1 {
			before, known = out[n-2], true
		}
		o := &out[n-1]
		if !known || o.From <= e.postponed || !o.continues(before) || !o.vague(before) || e.changedSince(o.From) {
			break
		}
		n--
	}
	if n < len(out) {
		e.done = max(out[n].From, begin)
		e.postponed = e.done
	}
	return out[:n]
}

// keepBehind keeps the last intervals that are settled, for the next estimate to speak of
// as well. None is from before the middle of the last one: the middles of estimates in a
// row go on.
func (e *Estimator) keepBehind(reach int64) {
	since := e.done - min(int64(e.cfg.Overlap), reach-e.shortest())
	if e.known {
		since = max(since, e.last.At)
	}
	e.behind = e.behind[:0]
	for _, i := range e.intervals {
		lower, upper := i.bounded()
		switch {
		case i.until > e.done || i.from < since:
		case !i.found || i.changed() || !lower || !upper:
			e.behind = e.behind[:0]
		default:
			e.behind = append(e.behind, i)
		}
	}
}

// vague reports whether an estimate tells much less than the one before, as it goes on.
func (e *Estimate) vague(before Estimate) bool {
	if !before.HasLower || !before.HasUpper {
		return false
	}
	lower, upper := before.BoundsAt(e.Until)
	return !e.HasLower || !e.HasUpper || e.DriftBound > clumsy*before.DriftBound ||
		float64(e.Upper)-float64(e.Lower) > clumsy*(float64(upper)-float64(lower))
}

func (e *Estimator) changedSince(from int64) bool {
	return slices.ContainsFunc(e.intervals, func(i interval) bool { return i.until > from && i.changed() })
}

// bothSides leaves out what is bounded on one side where something is on both: behind a gap
// in one direction it would come last, and stand for the window.
func bothSides(out []Estimate) []Estimate {
	one := func(o Estimate) bool { return !o.HasLower || !o.HasUpper }
	if slices.ContainsFunc(out, func(o Estimate) bool { return !one(o) }) {
		out = slices.DeleteFunc(out, one)
	}
	return out
}

// distrust drops what rests on one side alone where the clocks are seen to have
// changed more than once within the same evidence: the other side may be as wrong.
func (e *Estimator) distrust(reach int64) {
	for k, i := range e.intervals {
		if i.contradicted < 2 {
			continue
		}
		e.refuted = i.until + reach
		for j := range e.intervals[:k] {
			if o := &e.intervals[j]; o.contradicted > 0 && o.until+reach >= i.from-reach {
				o.found = false
			}
		}
	}
	for j := range e.intervals {
		if o := &e.intervals[j]; o.contradicted > 0 && o.from-reach <= e.refuted {
			o.found = false
		}
	}
}

// provisional bounds the latest readings by what there is.
func (e *Estimator) provisional(a int64) (Estimate, bool) {
	reach, step := e.reach(hasty), e.step()
	e.intervals = e.intervals[:0]
	for t := max(e.done-e.reach(evidence), e.oldest()); t <= a-reach/2-step; t += step {
		e.intervals = append(e.intervals, e.interval(t, t+step, reach))
	}
	var est Estimate
	if out := e.describe(reach); len(out) > 0 && !slices.ContainsFunc(e.intervals, interval.changed) {
		est = out[len(out)-1]
	} else if coarse, ok := e.coarse(a); ok {
		est = coarse
	} else {
		return est, false
	}
	est.Provisional = true
	est.Stepped = e.known && !est.continues(e.last)
	est.Samples = int64(len(e.upper.between(est.From, est.Until)) + len(e.lower.between(est.From, est.Until)))
	return est, true
}

// changed reports whether a clock changed somewhere in the interval's evidence.
func (i interval) changed() bool { return i.contradicted > 0 || i.torn }

// contradicted reports whether samples since the last settled estimate, up to a, lie
// outside of what it allows. One alone may bear a wrong stamp: then it contradicts the
// nearest of the other direction as well, mostly of the same exchange, where after a
// change both agree. If it does, the next of its direction has to say the same.
func (e *Estimator) contradicted(a int64) bool {
	up, low := e.upper.between(e.last.Until, a), e.lower.between(e.last.Until, a)
	return e.refutes(up, low, 1) || e.refutes(low, up, -1)
}

func (e *Estimator) refutes(own, others []sample, sign float64) bool {
	before, j := false, 0
	for _, s := range own {
		lower, upper := e.last.BoundsAt(s.t)
		outside := sign > 0 && s.v < lower || sign < 0 && s.v > upper
		if !outside {
			before = false
			continue
		}
		for j < len(others) && others[j].t < s.t {
			j++
		}
		near := others[max(j-1, 0):j]
		if j < len(others) && (j == 0 || others[j].t-s.t < s.t-others[j-1].t) {
			near = others[j : j+1]
		}
		if before || contradicting(s, near, e.last.Drift, sign) == 0 {
			return true
		}
		before = true
	}
	return false
}

// coarse bounds the time of the last few exchanges by what single samples say, with
// MaxDrift between them and the reading. It trusts no line: between two samples a
// clock may have been stepped, but at each reading the truth goes on, without a step,
// to the sample before or to the one after, so that the widest of all samples bound
// it. Where they are so far apart that there must have been a step, nothing is said.
func (e *Estimator) coarse(a int64) (Estimate, bool) {
	span := int64(min(float64(e.cfg.Window), few*e.spacing()))
	up, low := e.upper.between(a-span, a), e.lower.between(a-span, a)
	est := Estimate{
		Lower: model.NoLower, Upper: model.NoUpper, HasLower: len(low) > 0, HasUpper: len(up) > 0,
		DriftBound: e.cfg.MaxDrift, Growth: e.cfg.MaxDrift,
	}
	switch {
	case est.HasLower && est.HasUpper:
		first, last := max(up[0].t, low[0].t), min(up[len(up)-1].t, low[len(low)-1].t)
		est.From, est.Until = min(first, last), max(first, last)
	case est.HasUpper:
		est.From, est.Until = up[0].t, up[len(up)-1].t
	case est.HasLower:
		est.From, est.Until = low[0].t, low[len(low)-1].t
	default:
		return Estimate{}, false
	}
	est.At = est.From + (est.Until-est.From)/2
	// What the samples say together, were there no step, tells whether there was one.
	least, most := int64(model.NoUpper), int64(model.NoLower)
	half := float64(est.Until-est.From) / 2
	est.Upper, est.Lower = model.NoLower, model.NoUpper
	for _, s := range up {
		v := upwards(s.v, e.cfg.MaxDrift*(half+math.Abs(float64(s.t-est.At))))
		est.Upper, least = max(est.Upper, v), min(least, v)
	}
	for _, s := range low {
		v := downwards(s.v, -e.cfg.MaxDrift*(half+math.Abs(float64(s.t-est.At))))
		est.Lower, most = min(est.Lower, v), max(most, v)
	}
	if most > least {
		return Estimate{}, false
	}
	if !est.HasUpper {
		est.Upper = model.NoUpper
	}
	if !est.HasLower {
		est.Lower = model.NoLower
	}
	est.centre()
	return est, true
}

// centre puts an estimate without a line into the middle of its bounds.
func (e *Estimate) centre() {
	switch {
	case e.HasLower && e.HasUpper:
		e.Offset = e.Lower + (e.Upper-e.Lower)/2
		e.Sigma = float64(e.Upper-e.Lower) / math.Sqrt(12)
	case e.HasLower:
		e.Offset = e.Lower
	default:
		e.Offset = e.Upper
	}
}
