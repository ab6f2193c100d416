// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Evidence is what one judgement rests on.
type Evidence struct {
	Job       desync.Job
	States    []*model.RankState
	Absences  []model.Absence
	Witnesses []desync.Witness
	// live: the states are of now, with what dumps add.
	live bool
}

// gather lists what is known of all ranks that were heard of. Numbers of dumps and of rings
// do not compare, so that those of which there are more are believed, and the others join them.
func (w *Watch) gather(j *job, now time.Time) Evidence {
	ev := Evidence{Job: desync.Job{Name: j.name, ID: j.key.id, Incarnation: j.key.incarnation, WorldSize: j.world}}
	states := make(map[int64]*sources, len(j.ranks))
	live, dumped := 0, 0
	died := j.firstTold()
	order := slices.Sorted(maps.Keys(j.ranks))
	for _, of := range order {
		s := w.sources(j, j.ranks[of], died, now)
		states[of] = &s
		if s.ring != nil {
			live++
		}
		if s.dump != nil {
			dumped++
		}
	}
	ev.live = live >= dumped
	join := newJoiner()
	for _, of := range order {
		if s := states[of]; ev.live && s.ring != nil && s.dump != nil {
			join.learn(s.ring, s.dump)
		}
	}
	for _, of := range order {
		w.evidence(&ev, j, j.ranks[of], of, states[of], join, now)
	}
	ev.Job.Unnumbered = !j.world.OK && !slices.ContainsFunc(ev.States, func(s *model.RankState) bool { return s.Source != model.StateRAS })
	for of, x := range w.witnesses.All() {
		if of.job == "" || of.job == j.key.id {
			ev.Witnesses = append(ev.Witnesses, x.Witness)
		}
	}
	return ev
}

// sources are the states of one rank that count.
type sources struct{ ring, ras, formerRAS, dump *model.RankState }

func (w *Watch) sources(j *job, r *rank, died, now time.Time) (s sources) {
	for source, h := range r.states {
		state := h.state
		switch {
		case source == model.StateFlightRecorder:
			if j.dumps.ready && !r.moved.After(h.came) {
				s.dump = state
			}
			continue
		case r.gone && h.before != nil && !died.IsZero() && h.came.After(died):
			state = h.before // it died of the hang, or with its job: no cause of it
		case r.stale(h, now, &w.cfg):
			continue
		}
		if source == model.StateRAS {
			s.ras, s.formerRAS = state, h.former
		} else {
			s.ring = state
		}
	}
	if s.ring == nil && len(r.states) == 0 && !j.native && len(r.comms) > 0 && !w.goesOn(r, now) {
		s.ring = r.fromSpans()
	}
	return s
}

// evidence adds what is known of one rank, or why nothing is.
func (w *Watch) evidence(ev *Evidence, j *job, r *rank, of int64, s *sources, join *joiner, now time.Time) {
	n := len(ev.States)
	switch {
	case ev.live && s.ring != nil && j.dumps.ready:
		ev.States = append(ev.States, ofOneClock(join.join(s.ring, s.dump)))
	case ev.live && s.ring != nil:
		ev.States = append(ev.States, ofOneClock(s.ring))
	case s.dump != nil:
		ev.States = append(ev.States, s.dump)
	}
	if s.formerRAS != nil && len(ev.States) == n {
		ev.States = append(ev.States, s.formerRAS)
	}
	if s.ras != nil {
		ev.States = append(ev.States, s.ras)
	}
	if r.absence != nil {
		ev.Absences = append(ev.Absences, *r.absence)
	}
	if len(ev.States) > n || r.absence != nil {
		return
	}
	a := model.Absence{Rank: of, Reason: model.AbsentMissing, Detail: "nothing new was heard of it for " + now.Sub(r.news()).Round(time.Second).String()}
	switch {
	case s.ring != nil && s.ring.Process == model.ProcessDead:
		a.Reason, a.Detail, a.Time = model.AbsentDead, "its process is gone", s.ring.Time
	case s.ring != nil:
		a.Detail = "it has left no dump, and its process lives"
	case w.goesOn(r, now):
		a.Reason, a.Detail = model.AbsentLate, "it goes on"
	}
	ev.Absences = append(ev.Absences, a)
}
