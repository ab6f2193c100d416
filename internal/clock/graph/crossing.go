// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"slices"
)

// ageCrossings forgets refused bounds that did not come again for a horizon.
func (s *Solver) ageCrossings() {
	most := int(s.opt.Horizon / s.opt.Window)
	s.crossing.DropOldest(func(_ [2]string, c *crossing) bool { return s.solutions-c.noted > most })
}

// blameCrossings looks at pairs whose bounds crossed: one of both stamps what it
// receives too early, or what it sends too late. Who is part of three such pairs
// or more, and of more than any of its partners, is cut off.
func (p *problem) blameCrossings() {
	partners := map[string][]Evidence{}
	for pair, c := range p.s.crossing.All() {
		partners[pair[0]] = append(partners[pair[0]], Evidence{pair[1], c.source, c.excess})
		partners[pair[1]] = append(partners[pair[1]], Evidence{pair[0], c.source, c.excess})
	}
	p.crossed = map[string][]Evidence{}
	for name, with := range partners {
		if len(with) < fewestWitnesses || slices.ContainsFunc(with, func(e Evidence) bool { return len(partners[e.Other]) >= len(with) }) {
			continue
		}
		slices.SortFunc(with, func(a, b Evidence) int {
			return cmp.Or(cmp.Compare(b.Excess, a.Excess), cmp.Compare(a.Other, b.Other))
		})
		p.crossed[name] = with[:min(len(with), mostEvidence)]
		if id, ok := p.s.ids[name]; ok {
			p.cutOff(id, p.crossed[name])
		}
	}
	for pair, c := range p.s.crossing.All() {
		if p.crossed[pair[0]] == nil && p.crossed[pair[1]] == nil {
			p.pairs = append(p.pairs, Contradiction{A: pair[0], B: pair[1], Source: c.source, Excess: c.excess})
		}
	}
}

func (p *problem) cutOff(c int32, why []Evidence) {
	p.cut[c], p.away[c], p.evidence[c] = true, true, why
	for _, i := range p.of(c) {
		p.links[i].aside = true
	}
}
