// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// line is offset A in ns at a reference reading, and drift B, dimensionless.
type line = stats.Line

// point is a constraint: x ns after the reference the offset is at most, or at
// least, y ns.
type point struct{ x, y float64 }

// far stands for unbounded, in ns: a quarter of an hour, far beyond what any
// evidence of a fit leaves open, and small enough for float64 to resolve 1e-4 ns
// beside it.
const far = 1e12

// polygon is the set of all lines that satisfy the constraints of both sides, by
// its corners.
type polygon struct {
	corners []line
	scratch []line
	// upper and lower tell which side has constraints; where it has none, what the
	// corners say of it means nothing.
	upper, lower bool
}

// clip fills the polygon from the constraints. It is empty where they contradict
// one another.
func (p *polygon) clip(up, low []point, maxDrift float64) {
	p.corners = p.corners[:0]
	p.upper, p.lower = len(up) > 0, len(low) > 0
	lo, hi := math.Inf(-1), math.Inf(1)
	for _, u := range up {
		hi = min(hi, u.y+maxDrift*math.Abs(u.x))
	}
	for _, l := range low {
		lo = max(lo, l.y-maxDrift*math.Abs(l.x))
	}
	switch {
	case !p.upper && !p.lower:
		return
	case !p.upper:
		hi = lo + far
	case !p.lower:
		lo = hi - far
	}
	if lo > hi {
		return
	}
	p.corners = stats.Box(p.corners, lo, hi, maxDrift)
	for _, u := range up {
		p.corners, p.scratch = stats.CutBelow(p.scratch[:0], p.corners, u.x, u.y), p.corners
	}
	for _, l := range low {
		p.corners, p.scratch = stats.CutAbove(p.scratch[:0], p.corners, l.x, l.y), p.corners
	}
}

// sound reports whether there is a line, or nothing that forbids one.
func (p *polygon) sound() bool { return !p.empty() || !p.upper && !p.lower }

func (p *polygon) empty() bool { return len(p.corners) == 0 }

// at is the range of all lines at x, unbounded on a side without constraints.
func (p *polygon) at(x float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range p.corners {
		y := v.At(x)
		lo, hi = min(lo, y), max(hi, y)
	}
	if !p.lower {
		lo = math.Inf(-1)
	}
	if !p.upper {
		hi = math.Inf(1)
	}
	return lo, hi
}

// drift is the range of the lines' slopes.
func (p *polygon) drift() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range p.corners {
		lo, hi = min(lo, v.B), max(hi, v.B)
	}
	return lo, hi
}

// hull keeps of points sorted by x those that a line can touch: the lower hull
// (sign 1) or the upper one (sign -1). It works in place.
func hull(in []point, sign float64) []point {
	out := in[:0]
	for _, s := range in {
		out = push(out, s, sign, 1)
	}
	return out
}

// push adds a point to a hull, behind all others (towards 1) or before them (-1).
func push(out []point, s point, sign, towards float64) []point {
	if n := len(out); n > 0 && out[n-1].x == s.x {
		if sign*(s.y-out[n-1].y) >= 0 {
			return out
		}
		out = out[:n-1]
	}
	for len(out) >= 2 {
		p, q := out[len(out)-2], out[len(out)-1]
		if sign*towards*((q.x-p.x)*(s.y-p.y)-(q.y-p.y)*(s.x-p.x)) > 0 {
			break
		}
		out = out[:len(out)-1]
	}
	return append(out, s)
}

// widest is the line in the middle of the widest strip that fits between both
// hulls, measured along the offset, and the strip's width. It is the hard-margin
// separator of the two clouds. Both hulls must have a point.
func widest(up, low []point, maxDrift float64) (mid line, width float64) {
	width = math.Inf(-1)
	var first, last float64
	u, l := 0, 0 // where the strip before touches: the next one does nearby
	try := func(b float64) {
		b = min(max(b, -maxDrift), maxDrift)
		u, l = touch(up, u, b, 1), touch(low, l, b, -1)
		w := (up[u].y - b*up[u].x) - (low[l].y - b*low[l].x)
		switch {
		case w > width:
			width, first, last = w, b, b
		case w == width:
			first, last = min(first, b), max(last, b)
		}
	}
	for _, h := range [][]point{up, low} {
		for i := 1; i < len(h); i++ {
			try((h[i].y - h[i-1].y) / (h[i].x - h[i-1].x))
		}
	}
	try(0)
	b := first + (last-first)/2
	hi, lo := strip(up, low, b)
	return line{A: lo + (hi-lo)/2, B: b}, hi - lo
}

// touch is the point of a hull, lower (sign 1) or upper (sign -1), that a line of slope b
// touches, sought from one of its points on.
func touch(h []point, at int, b, sign float64) int {
	y := sign * (h[at].y - b*h[at].x)
	for towards := -1; towards <= 1; towards += 2 {
		for i := at + towards; i >= 0 && i < len(h); i += towards {
			next := sign * (h[i].y - b*h[i].x)
			if next > y {
				break
			}
			at, y = i, next
		}
	}
	return at
}

// strip is where lines of slope b lie at x = 0 that touch the upper and the lower
// hull.
func strip(up, low []point, b float64) (hi, lo float64) {
	hi, lo = math.Inf(1), math.Inf(-1)
	for _, u := range up {
		hi = min(hi, u.y-b*u.x)
	}
	for _, l := range low {
		lo = max(lo, l.y-b*l.x)
	}
	return hi, lo
}
