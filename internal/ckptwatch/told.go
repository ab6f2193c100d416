// SPDX-License-Identifier: Apache-2.0

package ckptwatch

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// vanish finds what is there no more. Of what had confirmed an epoch that is a tombstone.
func (w *Watcher) vanish(root *ckpt.Root, now time.Time) {
	shaky, generations := map[int64]bool{}, w.generations()
	for i := range root.Saves {
		if s := &root.Saves[i]; unreadable(s.Problems) {
			shaky[s.Called().V] = true
		}
	}
	for k, s := range w.domains {
		if s.look != w.revision && k.domain == w.noOptimizer() && !shaky[k.save] {
			w.takeBack(s, &model.EpochObservation{Revision: 2 * w.revision}, hasOptimizer)
			w.remove(k)
			continue
		}
		if s.look == w.revision || s.said.State == model.DomainAbsent {
			continue
		}
		o := s.said
		if g, ok := generations[k.save]; ok && g != o.Generation { // the save is another than was thought, and this no part of it
			o.Generation, o.Revision = g, 2*w.revision
			w.withdraw(s, &o)
			w.remove(k)
			continue
		}
		o.Time, o.Revision, o.State, o.Witness, o.Parts = now.UnixNano(), 2*w.revision, model.DomainAbsent, "", 0
		if s.place() {
			o.Revision++
		}
		if shaky[o.Save] { // what is there can not be read
			o.State, o.Epoch, o.Witness = model.DomainTentative, model.Optional[int64]{}, "the save can not be read"
			if same(&s.said, &o) {
				continue
			}
			if s.worse == nil || !same(s.worse, &o) {
				s.worse = &o
				w.stats.Held++
				continue
			}
		}
		if o.State == model.DomainAbsent {
			o.Epoch = s.held
		}
		w.bytes += len(o.Witness) - len(s.said.Witness)
		s.said, s.worse, s.told = o, nil, false
	}
}

// generations are those of the saves that the last look saw.
func (w *Watcher) generations() map[int64]string {
	all := map[int64]string{}
	for k, s := range w.domains {
		if s.look == w.revision {
			all[k.save] = s.said.Generation
		}
	}
	return all
}

// due are the observations that were not told yet, and on a heartbeat all that the last look saw:
// what it did not see is not said again, so that nobody takes it for seen.
func (w *Watcher) due(now time.Time) (out []model.EpochObservation) {
	all := now.Sub(w.beat) >= w.cfg.Heartbeat
	if all {
		w.beat = now
	}
	for k, s := range w.withdrawn {
		if w.outlived(s, all) {
			w.bytes -= s.size()
			delete(w.withdrawn, k)
			continue
		}
		out = s.tell(out, all, now)
	}
	for k, s := range w.domains {
		gone := s.said.State == model.DomainAbsent && !w.blind
		if gone && w.outlived(s, all) {
			w.remove(k)
			continue
		}
		out = s.tell(out, all && (gone || s.look == w.revision), now)
	}
	for i := range out {
		out[i].Blind = w.blind
	}
	slices.SortFunc(out, func(a, b model.EpochObservation) int {
		return cmp.Or(cmp.Compare(a.Save, b.Save), cmp.Compare(turn(&a), turn(&b)), cmp.Compare(a.Domain.Kind, b.Domain.Kind), cmp.Compare(a.Domain.ID, b.Domain.ID))
	})
	return out
}

// outlived reports whether of what is there no more enough was told.
func (w *Watcher) outlived(s *seen, beat bool) bool {
	if !beat || s.look == w.revision {
		return false
	}
	s.absent++
	return s.absent > goneFor
}

// tell adds what is to be told of a domain.
func (s *seen) tell(out []model.EpochObservation, all bool, now time.Time) []model.EpochObservation {
	if s.told && !all {
		return out
	}
	s.told = true
	o := s.said
	o.Time = now.UnixNano()
	out = append(out, o)
	if s.place() && o.State == model.DomainCommitted {
		out = append(out, announced(o))
	}
	return out
}

// announced goes before all that is told of a save: that it will be said of the place that this was
// all. Who hears only a part does not take it for the whole; to who has heard all it is old.
func announced(o model.EpochObservation) model.EpochObservation {
	o.State, o.Epoch, o.Witness = model.DomainReflecting, model.Optional[int64]{}, ""
	o.Revision--
	return o
}

// turn is when an observation is told: that the place confirms it last, that it does not first.
func turn(o *model.EpochObservation) int {
	switch {
	case o.Domain.Kind != model.DomainPlace:
		return 1
	case o.State == model.DomainCommitted:
		return 2
	}
	return 0
}
