// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// fewestTraces is of how many other clocks the traces have to put a clock elsewhere than
// those that are read together with it.
const fewestTraces = 2

// elsewhere remembers of a clock that traces put it elsewhere than what it is read together
// with. Only traces that began after the reading since are proof: what was before may be
// what a step left behind.
type elsewhere struct {
	since  int64
	proven []Evidence
	rounds int
}

// retry is after how many solutions a clock that was cut off for that is looked at anew.
const retry = 16

// cutElsewhere cuts off who was found to be elsewhere.
func (p *problem) cutElsewhere() {
	for name, e := range p.s.elsewhere {
		id, ok := p.s.ids[name]
		if !ok {
			delete(p.s.elsewhere, name)
			continue
		}
		if e.proven == nil {
			continue
		}
		if e.rounds%retry != 0 {
			p.cutOff(id, e.proven)
		}
	}
}

// findElsewhere looks for clocks that are read together with another one of their host
// (source pair) and that are not the clock of its spans, where traces do not reach the
// instant: they come later than packets do. Only solutions count in which packets place
// both clocks.
func (p *problem) findElsewhere() {
	found := map[int32]map[int32]Evidence{}
	for name, e := range p.s.elsewhere {
		if e.rounds++; e.proven == nil && p.stepped[p.s.ids[name]] {
			delete(p.s.elsewhere, name) // a step leaves traces elsewhere behind
		}
	}
	for c := range p.group {
		if p.probed(int32(c)) {
			found[int32(c)] = p.placedElsewhere(int32(c), noLo)
		}
	}
	for c, with := range found {
		name := p.s.clocks[c].name
		// Each neighbour of such a clock disagrees with it, and so with one.
		clear := true
		for o := range with {
			clear = clear && len(found[o]) < len(with)
		}
		if len(with) < fewestTraces || !clear {
			delete(p.s.elsewhere, name)
			continue
		}
		e := p.s.elsewhere[name]
		if e == nil {
			p.s.elsewhere[name] = &elsewhere{since: p.base[c]}
			continue
		}
		if with = p.placedElsewhere(c, e.since); len(with) < fewestTraces && e.proven == nil {
			continue
		}
		if len(with) >= fewestTraces {
			e.proven = tellMost(with)
		}
		p.cut[c], p.evidence[c], p.group[c] = true, e.proven, -1
	}
}

func tellMost(with map[int32]Evidence) (out []Evidence) {
	for _, e := range with {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Evidence) int {
		return cmp.Or(cmp.Compare(b.Excess, a.Excess), cmp.Compare(a.Other, b.Other))
	})
	return out[:min(len(out), mostEvidence)]
}

// probed reports whether a clock is placed by a clock that it is read together with and that
// packets place, at the instant, and was not stepped.
func (p *problem) probed(c int32) bool {
	g := p.group[c]
	if g < 0 || p.reference[g] == c || p.stepped[c] || p.lower[c] == noLo || p.upper[c] == noHi {
		return false
	}
	return slices.ContainsFunc(p.of(c), func(i int32) bool {
		l := &p.links[i]
		return l.Source == model.EdgePair && !l.aside && p.covers(l, c) && p.hasProbe(l.other(c))
	})
}

func (p *problem) hasProbe(c int32) bool {
	links := p.of(c)
	return !p.stepped[c] && slices.ContainsFunc(links[:min(len(links), mostAsked)], func(i int32) bool {
		l := &p.links[i]
		return l.Source == model.EdgeProbe && !l.aside && p.covers(l, c)
	})
}

// placedElsewhere are clocks of which traces since a reading of c have no place for c where
// the solution has it, however both were slewed since.
func (p *problem) placedElsewhere(c int32, since int64) map[int32]Evidence {
	with := map[int32]Evidence{}
	for _, i := range p.of(c) {
		l := &p.links[i]
		o := l.other(c)
		if !ofTraces(l.Source) || l.lo == noLo || l.hi == noHi || !p.together(l) || !p.probed(o) {
			continue
		}
		if s, ok := p.spanOf(l, c); !ok || since != noLo && s.from < since-p.base[c] {
			continue
		}
		lo, hi := l.lo, l.hi // of x[dst]-x[src]
		if l.src == c {
			lo, hi = -hi, -lo
		}
		slack := int64(math.Ceil(p.opt.MaxDrift * (math.Abs(float64(p.lag(l))) + float64(l.Span)/2)))
		excess := max(p.lower[o]+lo-p.upper[c], p.lower[c]-p.upper[o]-hi) - slack
		if excess > with[o].Excess {
			with[o] = Evidence{Other: p.s.clocks[o].name, Source: l.Source, Excess: excess}
		}
	}
	return with
}
