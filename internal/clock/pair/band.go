// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// interval bounds the offset between two readings of Src: at each of them it lies
// between the straight lines from low[0] to low[1] and from high[0] to high[1].
type interval struct {
	from, until int64
	low, high   [2]int64 // model.NoLower, model.NoUpper where nothing bounds it
	drift       [2]float64
	found       bool // the evidence of one side at least holds together
	torn        bool // both sides hold together and are far apart: it changed in between
	// earlier and later tell that the evidence before and after it contradicts itself.
	earlier, later bool
	// contradicted counts the sides whose evidence no line satisfies. Where it is
	// both, the clocks changed at least twice.
	contradicted int
}

// finder holds what the search for intervals works with.
type finder struct {
	cfg           Config
	upper, lower  side
	before, after polygon
	between       polygon // of lines from one change to another
	up, low       []point
	intervals     []interval
}

// interval bounds the offset from one reading to another by the evidence of the
// reach before the first and of the reach after the second. If one change at most
// lies between the first of this evidence and the last, then one of both sides is
// free of it or it lies in the interval itself; in each case the truth is a
// continuation of one of both, at every reading.
func (f *finder) interval(from, until, reach int64) interval {
	i := interval{
		from: from, until: until,
		low: [2]int64{model.NoLower, model.NoLower}, high: [2]int64{model.NoUpper, model.NoUpper},
	}
	v0, ok := f.base(from, until, reach)
	if !ok {
		return i
	}
	span := float64(until - from)
	b := band{drift: [2]float64{math.Inf(1), math.Inf(-1)}}
	b.reset()
	if !f.consistent(reach, func(far int64) *polygon {
		f.fill(&f.before, from-far, from, from, v0)
		return &f.before
	}) {
		i.earlier = true
		i.contradicted++
	}
	if !f.consistent(reach, func(far int64) *polygon {
		f.fill(&f.after, until, until+far, until, v0)
		return &f.after
	}) {
		i.later = true
		i.contradicted++
	}
	b.add(&f.before, 0, span, f.slack(span), f.cfg.MaxDrift)
	b.add(&f.after, -span, 0, f.slack(span), f.cfg.MaxDrift)
	i.found = i.contradicted < 2
	i.torn = b.torn
	if i.found && !i.torn {
		f.twice(&b, from, until, reach, v0)
	}
	if i.found {
		i.low = [2]int64{downwards(v0, b.low[0]), downwards(v0, b.low[1])}
		i.high = [2]int64{upwards(v0, b.high[0]), upwards(v0, b.high[1])}
		more := f.cfg.Wander * (1 + float64(reach)/float64(f.cfg.Window))
		i.drift = [2]float64{b.drift[0] - more, b.drift[1] + more}
		i.torn = i.torn || f.refuted(&i)
	}
	return i
}

// refuted reports whether a sample inside the interval contradicts what both sides say
// of it: there and back again, between two samples of theirs.
func (f *finder) refuted(i *interval) bool {
	share := func(s sample) float64 { return float64(s.t-i.from) / float64(max(i.until-i.from, 1)) }
	if lower, _ := i.bounded(); lower {
		for _, s := range f.upper.between(i.from, i.until) {
			if float64(i.low[0]-s.v)+share(s)*float64(i.low[1]-i.low[0]) > 1 {
				return true
			}
		}
	}
	if _, upper := i.bounded(); upper {
		for _, s := range f.lower.between(i.from, i.until) {
			if float64(s.v-i.high[0])-share(s)*float64(i.high[1]-i.high[0]) > 1 {
				return true
			}
		}
	}
	return false
}

// shortenings is how often the evidence of a side that contradicts itself is
// shortened: to 1/64 of the reach.
const shortenings = 6

// consistent fills a side's polygon by the evidence of the reach; false where that
// contradicts itself. Then there is a change in it, and another may be in the interval
// or on its other side. So what is nearer than the change serves, instead of nothing.
func (f *finder) consistent(reach int64, fill func(far int64) *polygon) bool {
	if p := fill(reach); p.sound() {
		return true
	}
	far, sound := reach, int64(0)
	for cut := reach / 2; cut > 0 && far-sound > reach>>shortenings; cut = sound + (far-sound)/2 {
		if fill(cut).sound() {
			sound = cut
		} else {
			far = cut
		}
	}
	fill(sound / 2)
	return false
}

// base is an offset near those of the interval, so that differences are small.
func (f *finder) base(from, until, reach int64) (int64, bool) {
	for _, s := range []*side{&f.upper, &f.lower} {
		if p := s.between(from-reach, from); len(p) > 0 {
			return p[len(p)-1].v, true
		}
		if p := s.between(until, until+reach); len(p) > 0 {
			return p[0].v, true
		}
	}
	return 0, false
}

// fill makes the polygon of the samples of [from, until] with the reference ref.
func (f *finder) fill(p *polygon, from, until, ref, v0 int64) {
	f.up = f.points(f.up[:0], f.upper.between(from, until), ref, v0, 1)
	f.low = f.points(f.low[:0], f.lower.between(from, until), ref, v0, -1)
	p.clip(f.up, f.low, f.cfg.MaxDrift)
}

func (f *finder) points(out []point, in []sample, ref, v0 int64, sign float64) []point {
	for _, s := range in {
		x := float64(s.t - ref)
		out = push(out, point{x, float64(s.v-v0) + sign*f.slack(x)}, sign, 1)
	}
	return out
}

// slack is by how much the offset may depart from a tangent within x ns: the
// frequency differs by Wander at once, and by as much again with each Window.
func (f *finder) slack(x float64) float64 {
	x = math.Abs(x)
	return f.cfg.Wander * x * (1 + x/(2*float64(f.cfg.Window)))
}

// tear is how much wider than both sides together their union is where they speak
// of two different lines.
const tear = 2

// band is the union of what both sides say at the ends of an interval.
type band struct {
	low, high, drift [2]float64
	width            [2]float64 // sum of what each side leaves open
	torn             bool
}

func (b *band) reset() {
	for i := range b.low {
		b.low[i], b.high[i] = math.Inf(1), math.Inf(-1)
	}
}

// add widens the band by one side. One without evidence leaves nothing bounded.
func (b *band) add(p *polygon, first, last, slack, maxDrift float64) {
	if p.empty() {
		for i := range b.low {
			b.low[i], b.high[i] = math.Inf(-1), math.Inf(1)
		}
		b.drift = [2]float64{-maxDrift, maxDrift}
		return
	}
	width := b.widen(p, first, last, slack)
	for i := range b.low {
		b.width[i] += width[i]
		all := b.high[i] - b.low[i] // infinite where the other side has no evidence
		b.torn = b.torn || !math.IsInf(all, 1) && all > tear*b.width[i]
	}
	lo, hi := p.drift()
	b.drift = [2]float64{min(b.drift[0], lo), max(b.drift[1], hi)}
}

// widen makes the band contain what lines allow, and returns how much that is.
func (b *band) widen(p *polygon, first, last, slack float64) (width [2]float64) {
	for i, x := range [2]float64{first, last} {
		lo, hi := p.at(x)
		if x != 0 {
			lo, hi = lo-slack, hi+slack
		}
		b.low[i], b.high[i] = min(b.low[i], lo), max(b.high[i], hi)
		width[i] = hi - lo
	}
	return width
}

// downwards and upwards add a float to a base, rounded outwards with a nanosecond
// for what the arithmetic before lost.
func downwards(base int64, y float64) int64 {
	if !(y > -far) {
		return model.NoLower
	}
	return base + int64(math.Floor(min(y, far))) - 1
}

func upwards(base int64, y float64) int64 {
	if !(y < far) {
		return model.NoUpper
	}
	return base + int64(math.Ceil(max(y, -far))) + 1
}
