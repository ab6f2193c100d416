// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// driftUnit is the unit of bounds of drifts: small enough that rounding adds
// nothing to a bound, large enough that sums stay within int64.
const driftUnit = 1e-15

// solveDrifts finds every clock's rate against its reference, as logarithms: of
// three clocks the logarithms of the ratios add up exactly, the drifts do not.
func (p *problem) solveDrifts() {
	n := len(p.group)
	p.drift, p.driftKnown = make([]float64, n), make([]bool, n)
	f := p.newFit()
	for i := range p.links {
		l := &p.links[i]
		if l.aside || !p.together(l) || l.DriftBound <= 0 {
			continue
		}
		at, half := math.Log1p(l.Drift)/driftUnit, l.DriftBound/driftUnit
		f.add(row{src: l.src, dst: l.dst, r: at, w: 1 / square(half)})
	}
	y := make([]float64, n)
	f.build()
	f.solve(y)
	f.robust(y)
	for range sharpenings {
		if !f.sharpen(y) {
			break
		}
		f.approach(y, roughly)
		f.robust(y)
	}
	f.solve(y)
	reached := f.reached()
	for c := range n {
		p.drift[c] = y[c] * driftUnit
		p.driftKnown[c] = reached[c]
	}
	p.boundDrifts(y)
}

// sharpenings bounds how often drifts are weighed anew: each time those that are far off have
// moved the solution less, and what is usual shows better.
const sharpenings = 8

// sharpen weighs rows by how far they are from the solution in truth: bounds of drifts are
// wide beside their errors, so that in units of them nobody is ever far off. It tells whether
// that makes a difference, and there are enough of them to do so.
func (f *fit) sharpen(y []float64) bool {
	var off []float64
	for i := range f.rows {
		if r := &f.rows[i]; !r.eliminate {
			off = append(off, math.Abs(r.r-(y[r.dst]-y[r.src]))*math.Sqrt(r.w))
		}
	}
	if len(off) < fewestDeviations {
		return false
	}
	slices.Sort(off)
	usual := stats.MADToSigma * stats.MedianHigh(off)
	if !(usual > 0 && usual < settled) {
		return false
	}
	for i := range f.rows {
		f.rows[i].w /= square(usual)
	}
	return f.reweigh(y)
}

// settled is a usual deviation of nearly one sigma.
const settled = 0.9

func square(v float64) float64 { return v * v }

// together reports whether both clocks belong to one component.
func (p *problem) together(l *link) bool {
	return p.group[l.src] >= 0 && p.group[l.src] == p.group[l.dst]
}

// boundDrifts bounds the rates by shortest paths. An edge whose drift contradicts
// the solution is left out: frequencies change, which offsets tell better.
func (p *problem) boundDrifts(y []float64) {
	n := len(p.group)
	p.driftLo, p.driftHi = filled(n, noLo), filled(n, noHi)
	net := newNetwork(n)
	for i := range p.links {
		l := &p.links[i]
		if l.aside || !p.together(l) || l.DriftBound <= 0 {
			continue
		}
		at := math.Log1p(l.Drift) / driftUnit
		half := (l.DriftBound + p.strayed(l)) / (1 - math.Abs(l.Drift)) / driftUnit
		if math.Abs(at-(y[l.dst]-y[l.src])) > half {
			continue
		}
		net.add(l.src, l.dst, int64(math.Floor(at-half)), int64(math.Ceil(at+half)), int32(i))
	}
	net.build()
	potential := rounded(y)
	if !net.settle(potential, nil) {
		return
	}
	refs := p.references()
	p.driftHi = net.distances(refs, potential, false)
	for c, d := range net.distances(refs, potential, true) {
		if d != noHi {
			p.driftLo[c] = -d
		}
	}
}

// strayed is by how much the drift can have changed between a link's own window
// and the instant.
func (p *problem) strayed(l *link) float64 {
	beyond := math.Abs(float64(p.lag(l))) - float64(l.Span)/2
	return p.opt.Wander * math.Ceil(max(0, beyond)/float64(p.opt.Window.Nanoseconds()))
}

func filled(n int, v int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func rounded(x []float64) []int64 {
	out := make([]int64, len(x))
	for i, v := range x {
		out[i] = int64(math.Round(max(-mostResidual, min(v, mostResidual))))
	}
	return out
}

func (p *problem) references() []int32 {
	var refs []int32
	for _, r := range p.reference {
		if r >= 0 {
			refs = append(refs, r)
		}
	}
	return refs
}

// rateBounds bounds the drift of a link: by its own window, or by what paths of
// others say of its clocks.
func (p *problem) rateBounds(l *link) (lo, hi float64) {
	if l.DriftBound > 0 {
		return l.Drift - l.DriftBound, l.Drift + l.DriftBound
	}
	lo, hi = -p.opt.MaxDrift, p.opt.MaxDrift
	if p.driftLo == nil {
		return lo, hi
	}
	s, d := l.src, l.dst
	if p.driftLo[s] == noLo || p.driftLo[d] == noLo || p.driftHi[s] == noHi || p.driftHi[d] == noHi {
		return lo, hi
	}
	lo = max(lo, math.Expm1(float64(p.driftLo[d]-p.driftHi[s])*driftUnit))
	hi = min(hi, math.Expm1(float64(p.driftHi[d]-p.driftLo[s])*driftUnit))
	return lo, max(lo, hi)
}

// driftBound is the half width of what a clock's rate can be against the
// reference's; false where nothing tells.
func (p *problem) driftBound(c int32) (float64, bool) {
	if len(p.driftLo) == 0 || p.driftLo[c] == noLo || p.driftHi[c] == noHi {
		return 0, false
	}
	y := p.drift[c] / driftUnit
	half := max(float64(p.driftHi[c])-y, y-float64(p.driftLo[c]), 0)
	return half * driftUnit * (1 + math.Abs(p.drift[c])), true
}
