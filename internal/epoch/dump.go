// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Observations returns what the engine holds, as observations in a fixed order: two engines
// that know the same return the same. Who was forgotten, what is expected of which nothing is held,
// and that something was left out is not in them: Snapshot has all.
func (e *Engine) Observations() []model.EpochObservation {
	var out []model.EpochObservation
	for _, id := range e.Jobs() {
		j := e.jobs[id]
		for _, name := range sortedKeys(j.generations) {
			g := j.generations[name]
			for _, n := range sortedKeys(g.saves) {
				out = e.appendSave(out, model.EpochObservation{JobID: id, Generation: name, Save: n}, g)
			}
		}
	}
	return out
}

func (e *Engine) appendSave(out []model.EpochObservation, of model.EpochObservation, g *generation) []model.EpochObservation {
	s := g.saves[of.Save]
	from := len(out)
	for i := range s.cells {
		for _, c := range append([]cell{s.cells[i]}, s.more[int32(i)]...) {
			if c.value.state == silent {
				continue
			}
			o := of
			o.Domain, o.Observer, o.Revision = g.domains[i], e.names[c.observer], c.revision
			o.Of = s.of[o.Domain.Kind]
			o.Epoch = model.Optional[int64]{V: c.value.epoch, OK: c.value.known}
			o.State, o.Parts = c.value.state.model(), int64(c.value.parts)
			if c.value.state == conflict { // two that differ make one again
				o.State = model.DomainAbsent
				out = append(out, o)
				o.State = model.DomainTentative
			}
			out = append(out, o)
		}
	}
	slices.SortFunc(out[from:], func(a, b model.EpochObservation) int {
		return cmp.Or(compareDomains(a.Domain, b.Domain), cmp.Compare(a.Observer, b.Observer), cmp.Compare(a.State, b.State))
	})
	return out
}

// Merge joins what another engine holds. Whom either has forgotten stays so until heard again,
// what either expects is expected, and what either left out keeps a generation from being confirmed.
func (e *Engine) Merge(o *Engine) error {
	gone := map[string]bool{}
	for i, name := range e.names {
		gone[name] = e.gone[i]
	}
	data, err := o.Snapshot()
	if err == nil {
		err = e.Restore(data)
	}
	for name, is := range gone {
		if is {
			e.Forget(name)
		}
	}
	return err
}
