// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"slices"
)

// settlePasses bounds how often a solution is found anew after clocks or edges
// were set aside, which moves bases by little and so can bring up another.
const settlePasses = 4

// forgetPasses bounds how often components are found anew because an old edge
// held them together. What is still too old then waits for the next solution.
const forgetPasses = 8

// Solve solves for all clocks with the edges that are held. Edges older than the
// horizon are forgotten.
func (s *Solver) Solve() *Solution {
	s.count.PathsOverflowed += s.last.overflowed()
	s.solutions++
	s.ageCrossings()
	spent := s.lookAfar()
	p := newProblem(s)
	old, former := p.prepare()
	for range forgetPasses {
		if len(old)+len(former) == 0 {
			break
		}
		s.forget(old, former)
		p = newProblem(s)
		old, former = p.prepare()
	}
	p.run()
	if p.settled {
		p.findElsewhere()
	}
	for i := range s.edges {
		s.edges[i].fresh, s.edges[i].jumped, s.edges[i].solved = false, false, true
	}
	for c := range s.clocks {
		s.clocks[c].led = 0
	}
	if !p.settled {
		s.count.Unsettled++
	}
	s.last = p.solution()
	s.elapsed += p.passed()
	s.past = p.remember()
	s.work = p.work.spent + spent
	if p.work.cutShort {
		s.count.CutShort++
	}
	s.count.Contradictions += int64(len(s.last.undecided))
	return s.last
}

// prepare finds components and instants, and returns which edges are from before a step, or
// else too old: a clock with edges of before and after misplaces others.
func (p *problem) prepare() (old, former []int32) {
	p.blameCrossings()
	p.cutElsewhere()
	p.cutAfar()
	p.label()
	old = p.place()
	p.findSteps()
	if former = append(p.beforeSteps(), p.formerLives()...); len(former) > 0 {
		return nil, former
	}
	return old, nil
}

// forget drops edges, the last one first: drop moves only later ones.
func (s *Solver) forget(old, former []int32) {
	slices.Sort(former)
	former = slices.Compact(former)
	s.count.FormerLives += int64(len(former))
	old = append(old, former...)
	slices.Sort(old)
	old = slices.Compact(old)
	for _, i := range former {
		s.noteMoved(&s.edges[i].ClockEdge)
	}
	for i := len(old) - 1; i >= 0; i-- {
		s.drop(int(old[i]))
		s.count.Forgotten++
	}
}

func (p *problem) run() {
	p.align()
	for range settlePasses {
		p.solveDrifts()
		p.carry()
		p.refit()
		p.rebase()
		p.carry()
		if p.bound() {
			return
		}
		p.refit()
		if !p.blame() {
			return
		}
		p.label()
		p.place()
		p.findSteps()
		p.align()
	}
}

// rebase moves every clock's base to where the fit put it, so that links are
// stated where they are used.
func (p *problem) rebase() {
	for c, x := range p.x {
		whole := math.Round(max(-mostResidual, min(x, mostResidual)))
		if b, ok := sum(p.base[c], int64(whole)); ok {
			p.base[c] = b
			p.x[c] -= whole
		}
	}
}
