// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// solution states what was found.
func (p *problem) solution() *Solution {
	s := &Solution{index: map[string]int32{}, undecided: p.pairs}
	variance := p.solver.variances()
	misfit := p.solver.misfit(p.group, p.x)
	for c := range p.group {
		if len(p.of(int32(c))) == 0 || p.silent[c] && !p.cut[c] || p.suspected[c] {
			continue
		}
		s.models = append(s.models, p.solved(int32(c), variance[c], misfit))
	}
	s.models = append(s.models, p.crossedOnly()...)
	slices.SortFunc(s.models, func(a, b Solved) int { return cmp.Compare(a.Clock, b.Clock) })
	for i := range s.models {
		s.index[s.models[i].Clock] = int32(i)
	}
	p.markUndecided(s)
	p.fillComponents(s, misfit)
	s.paths = p.newPaths()
	slices.SortFunc(s.undecided, func(a, b Contradiction) int {
		return cmp.Or(cmp.Compare(b.Excess, a.Excess), cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
	return s
}

// crossedOnly are clocks of which all edges were refused.
func (p *problem) crossedOnly() (out []Solved) {
	for name, why := range p.crossed {
		if _, ok := p.s.ids[name]; !ok {
			out = append(out, Solved{Clock: name, Reference: name, Untrusted: true, Evidence: why, Neighbours: len(why)})
		}
	}
	return out
}

// growthWindows is for how many windows after the last one Growth covers a
// frequency that wanders in one direction.
const growthWindows = 4

func (p *problem) solved(c int32, variance float64, misfit map[int32]fitness) Solved {
	name := p.s.clocks[c].name
	if p.cut[c] {
		return p.untrusted(c)
	}
	g := p.group[c]
	ref := p.reference[g]
	m := Solved{
		Clock: name, Reference: p.s.clocks[ref].name, At: p.base[c], Offset: p.base[ref] - p.base[c],
		Neighbours: p.neighbours(c, false), Stepped: p.stepped[c],
	}
	holds := p.holds(c)
	m.From, m.Until = m.At+holds.from, m.At+holds.until
	if c == ref {
		m.Bounded = true
		return m
	}
	// A misfit above 1 says that sigmas are too small.
	m.Sigma = math.Sqrt(variance) * max(1, misfit[g].value())
	if p.driftKnown[c] {
		m.Drift = math.Expm1(-p.drift[c])
	}
	rate := p.opt.MaxDrift
	if half, ok := p.driftBound(c); ok {
		// Whole numbers of driftUnit, and never 0, which says unknown.
		m.DriftBound = half + driftUnit
		rate = min(rate, m.DriftBound)
	}
	m.Growth = rate + growthWindows*p.opt.Wander
	if p.settled && p.lower[c] != noLo && p.upper[c] != noHi {
		m.Bounded = true
		x := p.clip(c)
		m.At, m.Offset = m.At+x, m.Offset-x
		away := max(0, p.window[g].from-holds.until, holds.from-p.window[g].until)
		m.Bound = max(p.upper[c]-x, x-p.lower[c]) + 1 + int64(math.Ceil(m.Growth*float64(away)))
		if p.work.cutShort {
			// Neither the estimate nor its variance was found.
			m.Sigma = max(m.Sigma, float64(m.Bound))
		}
	}
	return m
}

// holds is when a clock's bounds hold, beside its base. Of one that no edge observed
// together with the others it is the moment of its own edge that is nearest to them.
func (p *problem) holds(c int32) span {
	if v := p.valid[c]; !v.empty() {
		return v
	}
	for _, i := range p.hangs[c] {
		if s, ok := p.spanOf(&p.links[i], p.links[i].other(c)); ok {
			at := min(max(0, s.from), s.until)
			return span{at, at}
		}
	}
	return span{}
}

// clip is where the estimate is moved to if hard bounds leave it out, relative to
// the base.
func (p *problem) clip(c int32) int64 {
	return max(p.lower[c], min(p.upper[c], 0))
}

// untrusted places a clock that was cut off where the median of its neighbours
// puts it.
func (p *problem) untrusted(c int32) Solved {
	m := Solved{Clock: p.s.clocks[c].name, Untrusted: true, Evidence: p.evidence[c]}
	m.Reference = m.Clock
	var says []int64
	var ref int32 = -1
	seen := map[int32]bool{}
	for _, i := range p.of(c) {
		l := &p.links[i]
		o := l.other(c)
		seen[o] = true
		if !l.estimated || p.group[o] < 0 || (ref >= 0 && p.reference[p.group[o]] != ref) {
			continue
		}
		if b, ok := p.across(l, o); ok {
			says = append(says, b)
			ref = p.reference[p.group[o]]
		}
	}
	m.Neighbours = len(seen)
	if len(says) > 0 {
		slices.Sort(says)
		m.At = stats.MedianHigh(says)
		m.Reference, m.Offset = p.s.clocks[ref].name, p.base[ref]-m.At
	}
	m.From, m.Until = m.At, m.At
	return m
}

func (p *problem) markUndecided(s *Solution) {
	for _, u := range p.pairs {
		for _, name := range [2][2]string{{u.A, u.B}, {u.B, u.A}} {
			i, ok := s.index[name[0]]
			if !ok {
				continue
			}
			m := &s.models[i]
			m.Undecided = true
			if len(m.Evidence) < mostEvidence && !m.Untrusted {
				m.Evidence = append(m.Evidence, Evidence{Other: name[1], Source: u.Source, Excess: u.Excess})
			}
		}
	}
}

func (p *problem) fillComponents(s *Solution, misfit map[int32]fitness) {
	clocks, edges := map[int32]int{}, map[int32]int{}
	for _, g := range p.group {
		if g >= 0 {
			clocks[g]++
		}
	}
	for i := range p.links {
		if l := &p.links[i]; !l.aside && p.together(l) && l.slot >= 0 {
			edges[p.group[l.src]]++
		}
	}
	for g, n := range clocks {
		r := p.reference[g]
		p.s.clocks[r].led = int32(n)
		s.components = append(s.components, Component{
			Reference: p.s.clocks[r].name, At: p.base[r], Clocks: n, Edges: edges[g], Misfit: misfit[g].value(),
		})
	}
	slices.SortFunc(s.components, func(a, b Component) int {
		return cmp.Or(cmp.Compare(b.Clocks, a.Clocks), cmp.Compare(a.Reference, b.Reference))
	})
}

// fitness sums up how a component's edges deviate from its solution.
type fitness struct {
	chi2         float64
	rows, clocks int
}

// value is the root mean square of deviations in sigmas, for each degree of
// freedom; 0 where nothing is over-determined.
func (f fitness) value() float64 {
	free := f.rows - (f.clocks - 1)
	if free <= 0 {
		return 0
	}
	return math.Sqrt(f.chi2 / float64(free))
}

func (f *fit) misfit(group []int32, x []float64) map[int32]fitness {
	out := map[int32]fitness{}
	for _, g := range group {
		if g >= 0 {
			v := out[g]
			v.clocks++
			out[g] = v
		}
	}
	for i := range f.rows {
		r := &f.rows[i]
		v := out[group[r.src]]
		v.rows++
		v.chi2 += r.w * r.factor * square(r.r-(x[r.dst]-x[r.src]))
		out[group[r.src]] = v
	}
	return out
}
