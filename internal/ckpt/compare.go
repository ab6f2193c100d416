// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// found is what a reader finds of a save that only means something beside the other saves of the folder.
type found struct {
	times []written
	// lastWrite is the newest of times.
	lastWrite time.Time
	late      []late
	counters  []counter
	pairs     []countPair
	plateaus  []plateau
	alone     []countPair               // optimizers without a scheduler
	holds     map[model.DomainKind]bool // state that lies in files of another kind
	skipped   int64                     // steps that the optimizer left out
}

// compare judges what only the saves of a folder together tell.
func (s *scan) compare() {
	s.judgeCounters()
	s.judgePairs()
	s.judgePlateaus()
	s.judgeState()
	s.judgeTimes()
}

// takeFound adds what was found of a save within this one, whose domains are called otherwise here.
func (s *Save) takeFound(inner *Save, called func(model.Domain) model.Domain) {
	s.times = append(s.times, inner.times...)
	if inner.lastWrite.After(s.lastWrite) {
		s.lastWrite = inner.lastWrite
	}
	for _, l := range inner.late {
		for i, d := range l.domains {
			l.domains[i] = called(d)
		}
		s.late = append(s.late, l)
	}
	for _, c := range inner.counters {
		c.domain = called(c.domain)
		s.counters = append(s.counters, c)
	}
	for kind := range inner.holds {
		s.hold(kind)
	}
	s.skipped = max(s.skipped, inner.skipped)
}

// hold notes that a save has state of a kind.
func (s *Save) hold(kind model.DomainKind) {
	if s.holds == nil {
		s.holds = map[model.DomainKind]bool{}
	}
	s.holds[kind] = true
}

// committed reports whether every part of a save is whole, pointers aside.
func (s *Save) committed() bool {
	for i := range s.Domains {
		if d := &s.Domains[i]; d.Kind != model.DomainTracker && d.State != model.DomainCommitted {
			return false
		}
	}
	return len(s.Domains) > 0
}

// doubtDomain puts a part of a save in doubt.
func (s *scan) doubtDomain(save *Save, of model.Domain, p Problem) {
	for i := range save.Domains {
		if d := &save.Domains[i]; d.Domain == of && d.State == model.DomainCommitted {
			d.State = model.DomainTentative
			if !d.Own {
				d.Epoch, d.Witness = model.Optional[int64]{}, ""
			}
		}
	}
	s.problem(save, p)
}
