// SPDX-License-Identifier: Apache-2.0

package pair

import "math"

const (
	// nearest is how many samples of each direction on either side of an interval are
	// its nearest: an exchange of a coded pair and its twin.
	nearest = 2
	// nearby is what share of a Window is near on either side, at least, so that many
	// exchanges a second are worth more than few.
	nearby = 3.0 / 64
)

// twice widens the band by what the offset may be where both clocks change their
// frequency, one before the interval and one after it, and neither side is free of it.
// From the one change to the other it is a line of its own. If that line lasts, it
// satisfies the samples nearest to the interval on both sides. If one of the changes is
// between the interval and its nearest samples, or in the interval, then the offset is
// on both lines there; and what that side says of the interval's end bounds the line in
// the place of samples: the farther away the change is the less does it bend it, so that
// nothing between its two extremes, the interval and the nearest sample, leads further.
func (f *finder) twice(b *band, from, until, reach, v0 int64) {
	span := float64(until - from)
	up, low := f.around(&f.upper, from, until, reach), f.around(&f.lower, from, until, reach)
	before, after := f.zone(&f.before, 0), f.zone(&f.after, span)
	for _, sides := range [...]struct{ first, last bool }{{true, true}, {true, false}, {false, true}} {
		f.up, f.low = f.up[:0], f.low[:0]
		if sides.first {
			f.up, f.low = f.points(f.up, up[0], from, v0, 1), f.points(f.low, low[0], from, v0, -1)
		} else {
			f.up, f.low = before.anchor(f.up, f.low)
		}
		if sides.last {
			f.up, f.low = f.points(f.up, up[1], from, v0, 1), f.points(f.low, low[1], from, v0, -1)
		} else {
			f.up, f.low = after.anchor(f.up, f.low)
		}
		if f.between.clip(f.up, f.low, f.cfg.MaxDrift); !f.between.empty() {
			b.widen(&f.between, 0, span, f.slack(span))
		}
	}
}

// around are the nearest samples before and after an interval.
func (f *finder) around(s *side, from, until, reach int64) (out [2][]sample) {
	near := int64(nearby * float64(f.cfg.Window))
	out[0], out[1] = s.between(from-reach, from), s.between(until, until+reach)
	first := min(since(out[0], from-near), max(len(out[0])-nearest, 0))
	last := max(since(out[1], until+near+1), min(nearest, len(out[1])))
	out[0], out[1] = out[0][first:], out[1][:last]
	return out
}

// zone is what a polygon says at one reading, x ns after an interval's beginning.
type zone struct{ x, low, high float64 }

// zone takes it at the end of the interval that the polygon's reference is.
func (f *finder) zone(p *polygon, x float64) zone {
	z := zone{x: x, low: math.Inf(-1), high: math.Inf(1)}
	if !p.empty() {
		z.low, z.high = p.at(0)
	}
	return zone{x, z.low - f.slack(x), z.high + f.slack(x)}
}

// anchor adds a zone to the constraints of lines through it.
func (z zone) anchor(up, low []point) ([]point, []point) {
	if !math.IsInf(z.high, 0) {
		up = push(up, point{z.x, z.high}, 1, 1)
	}
	if !math.IsInf(z.low, 0) {
		low = push(low, point{z.x, z.low}, -1, 1)
	}
	return up, low
}
