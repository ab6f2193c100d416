package epoch

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Doubters names observers, at most MaxNamed, that are heard from and keep a save from being
// confirmed: who says something else of a domain than that it confirms the save's epoch, and who
// looks at a place that a save must have, tells of other saves there, and not of this one. Where a
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
	e.lack(by, g, s)
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
func (e *Engine) lack(by map[int32]bool, g *generation, s *save) {
	here, elsewhere := 0, map[int32]int32{} // by domain, an observer
	for i, d := range g.domains {
		if d.Kind != model.DomainPlace {
			continue
		}
		if s.tells(int32(i)) {
			here++
			continue
		}
		for _, other := range g.saves {
			if i < len(other.cells) && other.cells[i].value.speaks() && !e.gone[other.cells[i].observer] {
				elsewhere[int32(i)] = max(elsewhere[int32(i)], other.cells[i].observer)
			}
		}
	}
	if of := s.of[model.DomainPlace]; int64(here) < of && int64(here+len(elsewhere)) >= of {
		for _, o := range elsewhere {
			by[o] = true
		}
	}
}
