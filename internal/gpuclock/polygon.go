// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

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
	f.vertices = len(stats.Box(f.polygon[:0], lo, hi, drift))
	f.each(func(x, l, u, xu float64) {
		f.keep(stats.CutAbove(f.scratch[:0], f.polygon[:f.vertices], x, l))
		f.keep(stats.CutBelow(f.scratch[:0], f.polygon[:f.vertices], xu, u))
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

// keep takes over what a cut left of the polygon; nothing of one that has too many corners.
func (f *Fit) keep(left []stats.Line) {
	if len(left) > len(f.polygon) { // rounding made it concave, again and again
		left = nil
	}
	f.vertices = copy(f.polygon[:], left)
}
