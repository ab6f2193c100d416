// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Watch follows the saves of any number of jobs. It is not safe for concurrent use. Times that it
// is given are of one clock, that of who uses it.
type Watch struct {
	cfg       Config
	engine    *epoch.Engine
	observers *bounded.Map[string, *observer] // the one that was heard longest ago first
	lives     map[string]string               // the newest observer of each name
	saves     map[saveKey]*save
	book      *finding.Book[state]
	names     map[string]string // of jobs
	pruned    int               // saves that were known after the last prune
	frontiers map[genKey]model.Optional[int64]
	spans     []Span
	stats     Stats

	restored time.Time         // zero: it knows nothing of before
	before   map[genKey]before // of which nothing was observed since
}

type genKey struct{ job, generation string }

type saveKey struct {
	genKey
	save int64
}

// save is what is known of one beside what the engine holds.
type save struct {
	changed time.Time // when something of it was last told that was new
	heard   time.Time // or again
	spans   spanning
	judged  bool
	verdict epoch.Judgement
	// doubters are who keeps it from being confirmed.
	doubters []string
}

// New returns a watch that has heard nothing.
func New(cfg Config) *Watch {
	return &Watch{
		cfg: cfg, engine: epoch.New(cfg.Engine), observers: bounded.NewMap(bounded.MapConfig[string, *observer]{Entries: cfg.MaxObservers, Order: bounded.ByUse}), lives: map[string]string{}, saves: map[saveKey]*save{},
		book: finding.New[state](finding.Config{MaxOpen: cfg.MaxEpisodes, Same: same}), names: map[string]string{}, frontiers: map[genKey]model.Optional[int64]{}, before: map[genKey]before{},
	}
}

// Stats returns the counters.
func (w *Watch) Stats() Stats {
	s, of := w.stats, w.book.Stats()
	s.Engine = w.engine.Stats()
	s.Opened, s.Closed, s.Withheld = of.Opened, of.Closed, s.Withheld+of.Withheld
	return s
}

// Observe takes one observation. What comes of a life of an observer after a later one was heard
// is left out.
func (w *Watch) Observe(of *model.EpochObservation, now time.Time) {
	o := *of
	if o.Life != 0 {
		o.Observer = fmt.Sprintf("%s, life %d", o.Observer, o.Life)
	}
	if w.late(of, o.Observer) {
		w.stats.Late++
		return
	}
	change := w.engine.Observe(&o)
	if change == epoch.Refused {
		return
	}
	w.hear(o.Observer, of, now)
	k := saveKey{genKey{o.JobID, o.Generation}, o.Save}
	if change == epoch.OfAll {
		w.judgeAnew(func(other genKey) bool { return other == k.genKey })
	}
	s := w.saves[k]
	switch {
	case s == nil && !w.engine.Has(k.job, k.generation, k.save):
		return // it found no room
	case s == nil:
		w.prune()
		s = &save{changed: now, spans: spanning{heard: now}}
		w.saves[k] = s
	case change != epoch.Nothing:
		s.changed, s.judged = now, false
	}
	s.heard = now
	by, _ := w.observers.Peek(o.Observer)
	s.spans.take(of, by, change != epoch.Nothing, now)
	w.engine.Beside(k.job, k.generation, k.save, s.bytes(k))
}

// judgeAnew has saves judged with the next Tick.
func (w *Watch) judgeAnew(which func(genKey) bool) {
	for k, s := range w.saves {
		if which(k.genKey) {
			s.judged = false
		}
	}
}

// Tick judges what has changed, and returns the findings that were opened, updated or closed.
func (w *Watch) Tick(now time.Time) []model.Finding {
	w.forget(now)
	for _, k := range w.order() {
		s := w.saves[k]
		if !w.engine.Has(k.job, k.generation, k.save) { // it had to leave
			delete(w.saves, k)
			if e := w.at(k); e != nil { // it may still be wrong
				w.book.Drop(e)
			}
			continue
		}
		if !s.judged {
			s.verdict, s.judged = w.engine.Judge(k.job, k.generation, k.save), true
			s.doubters = w.doubters(k, s)
			w.stats.Judged++
			w.span(k, s, now)
			w.engine.Beside(k.job, k.generation, k.save, s.bytes(k))
		}
	}
	w.frontier(now)
	w.away(now)
	for _, k := range w.order() {
		w.look(k, w.saves[k], now)
	}
	w.forgetNames()
	return w.book.Take()
}

// doubters are who keeps a save from being confirmed. A pointer is no part of it, and that who looks
// at a place is not sure of it may be for the format.
func (w *Watch) doubters(k saveKey, s *save) []string {
	if v := s.verdict.Verdict; v == epoch.Unknown || v == epoch.Converged {
		return nil
	}
	return w.engine.Doubters(k.job, k.generation, k.save, func(d model.DomainKind) bool {
		return s.verdict.Verdict != epoch.Converging || d != model.DomainTracker && d != model.DomainPlace
	})
}

// order lists the saves, of each generation ascending.
func (w *Watch) order() []saveKey {
	return slices.SortedFunc(maps.Keys(w.saves), saveKey.compare)
}

// frontier notes the newest save of each generation that was converged, ever.
func (w *Watch) frontier(now time.Time) {
	for k, s := range w.saves {
		if s.verdict.Verdict != epoch.Converged {
			continue
		}
		if f := w.frontiers[k.genKey]; !f.OK || f.V < k.save {
			w.frontiers[k.genKey] = model.Some(k.save)
		}
	}
	for k := range w.frontiers {
		_, waits := w.before[k]
		if len(w.engine.Saves(k.job, k.generation)) == 0 && (!waits || now.Sub(w.restored) >= 2*w.cfg.Silent) {
			delete(w.frontiers, k)
			delete(w.before, k)
		}
	}
	w.limitFrontiers()
}

// limitFrontiers gives up frontiers of before a restart that are beside those that the engine has room for.
func (w *Watch) limitFrontiers() {
	for _, k := range slices.SortedFunc(maps.Keys(w.before), genKey.compare) {
		if len(w.frontiers) <= w.cfg.Engine.Jobs*w.cfg.Engine.Generations {
			return
		}
		delete(w.frontiers, k)
		delete(w.before, k)
		w.stats.Withheld++
	}
}

// look opens, updates or closes what is wrong with a save.
func (w *Watch) look(k saveKey, s *save, now time.Time) {
	class, wrong := w.class(k, s, now)
	e := w.at(k)
	switch {
	case !wrong && e == nil:
	case !wrong && e.Data.unseen && now.Sub(s.changed) < w.cfg.Settle && s.verdict.Verdict != epoch.Converged: // it is being reported again
	case !wrong && unseen(s) && now.Sub(s.heard) < 2*w.cfg.Silent: // a save that no observer sees may still be wrong
	case !wrong:
		w.close(k, now)
	default:
		w.found(k, class, &s.verdict, s.changed, now)
	}
}

// at returns the open finding of a save; nil for none.
func (w *Watch) at(k saveKey) *episode {
	if w.book.Len() == 0 {
		return nil
	}
	return w.book.At(k.place())
}

// found opens or updates the finding of a save. Its id follows from the job, the generation and the save.
func (w *Watch) found(k saveKey, class Class, j *epoch.Judgement, since, now time.Time) {
	if e := w.book.Found(k.place(), 0, w.finding(k, class, j, since, now), now); e != nil {
		e.Data = state{key: k}
	}
}

// class says what is wrong with a save, where that has stood for long enough.
func (w *Watch) class(k saveKey, s *save, now time.Time) (Class, bool) {
	if now.Sub(s.changed) < w.cfg.Settle || !w.stillSaid(k, s, now) {
		return "", false
	}
	switch s.verdict.Verdict {
	case epoch.MixedEpoch:
		return Mixed, true
	case epoch.Converging:
		if weightsOnly(&s.verdict) {
			return WeightsOnly, !w.outdone(k)
		}
		return Partial, true
	case epoch.Revoked:
		if len(s.verdict.Held) > 0 && w.ahead(k) {
			return Partial, true
		}
		return Revoked, w.newest(k)
	case epoch.Unknown, epoch.Converged:
	}
	return "", false
}

// weightsOnly reports whether a save lacks nothing but the optimizer of each place that doubts it, and has none. Such
// a domain is called as the place is.
func weightsOnly(j *epoch.Judgement) bool {
	places, optimizers := map[string]bool{}, 0
	for _, d := range j.Missing {
		if d.Domain.Kind == model.DomainPlace {
			places[d.Domain.ID] = true
		}
	}
	for _, d := range j.Missing {
		switch {
		case d.Domain.Kind == model.DomainPlace, d.Domain.Kind == model.DomainTracker:
		case d.Domain.Kind == model.DomainOptimizer && d.State == model.DomainAbsent && places[d.Domain.ID]:
			optimizers++
		default:
			return false
		}
	}
	return optimizers > 0 && j.MissingCount == len(j.Missing) && !slices.ContainsFunc(j.Held, func(h epoch.Held) bool {
		return slices.ContainsFunc(h.Domains, func(d model.Domain) bool { return d.Kind == model.DomainOptimizer })
	})
}

// outdone reports whether a newer save of a generation is complete, with an optimizer or without: what an older one
// lacks is of no concern then.
func (w *Watch) outdone(k saveKey) bool {
	for of, s := range w.saves {
		if of.genKey == k.genKey && of.save > k.save && (s.verdict.Verdict == epoch.Converged || weightsOnly(&s.verdict)) {
			return true
		}
	}
	return false
}

// ahead reports whether a save is newer than all that its job could ever recover: it was never whole.
func (w *Watch) ahead(k saveKey) bool {
	for of, f := range w.frontiers {
		if of.job == k.job && f.V >= k.save {
			return false
		}
	}
	return true
}

// newest reports whether a save is the newest that its job could ever recover, with whatever number of
// ranks. Retention deletes old ones: that is none's loss while there is a newer one.
func (w *Watch) newest(k saveKey) bool {
	for of, f := range w.frontiers {
		if of.job == k.job && (f.V > k.save || f.V == k.save && of != k.genKey) {
			return false
		}
	}
	return w.frontiers[k.genKey] == model.Some(k.save)
}

// stillSaid reports whether somebody who doubts a save has looked at all that there is after it could
// have changed: who fell silent in the midst of a save, or can not read its folder, has not seen its
// end. One who was silent, and is heard again, may be heard to say what was before.
func (w *Watch) stillSaid(k saveKey, s *save, now time.Time) bool {
	if w.at(k) != nil {
		return len(s.doubters) > 0
	}
	return slices.ContainsFunc(s.doubters, func(name string) bool {
		by, ok := w.observers.Peek(name)
		if !ok { // unknown: it is not followed
			return false
		}
		from := s.changed
		if by.since.After(from) {
			from = by.since
		}
		return by.seen.Sub(from) >= w.cfg.Settle/2 && now.Sub(from) >= w.cfg.Settle
	})
}

// unseen reports whether nobody doubts a save, and nobody confirms it.
func unseen(s *save) bool {
	return s.verdict.Domains > 0 && s.verdict.Verdict != epoch.Converged && len(s.doubters) == 0
}

// close ends the finding of a save.
func (w *Watch) close(k saveKey, now time.Time) {
	if e := w.at(k); e != nil {
		w.refresh(e, w.engine.Frontier(k.job, k.generation), now)
		w.book.Close(e, now.UnixNano())
	}
}

// Frontier is the newest epoch of a generation that every domain confirms.
func (w *Watch) Frontier(job, generation string) model.Optional[int64] {
	return w.engine.Frontier(job, generation)
}

// Holds reports whether anything of a job is held.
func (w *Watch) Holds(job string) bool { return len(w.engine.Generations(job)) > 0 }
