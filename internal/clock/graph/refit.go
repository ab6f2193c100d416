// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// refit solves for x with all links that take part. Sigmas are beliefs, and one
// that is far too small moves both its clocks; so each source of edges first gets
// the sigma of at least its median edge, and what its edges then deviate by beyond
// their sigmas is added to all of them. Where they deviate by less, sigmas are shrunk to
// that, or else they would hide that a clock's edges disagree; what is told of the solution
// rests on what was claimed.
func (p *problem) refit() {
	f, of := p.newFit(), make([]*link, 0, len(p.links))
	for i := range p.links {
		l := &p.links[i]
		if l.joins() && p.together(l) {
			f.add(row{src: l.src, dst: l.dst, r: l.r})
			of = append(of, l)
		}
	}
	f.build()
	typical := typicalSigmas(of)
	for i, l := range of {
		f.rows[i].w = 1 / square(max(l.sigma, typical[sources[l.Source]]))
	}
	clear(p.x)
	f.solve(p.x)
	f.robust(p.x)
	f.letGo = true
	claimed := make([]float64, len(of))
	var shrunk [sourceCount]float64
	for range scalePasses {
		was := shrunk
		extra, now := f.unexplained(of, typical, p.x)
		if shrunk = now; closeTo(shrunk[:], was[:]) {
			break
		}
		for i, l := range of {
			k := sources[l.Source]
			// A sigma is taken from few windows, and one edge is not to outweigh all others.
			claimed[i] = square(max(l.sigma, typical[k]/2))*shrunk[k] + extra[k]
			f.rows[i].w, f.rows[i].factor = 1/claimed[i], 1
		}
		f.reweigh(p.x)
		f.approach(p.x, roughly)
		f.robust(p.x)
		p.weigh(f, claimed)
	}
	f.solve(p.x)
	for i, l := range of {
		f.rows[i].w *= shrunk[sources[l.Source]]
	}
	p.solver = f
}

// typicalSigmas returns the median sigma of each source.
func typicalSigmas(of []*link) (typical [sourceCount]float64) {
	var all [sourceCount][]float64
	for _, l := range of {
		all[sources[l.Source]] = append(all[sources[l.Source]], l.sigma)
	}
	for k, v := range all {
		slices.Sort(v)
		typical[k] = stats.MedianHigh(v)
	}
	return typical
}

const (
	// fewestDeviations is how many edges a source needs before their deviations say
	// something of its sigmas.
	fewestDeviations = 16
	// mostInflation bounds how much larger an error is than the deviation that a
	// solution with few edges more than clocks leaves of it.
	mostInflation = 3
	// scalePasses bounds how often that is found: where sigmas were too large, what one
	// clock got wrong was spread over its neighbours the first time.
	scalePasses = 3
	// leastVariance is that of whole ns.
	leastVariance = 1. / 12
)

// unexplained returns, for each source, the variance by which its edges deviate
// from x beyond the sigma of its median edge, or else the share of that variance which they
// do deviate by.
func (f *fit) unexplained(of []*link, typical [sourceCount]float64, x []float64) (extra, shrunk [sourceCount]float64) {
	var all [sourceCount][]float64
	for i, l := range of {
		r := &f.rows[i]
		if !r.eliminate {
			all[sources[l.Source]] = append(all[sources[l.Source]], math.Abs(r.r-(x[r.dst]-x[r.src])))
		}
	}
	rows, clocks := f.loops()
	inflation := min(mostInflation, math.Sqrt(float64(rows)/float64(max(1, rows-clocks))))
	for k, v := range all {
		shrunk[k] = 1
		if len(v) < fewestDeviations {
			continue
		}
		slices.Sort(v)
		is, claimed := square(stats.MADToSigma*inflation*stats.MedianHigh(v)), square(typical[k])
		extra[k] = max(0, is-claimed)
		shrunk[k] = min(1, max(is, leastVariance)/claimed)
	}
	return extra, shrunk
}

// loops counts the rows that leaves do not take, and the clocks between them that
// are not held.
func (f *fit) loops() (rows, clocks int) {
	for i := range f.rows {
		if !f.rows[i].eliminate {
			rows++
		}
	}
	stripped := map[int32]bool{}
	for _, l := range f.leaves {
		stripped[l.clock] = true
	}
	for c := range f.ground {
		if !f.ground[c] && !stripped[int32(c)] && f.first[c+1] > f.first[c] {
			clocks++
		}
	}
	return rows, clocks
}
