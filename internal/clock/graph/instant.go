// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// place gives every clock its base: its reading at an instant that all clocks of
// its component share, as far as a tree of edges tells. The instant is one
// that most of the new edges cover, so that one edge from elsewhen moves nothing. It
// reports which links are too old.
func (p *problem) place() (old []int32) {
	reached := p.spread(nil)
	news := p.haveNews()
	shift := p.instants(news, reached)
	reached = p.spread(shift)
	p.measure(news, reached)
	horizon := p.opt.Horizon.Nanoseconds()
	for i := range p.links {
		l := &p.links[i]
		lag, ok := p.age(l, reached)
		if !ok {
			l.aside = true
		}
		if l.slot >= 0 && (!ok || lag > horizon || lag < -horizon) {
			old = append(old, l.slot)
		}
	}
	return old
}

// measure tells how far before and after its component's instant most edges hold: the time
// for which bounds are stated. Some that were split do not make it shorter.
func (p *problem) measure(news, reached []bool) {
	back, ahead := make([][]int64, len(p.group)), make([][]int64, len(p.group))
	halves, most, current := make([][]int64, len(p.group)), p.opt.Window.Nanoseconds(), p.current()
	for i := range p.links {
		l := &p.links[i]
		g := p.group[l.src]
		// A component without news stays at the moment of its old edges.
		if g < 0 || !l.joins() || !reached[l.src] || !l.fresh && news[g] || current[g] && p.belated(l) {
			continue
		}
		halves[g] = append(halves[g], min(l.Span/2, most/2))
		lag := p.lag(l)
		if s := (span{lag - l.Span/2, lag + l.Span/2}); s.holds(0) {
			back[g], ahead[g] = append(back[g], -s.from), append(ahead[g], s.until)
		}
	}
	for g := range p.window {
		p.window[g] = window(usual(back[g]), usual(ahead[g]), most)
		// In the beginning edges are short and of different times.
		if w := &p.window[g]; w.until-w.from < most/2 && len(halves[g]) > 0 {
			slices.Sort(halves[g])
			half := stats.MedianHigh(halves[g])
			*w = span{-half, half}
		}
	}
}

// usual is what all but one in eight exceed.
func usual(v []int64) int64 {
	slices.Sort(v)
	return stats.QuantileHigh(v, 1./8)
}

// window is the time around the instant that is no longer than most, as even as it can be.
func window(back, ahead, most int64) span {
	return span{-min(back, max(most/2, most-ahead)), min(ahead, max(most/2, most-back))}
}

// age is the lag of a link, by the one of its clocks that has a component; false
// where that clock is out of range of it.
func (p *problem) age(l *link, reached []bool) (int64, bool) {
	switch {
	case p.group[l.src] >= 0:
		return p.lag(l), reached[l.src]
	case p.group[l.dst] >= 0:
		at, ok := sum(l.At, l.offset)
		return at - p.base[l.dst], ok && reached[l.dst]
	}
	return 0, true
}

// haveNews tells which components have an edge that the last solution did not
// have, and that is not belated.
func (p *problem) haveNews() []bool {
	news := make([]bool, len(p.group))
	for i := range p.links {
		if l := &p.links[i]; l.joins() && l.fresh && p.group[l.src] >= 0 && !p.belated(l) {
			news[p.group[l.src]] = true
		}
	}
	return news
}

// lag is how much later than its clock's base an edge stands, in ns of its Src.
func (p *problem) lag(l *link) int64 { return l.At - p.base[l.src] }

// spread computes all bases from the references' along new edges first. Without
// shift a reference's base is the moment of one of its own edges; with it, it is
// moved by so much.
func (p *problem) spread(shift []int64) (reached []bool) {
	reached = make([]bool, len(p.group))
	var queue, later []int32
	for g, r := range p.reference {
		if r < 0 {
			continue
		}
		if shift == nil {
			p.base[r] = p.someMoment(r)
		} else {
			p.base[r], _ = sum(p.base[r], shift[g])
		}
		reached[r] = true
		queue = append(queue, r)
	}
	for len(queue) > 0 || len(later) > 0 {
		if len(queue) == 0 {
			queue, later = later, nil
		}
		c := queue[0]
		queue = queue[1:]
		stale := false
		for _, i := range p.of(c) {
			l := &p.links[i]
			o := l.other(c)
			if !l.joins() || reached[o] {
				continue
			}
			if !l.fresh {
				stale = true
				continue
			}
			if b, ok := p.across(l, c); ok {
				p.base[o], reached[o] = b, true
				queue = append(queue, o)
			}
		}
		if stale {
			later = append(later, c)
		}
		if len(queue) == 0 && len(later) > 0 {
			queue, later = p.spreadStale(later, reached), nil
		}
	}
	return reached
}

// spreadStale goes on along edges of earlier windows, where no new one leads.
func (p *problem) spreadStale(from []int32, reached []bool) (found []int32) {
	for _, c := range from {
		for _, i := range p.of(c) {
			l := &p.links[i]
			o := l.other(c)
			if !l.joins() || reached[o] {
				continue
			}
			if b, ok := p.across(l, c); ok {
				p.base[o], reached[o] = b, true
				found = append(found, o)
			}
		}
	}
	return found
}

// someMoment is a reading of the clock at which one of its links stands, a new
// one that takes part where there is one.
func (p *problem) someMoment(c int32) int64 {
	at, best := int64(0), -1
	for _, i := range p.of(c) {
		l := &p.links[i]
		worth := 0
		if l.fresh {
			worth++
		}
		if l.joins() {
			worth += 2
		}
		if worth <= best {
			continue
		}
		if l.src == c {
			at, best = l.At, worth
		} else if v, ok := sum(l.At, l.offset); ok {
			at, best = v, worth
		}
	}
	return at
}

// across carries the base of c over to the link's other clock; false where it
// would be out of range.
func (p *problem) across(l *link, c int32) (int64, bool) {
	d := p.rateOf(l)
	if c == l.src {
		since := float64(p.base[c] - l.At)
		b, ok := sum(p.base[c], l.offset)
		if !ok {
			return 0, false
		}
		return sum(b, int64(math.Round(d*since)))
	}
	then, ok := sum(l.At, l.offset)
	if !ok {
		return 0, false
	}
	since := float64(p.base[c] - then)
	if math.Abs(since) > farthest {
		return 0, false
	}
	// Whole ns of since are added exactly; only what the drift makes of them is
	// rounded.
	b, ok := sum(l.At, p.base[c]-then)
	if !ok {
		return 0, false
	}
	return sum(b, int64(math.Round(since/(1+d)-since)))
}

// rateOf is the best that is known of the link's drift.
func (p *problem) rateOf(l *link) float64 {
	if l.DriftBound > 0 {
		return l.Drift
	}
	if len(p.driftKnown) > 0 && p.driftKnown[l.src] && p.driftKnown[l.dst] {
		return math.Expm1(p.drift[l.dst] - p.drift[l.src])
	}
	return 0
}

// carry states what every link says at its component's instant, and in the window
// around it.
func (p *problem) carry() {
	for i := range p.links {
		l := &p.links[i]
		l.lo, l.hi, l.r = noLo, noHi, 0
		if !p.together(l) {
			continue
		}
		gap := float64(p.base[l.dst]) - float64(p.base[l.src])
		since := p.base[l.src] - l.At
		inside, down, up := p.moved(l, float64(since), p.window[p.group[l.src]])
		if math.Abs(gap) > farthest || math.Abs(inside)+up-down > farthest {
			continue
		}
		exact := p.base[l.dst] - p.base[l.src]
		// x counts ns of the reference, the edge those of Dst.
		shorter := math.Expm1(-p.drift[l.dst])
		if l.estimated {
			l.r = residual(l.offset, exact) + p.rateOf(l)*float64(since)
		}
		if l.Lower != noLo {
			l.lo = lowest(residual(l.Lower, exact), l.Lower-exact, math.Floor(inside+down-math.Abs(shorter*(residual(l.Lower, exact)+inside+down))))
		}
		if l.Upper != noHi {
			l.hi = highest(residual(l.Upper, exact), l.Upper-exact, math.Ceil(inside+up+math.Abs(shorter*(residual(l.Upper, exact)+inside+up))))
		}
	}
}

// moved is how a link's bounds change from its own moment to one that is since ns
// later on Src: by inside, and by down to up for what is not known. That covers the window
// around it as well, seen from where the solution's drifts lead.
func (p *problem) moved(l *link, since float64, around span) (inside, down, up float64) {
	lo, hi := p.rateBounds(l)
	span := 0.0
	if throughout(l.Source) {
		span = float64(l.Span) / 2
	}
	within := max(-span, min(span, since))
	outside := since - within
	inside = l.Drift*within + p.rateOf(l)*outside
	d := p.rateOf(l)
	down, up = outside*(lo-d), outside*(hi-d)
	if outside < 0 {
		down, up = up, down
	}
	// At the ends of the window some more of it lies outside, and the link's own drift
	// leads away from the solution's.
	rate := max(hi-d, d-lo)
	first, last := since+float64(around.from), since+float64(around.until)
	longest := float64(max(-around.from, around.until))
	further := max(0, -span-first, last-span)
	if outside != 0 {
		further = longest
	}
	apart := math.Abs(p.apart(l, l.Drift))
	if span == 0 || !p.driftKnown[l.src] || !p.driftKnown[l.dst] {
		apart = rate
	}
	l.rate = rate + apart
	slack := rate*further + apart*longest + p.wandered(l, max(math.Abs(first), math.Abs(last)))
	return inside, down - slack, up + slack
}

// throughout reports whether bounds of such an edge, moved by its drift, hold at
// all readings of its span. Those of pairs of samples do; two clocks that are read
// together are bounded at one of these readings.
func throughout(source string) bool {
	return source == model.EdgeProbe || ofTraces(source)
}

// apart is how fast a link that says drift d leads away from the drifts of the
// solution.
func (p *problem) apart(l *link, d float64) float64 {
	return math.Exp(p.drift[l.src])*(1+d) - math.Exp(p.drift[l.dst])
}

// residual is offset less gap, exact where both are near one another.
func residual(offset, gap int64) float64 {
	rough := float64(offset) - float64(gap)
	if math.Abs(rough) > mostResidual {
		return rough
	}
	return float64(offset - gap)
}

// mostResidual bounds bounds in ns, so that sums along any path stay within
// int64: 18 minutes beyond what the bases already take up.
const mostResidual = 1 << 40

// lowest adds up a lower bound: one that is too far down says nothing, and one
// that is too far up says less than it could.
func lowest(rough float64, exact int64, more float64) int64 {
	switch v := rough + more; {
	case v < -mostResidual:
		return noLo
	case v > mostResidual:
		return mostResidual
	}
	return exact + int64(more)
}

// highest adds up an upper bound.
func highest(rough float64, exact int64, more float64) int64 {
	switch v := rough + more; {
	case v > mostResidual:
		return noHi
	case v < -mostResidual:
		return -mostResidual
	}
	return exact + int64(more)
}

// wandered is what the drift can have changed the offset by beyond the window of
// the edge itself: by Wander from each window to the next.
func (p *problem) wandered(l *link, away float64) float64 {
	beyond := away - float64(l.Span)/2
	if beyond <= 0 {
		return 0
	}
	return beyond * p.opt.Wander * math.Ceil(beyond/float64(p.opt.Window.Nanoseconds()))
}
