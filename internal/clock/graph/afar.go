// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// Edges that hold at different times take part in no solution together, and accuse nobody.
// Who is off by more than a window is long would never be joined to the others, then. But an
// offset hardly changes, whatever the time that it is told of, unless a clock is set. So
// offsets alone are compared as well, with room for what any two clocks drift apart in a
// horizon, and what contradicts itself is judged as at the instant is. A clock that was set
// looks the same while some tell of it from before and others from after: edges say so, and
// then it is left alone. Any other takes no part, and nothing is said of it, until it is
// accused, which takes half a horizon of contradictions. Who is told to be at three places
// and may have been set is not left out before that: an honest clock would stay where it was
// while others move, within what it was known to.

// afar is what offsets of a clock, or of a pair, contradict.
type afar struct {
	since, last int64 // by Solver.elapsed
	evidence    []Evidence
	proven      bool
	moved       bool // it may have been set
}

// afarUnit is the unit, in ns, in which offsets are compared: bounds of years fit.
const afarUnit = 100_000

// afarGap is how many windows can pass in which a contradiction does not show.
const afarGap = 4

// lookAfar looks for contradictions of offsets, and remembers them.
func (s *Solver) lookAfar() (spent int) {
	p := newProblem(s)
	if p.spreadOffsets() && p.solveAfar() {
		for c, cut := range p.cut {
			if cut {
				s.noteAfar(p, [2]string{s.clocks[c].name}, p.evidence[int32(c)], int32(c))
			}
		}
		for _, u := range p.pairs {
			s.noteAfar(p, pairOfNames(u.A, u.B), []Evidence{{Source: u.Source, Excess: u.Excess}}, s.ids[u.A], s.ids[u.B])
		}
	}
	s.moved.DropOldest(func(_ string, until int64) bool { return until <= s.elapsed })
	s.afar.DropOldest(func(_ [2]string, a *afar) bool { return s.elapsed-a.last > afarGap*s.opt.Window.Nanoseconds() })
	return p.work.spent
}

// noteAfar remembers a contradiction, unless one of its clocks may have been set.
func (s *Solver) noteAfar(p *problem, key [2]string, why []Evidence, clocks ...int32) {
	a, known := s.afar.Get(key)
	if !known || !a.proven {
		if slices.ContainsFunc(clocks, p.maybeSet) {
			s.afar.Delete(key)
			return
		}
		if !known {
			a = &afar{since: s.elapsed}
			if !s.afar.Fits(key, a) {
				s.count.AfarOverflow++
				return
			}
			s.afar.Set(key, a)
		}
	}
	for i := range why {
		why[i].Excess = min(why[i].Excess, farthest/afarUnit) * afarUnit
	}
	a.last, a.evidence = s.elapsed, why
	a.moved = slices.ContainsFunc(clocks, p.mayMove)
	a.proven = a.proven || s.elapsed-a.since >= s.opt.Horizon.Nanoseconds()/2
}

// maybeSet reports whether a clock is known to have been set, or edges tell that it, or its
// other clock, may have been. One that is told to be at three places was not: once set, it is
// at two, as it was and as it is.
func (p *problem) maybeSet(c int32) bool {
	return p.places(c) < fewestPlaces && p.mayMove(c)
}

// mayMove reports whether a clock is known to have been set, or edges told within a horizon
// that it, or its other clock, may have been.
func (p *problem) mayMove(c int32) bool {
	name := p.s.clocks[c].name
	_, set := p.s.past.set[name]
	until, _ := p.s.moved.Peek(name)
	return set || until > p.s.elapsed
}

// noteMoved remembers that one of the clocks of an edge may have been set. What edges tell
// does not last: those from before a step are forgotten.
func (s *Solver) noteMoved(e *model.ClockEdge) {
	until := s.elapsed + s.opt.Horizon.Nanoseconds()
	for _, c := range [2]string{e.Src, e.Dst} {
		if s.moved.Fits(c, until) {
			s.moved.Set(c, until)
		} else {
			s.count.AfarOverflow++
		}
	}
}

// fewestPlaces is at how many places a clock is told to be that lies.
const fewestPlaces = 3

// places is at how many places that exclude one another the neighbours put a clock that it
// contradicts.
func (p *problem) places(c int32) int {
	type place struct{ lo, hi float64 }
	var all []place
	for _, i := range p.of(c) {
		l := &p.links[i]
		o := l.other(c)
		with := func(e Evidence) bool { return e.Other == p.s.clocks[o].name }
		if l.slot >= 0 && l.estimated && slices.ContainsFunc(p.evidence[c], with) {
			at := p.x[o] + l.r
			if l.src == c {
				at = p.x[o] - l.r
			}
			all = append(all, place{at - l.sigma, at + l.sigma})
		}
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Compare(a.hi, b.hi) })
	n, taken := 0, math.Inf(-1)
	for _, a := range all {
		if a.lo > taken {
			n, taken = n+1, a.hi
		}
	}
	return n
}

// spreadOffsets gives every clock a base by a tree of offsets, whatever the time that they
// are told of, and reports whether another edge contradicts that.
func (p *problem) spreadOffsets() (contradicted bool) {
	p.label()
	known := make([]bool, len(p.group))
	queue := p.references()
	for _, r := range queue {
		known[r] = true
	}
	for len(queue) > 0 {
		c := queue[0]
		queue = queue[1:]
		for _, i := range p.of(c) {
			l := &p.links[i]
			o, offset := l.other(c), l.offset
			if l.dst == c {
				offset = -offset
			}
			if b, ok := sum(p.base[c], offset); l.joins() && !known[o] && ok {
				p.base[o], known[o] = b, true
				queue = append(queue, o)
			}
		}
	}
	for i := range p.links {
		l := &p.links[i]
		l.aside = l.aside || !l.joins() || !l.bounded() || !known[l.src] || !known[l.dst]
		if l.aside {
			continue
		}
		l.stateOffset(p.base[l.dst]-p.base[l.src], p.opt.MaxDrift*float64(p.opt.Horizon.Nanoseconds()))
		contradicted = contradicted || l.lo > 0 || l.hi < 0
	}
	return contradicted
}

// bounded reports whether a link bounds its clocks from both sides: an estimate proves nothing.
func (l *link) bounded() bool { return l.Lower != model.NoLower && l.Upper != model.NoUpper }

// stateOffset states a link as one that holds at any time, where its clocks may have drifted
// apart by so much.
func (l *link) stateOffset(gap int64, drifted float64) {
	half := 1 + math.Ceil((drifted+float64(max(l.Upper-l.offset, l.offset-l.Lower)))/afarUnit)
	exact := (l.offset - gap) / afarUnit
	l.r, l.sigma = residual(l.offset, gap)/afarUnit, half
	l.lo, l.hi = lowest(l.r, exact, -half), highest(l.r, exact, half)
}

// solveAfar finds whose offsets contradict the others', and reports whether there are such.
func (p *problem) solveAfar() bool {
	p.window = make([]span, len(p.group))
	p.refit()
	p.net, p.potential = p.constraints(), rounded(p.x)
	return !p.net.settle(p.potential, &p.cycle) && p.blame()
}

// cutAfar leaves those out whose offsets contradict the others', accused or not yet, unless
// they may have been set and are not accused.
func (p *problem) cutAfar() {
	for key, a := range p.s.afar.All() {
		if id, ok := p.s.ids[key[0]]; key[1] == "" && ok && (a.proven || !a.moved) {
			p.cutOff(id, a.evidence)
			p.suspected[id] = !a.proven
		} else if key[1] != "" && a.proven {
			p.pairs = append(p.pairs, Contradiction{A: key[0], B: key[1], Source: a.evidence[0].Source, Excess: a.evidence[0].Excess})
		}
	}
}

// passed is how long after the last solution this one is, by most clocks.
func (p *problem) passed() int64 {
	var all []int64
	for c, g := range p.group {
		if before, ok := p.s.past.stood[p.s.clocks[c].name]; ok && g >= 0 {
			all = append(all, p.base[c]-before.base)
		}
	}
	slices.Sort(all)
	return max(0, min(stats.MedianHigh(all), p.opt.Horizon.Nanoseconds()))
}
