// SPDX-License-Identifier: Apache-2.0

package gpuclock

import "math"

// clip fills the polygon of all lines that satisfy the window's constraints,
// with the newest stamp as the reference; none where they contradict each other.
func (f *Fit) clip() {
	f.rebase()
	drift := f.maxDrift()
	lo, hi := math.Inf(-1), math.Inf(1)
	f.each(func(x, l, u, xu float64) {
		lo = max(lo, l-drift*math.Abs(x))
		hi = min(hi, u+drift*math.Abs(xu))
	})
	if !(lo <= hi) {
		f.vertices = 0
		return
	}
	f.polygon[0], f.polygon[1] = vertex{lo, -drift}, vertex{hi, -drift}
	f.polygon[2], f.polygon[3] = vertex{hi, drift}, vertex{lo, drift}
	f.vertices = 4
	f.each(func(x, l, u, xu float64) {
		f.cut(1, x, l)
		f.cut(-1, -xu, -u)
	})
}

func (f *Fit) maxDrift() float64 {
	if f.unit == UnitTicks {
		return f.scan.width
	}
	return maxDrift
}

// rebase moves the reference to the newest bucket, so that numbers stay small.
func (f *Fit) rebase() {
	b := &f.window[f.newest%buckets]
	if b.id == 0 {
		return
	}
	h := f.h0 + uint64(int64(math.Round(f.at(b.upper.g))))
	f.g0, f.h0 = b.upper.g, h
}

// each calls fn with the window's constraints: lower bound l at x, upper bound u
// at xu, in ns from the reference, widened by what the clocks may wander.
func (f *Fit) each(fn func(x, l, u, xu float64)) {
	resolution := f.resolution()
	for i := range f.window {
		b := &f.window[i]
		if b.id == 0 || b.id+buckets <= f.newest {
			continue
		}
		x, xu := f.at(b.lower.g), f.at(b.upper.g)
		l := float64(int64(b.lower.h-f.h0)) - x - resolution - wander*math.Abs(x)
		u := float64(int64(b.upper.h-f.h0)) - xu + wander*math.Abs(xu)
		fn(x, l, u, xu)
	}
}

// cut keeps the part of the polygon where p*a + x*b >= c (Sutherland and
// Hodgman).
func (f *Fit) cut(p, x, c float64) {
	n := 0
	for i := range f.vertices {
		if n > len(f.scratch)-2 { // rounding made it concave, again and again
			f.vertices = 0
			return
		}
		v, w := f.polygon[i], f.polygon[(i+1)%f.vertices]
		dv, dw := p*v.a+x*v.b-c, p*w.a+x*w.b-c
		if dv >= 0 {
			f.scratch[n] = v
			n++
		}
		if (dv >= 0) != (dw >= 0) {
			t := dv / (dv - dw)
			f.scratch[n] = vertex{v.a + t*(w.a-v.a), v.b + t*(w.b-v.b)}
			n++
		}
	}
	copy(f.polygon[:n], f.scratch[:n])
	f.vertices = n
}
