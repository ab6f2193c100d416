// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"slices"
)

// bound computes what hard constraints alone say of every clock, after fit has
// brought x near 0. It reports false where they contradict one another.
func (p *problem) bound() bool {
	p.net = p.constraints()
	p.potential = make([]int64, len(p.group))
	p.cycle = p.cycle[:0]
	if !p.net.settle(p.potential, &p.cycle) {
		return false
	}
	p.disbelieve()
	p.net.end = p.ends()
	p.lower, p.upper = p.reach()
	// A constraint is stated for the moments at which Src is near its base. It is x
	// ahead of that, and what x[dst]-x[src] changes by in so long is rate*|x|.
	if p.loosen() {
		p.lower, p.upper = p.reach()
	}
	p.boundHanging()
	p.validity(p.viaUpper, p.viaLower)
	p.settled = true
	return true
}

// ends are the clocks that were stepped, other than references. Who begins to lie looks the
// same for a window, and tells of readings of others that are not of one time: so it bounds
// none whom others bound.
func (p *problem) ends() []bool {
	out := slices.Clone(p.stepped)
	for _, r := range p.references() {
		out[r] = false
	}
	return out
}

// reach bounds x against the reference by shortest paths.
func (p *problem) reach() (lower, upper []int64) {
	refs := p.references()
	p.viaUpper, p.viaLower = filled32(len(p.group)), filled32(len(p.group))
	upper = p.net.paths(refs, p.potential, false, p.viaUpper)
	lower = p.net.paths(refs, p.potential, true, p.viaLower)
	for c, d := range lower {
		if d == noHi {
			lower[c] = noLo
		} else {
			lower[c] = -d
		}
	}
	return lower, upper
}

// firstSlack is what a clock is assumed to lie beyond its base at most, in widths
// of its tightest edge, before loosen knows better.
const firstSlack = 8

func (p *problem) constraints() *network {
	net := newNetwork(len(p.group))
	net.work = &p.work
	tightest := p.tightest()
	for i := range p.links {
		l := &p.links[i]
		if l.aside || !p.together(l) || p.hanging(l) {
			continue
		}
		lo, hi := l.lo, l.hi
		slack := l.firstSlackOf(tightest)
		if lo != noLo {
			lo -= slack
		}
		if hi != noHi {
			hi += slack
		}
		net.add(l.src, l.dst, lo, hi, int32(i))
	}
	net.build()
	return net
}

func (p *problem) tightest() []float64 {
	out := make([]float64, len(p.group))
	for c := range out {
		out[c] = math.Inf(1)
	}
	for i := range p.links {
		l := &p.links[i]
		if l.aside || !p.together(l) {
			continue
		}
		w := l.sigma * sqrt12 // of one that is joined from one-sided ones
		if l.lo != noLo && l.hi != noHi {
			w = float64(l.hi) - float64(l.lo)
		} else if l.slot >= 0 {
			continue
		}
		out[l.src], out[l.dst] = min(out[l.src], w), min(out[l.dst], w)
	}
	for c, w := range out {
		if math.IsInf(w, 1) {
			out[c] = 0
		}
	}
	return out
}

// firstSlackOf is the slack of a link before loosen knows better.
func (l *link) firstSlackOf(tightest []float64) int64 {
	return 1 + int64(math.Ceil(l.rate*min(firstSlack*max(tightest[l.src], tightest[l.dst]), mostResidual)))
}

// loosen widens constraints to what the bounds of their clocks ask for, and tells
// whether it did. What it widens widens those bounds in turn, by less than a
// tenth: drifts are below 1e-3, and paths much shorter than 100 edges.
func (p *problem) loosen() (changed bool) {
	const further = 1.1
	tightest := p.tightest()
	for a, i := range p.net.link {
		l := &p.links[i]
		half := min(p.halfWidth(l.src), p.halfWidth(l.dst))
		if math.IsInf(half, 1) {
			// It says nothing about the reference, and what it says of both clocks
			// cannot be carried to where they are.
			p.net.off[a] = true
			continue
		}
		had := l.firstSlackOf(tightest)
		if need := 1 + int64(math.Ceil(l.rate*further*half)); need > had {
			p.net.weight[a] += need - had
			changed = true
		}
	}
	return changed
}

func (p *problem) halfWidth(c int32) float64 {
	if p.lower[c] == noLo || p.upper[c] == noHi {
		return math.Inf(1)
	}
	return max(math.Abs(float64(p.lower[c])), math.Abs(float64(p.upper[c])))
}
