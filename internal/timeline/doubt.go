// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"math"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Both clocks of a host can be set: a time service does it to the real-time one, and a
// machine that is restored or paused to the raw one. What was read of both together tells
// that one of them was, and not which. Until a solution tells, readings stand where they
// would had nothing been set, with a bound that also holds if it was their clock.

// doubt is that a clock, or the other one of its host, was set.
type doubt struct {
	from  int64 // the first reading of the clock that can be from after it
	by    int64 // at most so much is wrong, ns
	told  bool  // others have its bound
	waits bool  // until others tell whether the reference was set
	// What follows is known of the real-time clock alone.
	since         time.Time
	life          int64    // of the raw clock, before
	rawFrom       int64    // the raw clock reads more where it was certainly read after it
	wallFrom      int64    // and so does the real-time clock
	first, newest *reading // since then
	late          bool     // the first is older than what was read before, by the raw clock
	before        int      // readings in a row that go on from before
}

// undecidedFor is when a doubt that no other host's clock can solve is put to an end.
const undecidedFor = silent

// doubts reports whether one of both clocks of a host was set before they were read, or
// before an earlier reading, and nothing has told yet which one. The caller holds mu.
func (t *Timeline) doubts(tr *track, on *scale, w *window) bool {
	p, raw := w.by, t.tracks[w.by.raw]
	if d := tr.doubt; d != nil && d.waits {
		tr.doubt = nil // the raw clock knows more
	}
	if d := tr.doubt; d != nil {
		if raw.steps == d.life {
			tr.readAgain(on, w)
			return true
		}
		t.decide(tr)
	}
	by, slack := tr.departs(on, w)
	if math.Abs(float64(by)) <= slack {
		return false
	}
	last := tr.last().last()
	before := p.rawAt(last.until)
	late := false
	if last.by != nil && last.by.raw == p.raw {
		before = last.by.until
		late = last.by.life == p.life && p.until <= before
	}
	unseen := max(0, p.from-before)
	d := &doubt{
		from: min(last.until, w.from-unseen), by: int64(min(math.Abs(float64(by))+slack, float64(farthest))),
		since: t.opt.Now(), life: p.life, rawFrom: max(p.from, before), wallFrom: max(w.from, last.until), first: p, newest: p, late: late,
	}
	tr.doubt, raw.doubt = d, &doubt{from: min(before, p.from-unseen), by: d.by}
	return true
}

// readAgain takes what is read while a clock is in doubt. What goes on from before comes
// late, or the first was wrong: nobody was set if nothing else is read.
func (t *track) readAgain(on *scale, w *window) {
	d, p := t.doubt, w.by
	if p.raw != d.first.raw {
		return
	}
	before, _ := t.departs(on, w)
	since, _ := d.newest.jump(p)
	if distance(since, 0) > distance(before, 0) {
		d.before++
		return
	}
	d.before = 0
	if p.until > d.newest.until {
		d.newest = p
	}
}

// decided reports whether a solution knows which of both clocks was set. The caller holds
// solving and mu.
func (t *Timeline) decided(tr *track, now time.Time) bool {
	d := tr.doubt
	raw := t.tracks[d.first.raw]
	if raw == nil || raw.steps != d.life || d.before >= convinced || now.Sub(d.since) > undecidedFor {
		return true
	}
	if d.late && d.newest == d.first {
		return false
	}
	// A raw clock that is not known to less can have been set without a step.
	return t.knows(tr.id, d) && raw.last().last().bound < d.by/2
}

func (t *Timeline) inDoubt(id string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	tr := t.tracks[id]
	return tr != nil && tr.doubt != nil
}

// knows reports whether the host of a clock in doubt was compared with others since.
func (t *Timeline) knows(id string, d *doubt) bool {
	t.comparing.Lock()
	defer t.comparing.Unlock()
	if c, ok := t.compared.Peek(d.first.raw); ok {
		return c.at > d.rawFrom
	}
	c, ok := t.compared.Peek(id)
	return ok && c.at > d.wallFrom
}

// decide places what was read since by a solution that knows.
func (t *Timeline) decide(tr *track) {
	d := tr.doubt
	tr.doubt = nil
	raw := t.tracks[d.first.raw]
	if raw == nil {
		return
	}
	raw.doubt = nil
	// Nobody who knows decides: too much time has passed.
	unsure, steps := raw.steps == d.life && !t.knows(tr.id, d), tr.steps
	readings := []*reading{d.first, d.newest}
	switch {
	case d.before >= convinced || raw.steps == d.life && d.late && d.newest == d.first:
		return // nobody was set
	case raw.steps != d.life:
		// The first can be from between two steps.
		readings = readings[1:]
	}
	for _, p := range readings {
		p.life = raw.steps
		if w, on, ok := t.byRaw(tr, p); ok && tr.heardOf(on, &w) && tr.learn(on, w, &t.opt) {
			tr.heard = t.opt.Now()
		}
	}
	if tr.steps > steps {
		tr.unsure, tr.readWith, tr.readAt = unsure, raw.id, tr.steps
	}
}

// widened is the bound of a reading, with what can be wrong by a doubt.
func (d *doubt) widened(bound, reading int64) int64 {
	if d == nil || reading < d.from || bound == model.NoBound {
		return bound
	}
	return grow(bound, d.by)
}

// comparison is what was read last of a clock when it was compared with those that are not
// of its host: the least of what came for one solution, as one neighbour alone that knows
// is not believed yet.
type comparison struct {
	at    int64
	round int64
	heard time.Time
}

// compare remembers until when a host's clocks were compared with those of others. The
// caller holds solving.
func (t *Timeline) compare(e *model.ClockEdge) {
	if e.Lower == model.NoLower || e.Upper == model.NoUpper {
		return
	}
	src, dst := parse(e.Src), parse(e.Dst)
	if src.host == dst.host && src.host != "" {
		return
	}
	t.comparedAt(e.Src, src, e.At)
	t.comparedAt(e.Dst, dst, e.At+e.Lower)
}

func (t *Timeline) comparedAt(id string, n name, at int64) {
	if n.host == "" || !n.raw && !n.realtime {
		return
	}
	t.comparing.Lock()
	defer t.comparing.Unlock()
	if c, ok := t.compared.Peek(id); ok && c.round == t.rounds {
		at = min(at, c.at)
	}
	c := comparison{at: at, round: t.rounds, heard: t.opt.Now()}
	if !t.compared.Fits(id, c) {
		t.stats.Overflowed.Add(1)
		return
	}
	t.compared.Set(id, c)
}
