// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Doubters names observers, at most MaxNamed, that are heard from and keep a save from being
// confirmed: who says something else of a domain than that it confirms the save's epoch, and who
// looks at a place that a save must have, tells of older saves there, and not of this one: of a place
// that has none it is not known whether the save had a part there. Where a
// domain is not confirmed and there is no doubter, nobody looks at it. Only kinds that count are
// asked for.
func (e *Engine) Doubters(id, generationName string, epoch int64, counts func(model.DomainKind) bool) []string {
	g := e.find(id, generationName)
	if g == nil || g.saves[epoch] == nil {
		return nil
	}
	s := g.saves[epoch]
	by := map[int32]bool{}
	for at := range s.cells {
		if !counts(g.domains[at].Kind) {
			continue
		}
		e.doubts(by, &s.cells[at], epoch)
		for i := range s.more[int32(at)] {
			e.doubts(by, &s.more[int32(at)][i], epoch)
		}
	}
	e.lack(by, g, s, epoch)
	names := make([]string, 0, len(by))
	for i := range by {
		names = append(names, e.names[i])
	}
	slices.Sort(names)
	return names[:min(len(names), MaxNamed)]
}

func (e *Engine) doubts(by map[int32]bool, c *cell, epoch int64) {
	if v := c.value; v.speaks() && !e.gone[c.observer] && (!v.confirms() || v.epoch != epoch) {
		by[c.observer] = true
	}
}

// lack adds the observers of places that the save lacks, where as many as it must have are heard
// from: else the one that is missing may be one of which nobody tells.
func (e *Engine) lack(by map[int32]bool, g *generation, s *save, epoch int64) {
	here, elsewhere := 0, 0
	lacking := map[int32]bool{}
	for i, d := range g.domains {
		if d.Kind != model.DomainPlace {
			continue
		}
		if s.tells(int32(i)) {
			here++
			continue
		}
		if e.older(lacking, g, epoch, int32(i)) {
			elsewhere++
		}
	}
	if of := s.of[model.DomainPlace]; int64(here) < of && int64(here+elsewhere) >= of {
		maps.Copy(by, lacking)
	}
}

// older adds the observers that tell of a domain of older saves, and reports whether there is one.
func (e *Engine) older(by map[int32]bool, g *generation, epoch int64, at int32) (found bool) {
	add := func(c *cell) {
		if c.value.speaks() && !e.gone[c.observer] {
			by[c.observer], found = true, true
		}
	}
	for n, s := range g.saves {
		if n >= epoch || int(at) >= len(s.cells) {
			continue
		}
		add(&s.cells[at])
		for i := range s.more[at] {
			add(&s.more[at][i])
		}
	}
	return found
}

// Tellers names observers, at most MaxNamed, that speak of domains of a save.
func (e *Engine) Tellers(id, generationName string, epoch int64) []string {
	g := e.find(id, generationName)
	if g == nil || g.saves[epoch] == nil {
		return nil
	}
	by := map[int32]bool{}
	g.saves[epoch].each(func(_ int32, c *cell) {
		if c.value.speaks() {
			by[c.observer] = true
		}
	})
	names := make([]string, 0, len(by))
	for i := range by {
		names = append(names, e.names[i])
	}
	slices.Sort(names)
	return names[:min(len(names), MaxNamed)]
}
