// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

const (
	// weighPasses bounds how often variances of clocks and the solution are found in
	// turn. What a clock that lies did to its neighbours is mostly gone after two.
	weighPasses = 4
	// weighedTo is by which factor a variance may still change: it is known no better.
	weighedTo = 1.2
	// fewestDisagreeing is how many edges in loops a clock needs before half of them
	// say something of it, and not of a neighbour.
	fewestDisagreeing = 5
	// tolerated is how many times what its edges claim they may deviate by beyond that:
	// no more is known from a few of them, and honest clocks keep their weight.
	tolerated = 2
)

// beyond is by how much an edge deviates beyond the variance that it claims.
type beyond struct{ by, claimed float64 }

// weigh gives each clock the variance by which half of its edges or more deviate from
// the solution beyond what they claim, and solves with that: all its edges then count
// for less. Nobody is accused, since nothing is proved; but a clock that tells its
// neighbours different times, each within the bounds of an edge, moves them by no more
// than its word is worth. Half of the edges decide, so that an honest neighbour keeps its
// weight. claimed are the variances of the rows.
func (p *problem) weigh(f *fit, claimed []float64) {
	rows, clocks := f.loops()
	inflation := square(stats.MADToSigma) * min(square(mostInflation), float64(rows)/float64(max(1, rows-clocks)))
	variance := make([]float64, len(p.group))
	p.variance = variance
	var of []beyond
	for range weighPasses {
		if p.work.done() {
			return
		}
		changed := false
		for c := range variance {
			of = f.deviations(of[:0], int32(c), claimed, variance, inflation, p.x)
			was := variance[c]
			variance[c] = ofHalf(of)
			changed = changed || max(was, variance[c]) > weighedTo*min(was, variance[c])
		}
		p.work.add(len(f.rows))
		if !changed {
			break
		}
		for i := range f.rows {
			r := &f.rows[i]
			r.w = 1 / (claimed[i] + variance[r.src] + variance[r.dst])
		}
		f.reweigh(p.x)
		f.approach(p.x, roughly)
	}
	f.robust(p.x)
}

// deviations appends those of a clock's edges in loops. A neighbour's variance is part of
// what an edge claims.
func (f *fit) deviations(of []beyond, c int32, claimed, variance []float64, inflation float64, x []float64) []beyond {
	for _, i := range f.around[f.first[c]:f.first[c+1]] {
		if r := &f.rows[i]; !r.eliminate {
			claims := claimed[i] + variance[r.src+r.dst-c]
			of = append(of, beyond{inflation*square(r.r-(x[r.dst]-x[r.src])) - claims, claims})
		}
	}
	return of
}

// ofHalf is by how much half of the edges deviate, or more; 0 where they are few, or it
// is little.
func ofHalf(of []beyond) float64 {
	if len(of) < fewestDisagreeing {
		return 0
	}
	slices.SortFunc(of, func(a, b beyond) int { return cmp.Compare(a.by, b.by) })
	if m := stats.MedianLow(of); m.by > tolerated*m.claimed {
		return m.by
	}
	return 0
}

// closeTo reports whether no value changed by more than weighedTo.
func closeTo(a, b []float64) bool {
	for i := range a {
		if max(a[i], b[i]) > weighedTo*min(a[i], b[i]) {
			return false
		}
	}
	return true
}

// disbelieve takes constraints out by which a clock that lies would bound others, or move
// them: those that the solution contradicts, of a clock of which the edges disagree and that
// has no place that all of them allow, and those that are outvoted at both ends. What is
// missing is only the proof that somebody lies. Others' bounds grow by it, which makes none
// of them wrong.
func (p *problem) disbelieve() {
	torn := make([]bool, len(p.group))
	for c, v := range p.variance {
		torn[c] = v > 0 && p.torn(int32(c))
	}
	for i := range p.links {
		l := &p.links[i]
		if l.aside || !p.together(l) || p.violation(l) <= 0 {
			continue
		}
		if torn[l.src] || torn[l.dst] || p.outvoted(l, l.src) && p.outvoted(l, l.dst) {
			p.turn(int32(i), false)
		}
	}
}

// torn reports whether a clock's links have no place for it in common, where the solution
// has its neighbours. A way that is longer with some of them has: it widens their bounds.
func (p *problem) torn(c int32) bool {
	from, until := math.Inf(-1), math.Inf(1)
	for _, i := range p.of(c) {
		l := &p.links[i]
		if l.aside || !p.together(l) {
			continue
		}
		lo, hi := math.Inf(-1), math.Inf(1)
		if l.lo != noLo {
			lo = float64(l.lo)
		}
		if l.hi != noHi {
			hi = float64(l.hi)
		}
		if l.src == c {
			lo, hi = -hi, -lo
		}
		at := p.x[l.other(c)]
		from, until = max(from, at+lo), min(until, at+hi)
	}
	return from > until
}

// outvoted reports whether the solution agrees with half or more of a clock's links that are as
// sharp as one that it contradicts: where only that one is sharp, it knows better.
func (p *problem) outvoted(l *link, c int32) bool {
	agree, all := 0, 0
	links := p.of(c)
	for _, i := range links[:min(len(links), mostAsked)] {
		o := &p.links[i]
		if o.aside || !p.together(o) || o.lo == noLo || o.hi == noHi || p.scale(o) > 2*p.scale(l) {
			continue
		}
		all++
		if p.violation(o) <= 0 {
			agree++
		}
	}
	p.work.add(len(links))
	return all >= fewestDisagreeing && 2*agree >= all
}
