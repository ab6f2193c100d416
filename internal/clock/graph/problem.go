// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// link is an edge inside one solution.
type link struct {
	*model.ClockEdge
	src, dst int32
	slot     int32 // index into Solver.edges, or -1 for one put together here
	fresh    bool
	jumped   bool // it does not go on from what was known before
	set      bool // it says that one of its clocks was set, or shows it for the first time

	// estimated: offset and sigma say something; of bounds alone the middle.
	estimated bool
	offset    int64
	sigma     float64

	// What the edge says of x[dst]-x[src] at the component's instant, in ns: r is
	// the estimate, lo and hi are the bounds, where x is how far a clock is ahead of
	// its base, in ns of the reference. rate bounds how fast that can change beyond
	// what the solution's drifts say.
	r      float64
	lo, hi int64
	rate   float64

	// aside: the edge contradicts others and takes no part.
	aside bool
}

const (
	noLo = math.MinInt64
	noHi = math.MaxInt64
)

// problem is one solution in the making. Clocks are numbered as the Solver's
// slots are.
type problem struct {
	s     *Solver
	opt   *Options
	links []link
	// around lists the links of each clock: around[first[c]:first[c+1]].
	first, around []int32

	group     []int32 // lowest number of a clock of the component; -1 where none is left
	reference []int32 // by group number
	base      []int64 // each clock's reading at the instant of its component
	window    []span  // by group: the window around the instant
	x         []float64

	drift            []float64 // log of the clock's rate over the reference's
	driftKnown       []bool
	driftLo, driftHi []int64 // in driftUnit; noLo, noHi

	net          *network
	potential    []int64
	cycle        []int32
	settled      bool
	lower, upper []int64 // of x, against the reference

	// What contradictions did: cut clocks are untrusted, away ones set aside while
	// that is found out; left links stay out, dropped ones may come back.
	cut, away      []bool
	suspected      []bool // cut clocks that are not accused yet
	left, dropped  []bool
	firstViolation []int64
	firstResidual  []float64
	searches       int
	// viaThere and viaBack are distances from the reference and to it, of what is
	// not set aside.
	viaThere, viaBack []int64
	evidence          map[int32][]Evidence
	pairs             []Contradiction

	work   work
	solver *fit // of the last pass
	// variance is that of clocks of which the edges disagree, in the last fit; 0 of others.
	variance []float64
	crossed  map[string][]Evidence
	stepped  []bool
	since    []int64 // of stepped clocks, after the instant
	sure     []bool  // the stepped ones that it was rather than others
	set      []bool  // those of which the offset changed, and not the frequency alone
	// either are pairs of which one was stepped, and since when.
	either map[[2]int32]int64

	// hangs are the links by which a clock hangs on others that cover the instant, as
	// it does not itself; valid is when a clock's bounds hold.
	hangs [][]int32
	valid []span
	// silent clocks changed in a way that leaves nothing to say of them this time.
	silent []bool
	told   []bool // clocks of which new edges tell of a change
	// viaUpper and viaLower are the last arcs of the paths that bound each clock.
	viaUpper, viaLower []int32
}

func newProblem(s *Solver) *problem {
	n := len(s.clocks)
	p := &problem{
		s: s, opt: &s.opt, work: work{most: s.mostWork()}, links: make([]link, 0, len(s.edges)),
		group: make([]int32, n), reference: make([]int32, n), base: make([]int64, n), window: make([]span, n), x: make([]float64, n),
		cut: make([]bool, n), away: make([]bool, n), suspected: make([]bool, n), evidence: map[int32][]Evidence{},
	}
	for i := range s.edges {
		e := &s.edges[i]
		l := link{ClockEdge: &e.ClockEdge, src: e.key.src, dst: e.key.dst, slot: int32(i), fresh: e.fresh, jumped: e.jumpedUntil > s.elapsed, set: e.Stepped || e.jumped}
		l.estimate()
		p.links = append(p.links, l)
	}
	p.joinOneSided()
	p.hangs, p.valid, p.silent = make([][]int32, n), make([]span, n), make([]bool, n)
	p.left, p.dropped = make([]bool, len(p.links)), make([]bool, len(p.links))
	p.firstViolation, p.firstResidual = make([]int64, len(p.links)), make([]float64, len(p.links))
	p.index()
	return p
}

// sqrt12 makes the standard deviation of a uniform distribution of its width.
var sqrt12 = math.Sqrt(12)

// estimate takes the edge's own estimate, or the middle of both bounds with the
// sigma of a uniform distribution between them.
func (l *link) estimate() {
	switch {
	case l.Sigma > 0:
		l.estimated, l.offset, l.sigma = true, l.Offset, l.Sigma
	case l.Lower != model.NoLower && l.Upper != model.NoUpper:
		width := float64(l.Upper) - float64(l.Lower)
		l.estimated, l.sigma = true, width/sqrt12
		l.offset = l.Lower + int64((uint64(l.Upper)-uint64(l.Lower))/2)
	}
	// Stamps are whole ns.
	l.sigma = max(l.sigma, 1/sqrt12)
}

// joinOneSided makes an estimate where one edge bounds a pair of clocks from
// below and another from above, such as messages of both directions that came as
// two edges. The estimate is a link of its own, without bounds.
func (p *problem) joinOneSided() {
	type sides struct{ lower, upper *model.ClockEdge }
	seen := map[[2]int32]sides{}
	both := map[[2]int32]bool{}
	for i := range p.links {
		if l := &p.links[i]; l.estimated {
			both[pairOf(l.src, l.dst)] = true
		}
	}
	var order [][2]int32
	for i := range p.links {
		l := &p.links[i]
		pair := pairOf(l.src, l.dst)
		if l.estimated || both[pair] {
			continue
		}
		e := l.ClockEdge
		if l.src != pair[0] {
			e = turned(e)
		}
		v, ok := seen[pair]
		if !ok {
			order = append(order, pair)
		}
		if e.Lower != model.NoLower && v.lower == nil {
			v.lower = e
		}
		if e.Upper != model.NoUpper && v.upper == nil {
			v.upper = e
		}
		seen[pair] = v
	}
	for _, pair := range order {
		v := seen[pair]
		if v.lower == nil || v.upper == nil {
			continue
		}
		e := *v.lower
		e.Upper = v.upper.Upper
		apart := p.opt.MaxDrift * math.Abs(float64(v.upper.At)-float64(e.At))
		width := math.Abs(float64(e.Upper)-float64(e.Lower)) + apart
		e.Offset = mid(e.Lower, e.Upper)
		e.Lower, e.Upper, e.Drift, e.DriftBound = model.NoLower, model.NoUpper, 0, 0
		p.links = append(p.links, link{
			ClockEdge: &e, src: pair[0], dst: pair[1], slot: -1, fresh: true,
			estimated: true, offset: e.Offset, sigma: max(width/sqrt12, 1/sqrt12),
		})
	}
}

func mid(a, b int64) int64 { return a/2 + b/2 + (a%2+b%2)/2 }

// turned is the edge as its other clock sees it.
func turned(e *model.ClockEdge) *model.ClockEdge {
	t := *e
	t.Src, t.Dst = e.Dst, e.Src
	t.Lower, t.Upper = model.NoLower, model.NoUpper
	shift := e.Offset
	if e.Upper != model.NoUpper {
		t.Lower, shift = -e.Upper, e.Upper
	}
	if e.Lower != model.NoLower {
		t.Upper, shift = -e.Lower, e.Lower
	}
	t.At, _ = sum(e.At, shift)
	t.Offset, t.Drift = -e.Offset, -e.Drift
	return &t
}

// sum adds; false where the result is out of range.
func sum(a, b int64) (int64, bool) {
	c := a + b
	if (b > 0 && c < a) || (b < 0 && c > a) {
		return 0, false
	}
	return c, near(c)
}

func (p *problem) index() {
	n := len(p.s.clocks)
	p.first = make([]int32, n+1)
	for i := range p.links {
		p.first[p.links[i].src+1]++
		p.first[p.links[i].dst+1]++
	}
	for c := range n {
		p.first[c+1] += p.first[c]
	}
	p.around = make([]int32, 2*len(p.links))
	next := slices.Clone(p.first[:n])
	for i := range p.links {
		for _, c := range []int32{p.links[i].src, p.links[i].dst} {
			p.around[next[c]] = int32(i)
			next[c]++
		}
	}
}

// of returns the links of a clock.
func (p *problem) of(c int32) []int32 { return p.around[p.first[c]:p.first[c+1]] }

func (l *link) other(c int32) int32 { return l.src + l.dst - c }

// joins reports whether the link makes its clocks comparable.
func (l *link) joins() bool { return l.estimated && !l.aside }

// label finds the components and each one's reference.
func (p *problem) label() {
	for i := range p.group {
		p.group[i] = int32(i)
		if p.cut[i] || len(p.of(int32(i))) == 0 {
			p.group[i] = -1
		}
	}
	for i := range p.links {
		if l := &p.links[i]; l.joins() {
			a, b := p.root(l.src), p.root(l.dst)
			p.group[max(a, b)] = min(a, b)
		}
	}
	for i := range p.group {
		p.reference[i] = -1
	}
	for i := range p.group {
		if p.group[i] < 0 {
			continue
		}
		g := p.root(int32(i))
		p.group[i] = g
		if r := p.reference[g]; r < 0 || p.preferred(int32(i), r) {
			p.reference[g] = int32(i)
		}
	}
}

func (p *problem) root(c int32) int32 {
	for p.group[c] != c {
		p.group[c] = p.group[p.group[c]]
		c = p.group[c]
	}
	return c
}

// preferred reports whether clock a serves better as a reference than b: the one
// that was it before, in the larger component; then the one that the options
// prefer; then the one with most edges; then the first by name.
func (p *problem) preferred(a, b int32) bool {
	ca, cb := &p.s.clocks[a], &p.s.clocks[b]
	if ca.led != cb.led {
		return ca.led > cb.led
	}
	ra, rb := p.s.rank(ca.name), p.s.rank(cb.name)
	if ra != rb {
		return ra < rb
	}
	if da, db := len(p.of(a)), len(p.of(b)); da != db {
		return da > db
	}
	return ca.name < cb.name
}
