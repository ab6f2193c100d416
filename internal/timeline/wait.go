// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Traces compare few clocks at a time, so one solution may know only a part of those that
// jump against a reference that was set. Where no raw clock tells, it waits for the others:
// until more than half of those that stand on the scale were observed since and are of one
// mind, nobody is moved, and what jumped is in doubt.

const (
	// waitsFor is when what nobody else tells of is decided by who was heard: tail sampling
	// waits for half a minute.
	waitsFor = 30 * time.Second
	// lagging is by how much later than usual a clock can be observed that jumped.
	lagging = 3 * time.Second
)

// wait is what is known of a scale some clocks of which jumped.
type wait struct {
	since time.Time
	after int64           // on the scale, from when on who did not jump tells so
	votes map[string]gone // of those that were observed since, by clock
	moved map[string]bool // those that jumped
	mute  map[string]bool // those that were observed since, and known to less than the jump
}

// hear adds what a solution tells of the clocks of a scale without raw clocks, and returns
// what all of them do; true where it is not known yet whether the reference was set. The
// caller holds mu.
func (t *Timeline) hear(ref string, l *lead, solved []*graph.Solved, now []gone, at time.Time) ([]gone, bool) {
	l.own.guessed = false
	w := t.waits[ref]
	if w == nil {
		if !slices.ContainsFunc(now, gone.jumped) {
			return now, false
		}
		w = &wait{since: at, votes: map[string]gone{}, moved: map[string]bool{}, mute: map[string]bool{}}
		t.waits[ref] = w
	}
	w.listen(t, l, solved, at)
	all := t.standing(l.own)
	agreed := w.agreed(all)
	if !agreed && len(w.votes)+len(w.mute) < all && at.Sub(w.since) < waitsFor && !at.Before(w.since) {
		t.doubtMoved(ref, w)
		return nil, true
	}
	votes := w.all()
	l.own.guessed = !agreed
	t.settleMoved(ref, leap(votes).jumped())
	return votes, false
}

// listen takes those first that jumped: they tell when.
func (w *wait) listen(t *Timeline, l *lead, solved []*graph.Solved, at time.Time) {
	var stay []*graph.Solved
	for _, s := range solved {
		g, ok := l.goes(s, t.tracks[s.Clock])
		switch {
		case ok && g.jumped():
			w.jumped(t.tracks[s.Clock], l, s, g, at)
		case ok:
			stay = append(stay, s)
		}
	}
	for _, s := range stay {
		g, _ := l.goes(s, t.tracks[s.Clock])
		w.stays(t.tracks[s.Clock], s, g)
	}
}

// jumped notes that a clock jumped, and when at the latest: by where it would be read had
// the reference been set, or itself, and not later than it could be heard of.
func (w *wait) jumped(tr *track, l *lead, s *graph.Solved, g gone, at time.Time) {
	w.votes[s.Clock] = g
	delete(w.mute, s.Clock)
	if w.moved[s.Clock] {
		return
	}
	w.moved[s.Clock] = true
	seg, next := tr.last(), windowOf(s)
	last := seg.place(seg.last().until).time
	was, is := seg.place(next.from).time, seg.scale.time(next.from+next.offsetAt(next.from)+l.shift)
	latest := last + max(0, at.Sub(tr.heard)).Nanoseconds() + lagging.Nanoseconds()
	w.after = max(w.after, last, min(max(was, is), latest))
	if tr.doubt == nil {
		by := distance(g.jump, 0) + g.slack
		tr.doubt = &doubt{from: min(seg.last().until, next.from), by: by, waits: true}
	}
}

// stays notes that a clock did not jump, where it was observed since.
func (w *wait) stays(tr *track, s *graph.Solved, g gone) {
	switch {
	case s.Clock == s.Reference:
		w.votes[s.Clock] = g
	case tr.last().place(s.From).time <= w.after:
	case g.slack < w.least():
		w.votes[s.Clock] = g
		delete(w.mute, s.Clock)
	default:
		if _, voted := w.votes[s.Clock]; !voted {
			w.mute[s.Clock] = true
		}
	}
}

// least is what the one that jumped least certainly did.
func (w *wait) least() int64 {
	least := int64(farthest)
	for c := range w.moved {
		if g := w.votes[c]; g.jumped() {
			least = min(least, distance(g.jump, 0))
		}
	}
	return least
}

// all are the votes, in order of the clocks.
func (w *wait) all() []gone {
	votes := make([]gone, 0, len(w.votes))
	for _, c := range slices.Sorted(maps.Keys(w.votes)) {
		votes = append(votes, w.votes[c])
	}
	return votes
}

// agreed reports whether more than half of the clocks of a scale do the same.
func (w *wait) agreed(all int) bool {
	votes, stay := w.all(), 0
	for _, g := range votes {
		if !g.jumped() {
			stay++
		}
	}
	_, moved := mostJumped(votes)
	return 2*max(stay, moved) > all
}

// standing is how many clocks stand on a scale that were heard of lately.
func (t *Timeline) standing(s *scale) int {
	n := 0
	for _, tr := range t.tracks {
		if len(tr.segments) > 0 && !tr.foreign && !tr.untrusted && tr.last().scale == s && tr.last().last().bound != model.NoBound {
			n++
		}
	}
	return n
}

// doubtMoved puts the reference in doubt as well: if it was set it is the only one that
// was.
func (t *Timeline) doubtMoved(ref string, w *wait) {
	tr := t.tracks[ref]
	if tr.doubt != nil {
		return
	}
	by := int64(0)
	for c := range w.moved {
		if g, ok := w.votes[c]; ok {
			by = max(by, distance(g.jump, 0)+g.slack)
		}
	}
	tr.doubt = &doubt{from: tr.last().last().until, by: by, waits: true}
}

// settleMoved ends the wait for a reference. Of who was set it stays in doubt where it is
// until it has learned of it.
func (t *Timeline) settleMoved(ref string, set bool) {
	w := t.waits[ref]
	delete(t.waits, ref)
	t.trust(ref)
	for c := range w.moved {
		if set || !w.votes[c].jumped() {
			t.trust(c)
		}
	}
}

// endWaits ends those of references that stand elsewhere now, or that nobody compares.
func (t *Timeline) endWaits(sol *graph.Solution, waiting map[string]bool, now time.Time) {
	for _, c := range sol.Components() {
		if t.waits[c.Reference] != nil && !waiting[c.Reference] {
			t.settleMoved(c.Reference, true)
		}
	}
	for ref, w := range t.waits {
		if now.Sub(w.since) > 2*waitsFor {
			t.settleMoved(ref, true)
		}
	}
}

func (t *Timeline) trust(c string) {
	if tr := t.tracks[c]; tr != nil && tr.doubt != nil && tr.doubt.waits {
		tr.doubt = nil
	}
}
