// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"math"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// What spans bear is a real-time clock, which may be slewed from any moment on, and the
// last solution is seconds old. Its host's raw clock is an oscillator, which the same
// solution knows for seconds to come. So what was read of both clocks together gives the
// real-time clock a window of its own, at once: from its reading to the raw clock's, and
// from there on as the raw clock stands.

// reading is what a pair edge says of a real-time clock and its host's raw clock. It
// does not change any more.
type reading struct {
	raw         string
	life        int64 // of raw: it goes back where a virtual machine is restored
	from, until int64 // readings of raw
	// offset is what realtime reads more than raw, when that one reads until. It is at
	// most half wrong from one to the other, if moved by drift.
	offset            int64
	half              int64
	drift, driftBound float64
	sigma             float64
}

// paired returns the clocks of an edge that says that both are of one host and were
// read together. Only an agent that reads both says so: packets let a peer name its clock as it
// likes.
func paired(e *model.ClockEdge) (raw, wall string, ok bool) {
	if e.Source != model.EdgePair {
		return "", "", false
	}
	raw, wall = e.Src, e.Dst
	r, w := parse(raw), parse(wall)
	if r.realtime {
		raw, wall, r, w = wall, raw, w, r
	}
	return raw, wall, r.raw && w.realtime && r.host != "" && r.host == w.host && r.boot == w.boot
}

// newReading reads a pair edge; false where it does not bound both clocks over a time.
func newReading(e *model.ClockEdge) (p *reading, wall string, ok bool) {
	raw, wall, ok := paired(e)
	if !ok || graph.Check(e) != nil || e.Lower == model.NoLower || e.Upper == model.NoUpper || e.Contradicted > 0 {
		return nil, "", false
	}
	if e.Span <= 0 || e.Span > maxReading || e.DriftBound <= 0 || e.DriftBound > maxPace || math.Abs(e.Drift) > maxPace {
		return nil, "", false
	}
	if e.Width() > float64(maxReading) || math.Abs(float64(e.At)+float64(e.Lower)) > float64(farthest) {
		return nil, "", false
	}
	offset := e.Offset
	if e.Sigma == 0 {
		offset = e.Lower + (e.Upper-e.Lower)/2
	}
	at, drift := e.At, e.Drift
	half := max(e.Upper-offset, offset-e.Lower) + int64(math.Ceil(e.DriftBound*float64(e.Span)/2)) + 2
	if raw != e.Src {
		at, offset, drift = at+offset, -offset, -drift/(1+drift)
	}
	ahead := e.Span / 2
	return &reading{
		raw: raw, from: at - ahead, until: at + ahead, offset: offset + int64(math.Round(drift*float64(ahead))),
		half: half, drift: drift, driftBound: e.DriftBound, sigma: e.Sigma,
	}, wall, true
}

// maxReading bounds the time and the width of an edge, ns: of what is wider nothing is
// known for spans.
const maxReading = int64(1e12)

// offsetAt is what realtime reads more than raw, when that one reads r.
func (p *reading) offsetAt(r int64) int64 {
	return p.offset + int64(math.Round(p.drift*float64(r-p.until)))
}

func (p *reading) realtime(r int64) int64 { return r + p.offsetAt(r) }

// rawAt is what raw reads when realtime reads u.
func (p *reading) rawAt(u int64) int64 {
	since := u - p.until - p.offset
	return p.until + since - int64(math.Round(p.drift/(1+p.drift)*float64(since)))
}

// window is where realtime stands, by where its raw clock does. The newest window of
// that one tells where, and the one that bounds it best how well, as in place.
func (p *reading) window(raw *segment, slew float64) (w window, ok bool) {
	last := raw.last()
	bound := int64(model.NoBound)
	for _, known := range raw.windows[max(0, len(raw.windows)-windowsLooked):] {
		bound = min(bound, max(known.around(last, p.from), known.around(last, p.until)))
	}
	if bound = grow(bound, p.half); bound == model.NoBound {
		return w, false
	}
	// The line meets the window where it begins: whatever was before, it leads there.
	from := p.realtime(p.from)
	return window{
		from: from, until: p.realtime(p.until), at: from, offset: p.from + last.offsetAt(p.from) - from,
		drift: (1+last.drift)/(1+p.drift) - 1, bound: bound, growth: min(1, last.growth+p.driftBound+slew),
		sigma: math.Hypot(last.sigma, p.sigma), by: p, known: last.known,
	}, true
}

// windowsLooked is how many windows of a raw clock are compared: a new one can be wider
// for a while, as after a restart.
const windowsLooked = 4

// around bounds another window's line at a reading.
func (w *window) around(other *window, reading int64) int64 {
	bound := w.boundAt(reading)
	if bound == model.NoBound {
		return bound
	}
	return grow(bound, distance(w.offsetAt(reading), other.offsetAt(reading)))
}

// takePair lets a real-time clock know at once where its raw clock stands.
func (t *Timeline) takePair(e *model.ClockEdge) {
	if p, wall, ok := newReading(e); ok && !t.takeReading(p, wall) && e.Prompt {
		t.stats.Unused.Add(1)
	}
}

func (t *Timeline) takeReading(p *reading, wall string) (taken bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tr := t.tracks[wall]
	if raw := t.tracks[p.raw]; raw != nil {
		p.life = raw.steps
	}
	w, on, ok := t.byRaw(tr, p)
	if !ok {
		return false
	}
	last := tr.last().last()
	switch by := last.by; {
	case by == nil && w.until > last.from:
		// Before what was solved nothing tells a slew from a step.
		w.from = max(w.from, last.from)
	case by != nil && by.raw == p.raw && by.life == p.life && p.until <= by.until:
		// It came late, unless the raw clock went back.
		if len(tr.segments) == 1 {
			t.doubts(tr, on, &w)
		}
		return false
	}
	if t.doubts(tr, on, &w) {
		return false
	}
	if tr.heardOf(on, &w) && tr.learn(on, w, &t.opt) {
		tr.heard = t.opt.Now()
		tr.expect(tr.heard)
		t.current(tr)
		t.stats.Prompt.Add(1)
		return true
	}
	return false
}

// byRaw returns the window of a real-time clock by its raw clock, and the scale that
// this one stands on; false where one of both is not to be believed, or raw clocks are
// not what the scale rests on.
func (t *Timeline) byRaw(tr *track, p *reading) (w window, on *scale, ok bool) {
	raw := t.tracks[p.raw]
	if !tr.agrees() || !raw.agrees() {
		return w, nil, false
	}
	on = raw.last().scale
	ahead, since := float64(p.until)-float64(raw.last().last().until), t.opt.Now().Sub(raw.heard).Nanoseconds()
	if reference, _ := restsOn(on.name); !parse(reference).raw || math.Abs(ahead) > float64(t.opt.Forget) || ahead > float64(maxAhead+max(0, since)) {
		return w, nil, false
	}
	w, ok = p.window(raw.last(), t.opt.Slew)
	return w, on, ok
}

// agrees reports whether the clock is solved here, or for all gateways elsewhere, and contradicts no other clock.
func (t *track) agrees() bool {
	return (t.solved() || t != nil && len(t.segments) > 0 && t.last().scale.shared()) && !t.untrusted && !t.undecided
}

func (t *track) solved() bool { return t != nil && len(t.segments) > 0 && !t.foreign }

// lastsFor is how much later than what was read together a solution must have observed
// a real-time clock to count in its place, ns: then no agent reads both any more.
const lastsFor = int64(5 * time.Second)

// again places what was read last anew, where the raw clock stands by a new solution.
// False where the solution itself is to be taken.
func (t *Timeline) again(tr *track, solved *window) (w window, on *scale, ok bool) {
	if len(tr.segments) == 0 {
		return w, nil, false
	}
	p := tr.last().last().by
	if p == nil || t.tracks[p.raw] == nil || t.tracks[p.raw].steps != p.life || solved.until-p.realtime(p.until) > lastsFor {
		return w, nil, false
	}
	return t.byRaw(tr, p)
}

// checkPrompt counts an edge that comes between solutions, and has been taken.
func (t *Timeline) checkPrompt(e *model.ClockEdge) error {
	err := graph.Check(e)
	if err == nil {
		if _, _, ok := newReading(e); ok {
			return nil
		}
		if _, _, ok := paired(e); ok {
			t.stats.Refused.Add(1)
			return fmt.Errorf("add prompt clock edge %s to %s: got span %d ns, %d to %d ns, drift %v ± %v, contradicted by %d ns; want bounds over a span of up to %d ns, and no contradiction",
				e.Src, e.Dst, e.Span, e.Lower, e.Upper, e.Drift, e.DriftBound, e.Contradicted, maxReading)
		}
		err = fmt.Errorf("add prompt clock edge %s to %s: got source %q; want %q, and the raw and the real-time clock of one boot of a host", e.Src, e.Dst, e.Source, model.EdgePair)
	}
	t.stats.Refused.Add(1)
	return err
}

// jump is by how much realtime was stepped between two readings, and what a slew and
// what they can be wrong by explain of it. In the 20 ms between two readings of an agent
// up to 20 µs are taken for a slew.
func (p *reading) jump(next *reading) (by int64, slack float64) {
	at := min(max(p.from, next.from), next.until)
	by = next.offsetAt(at) - p.offsetAt(at)
	return by, float64(p.half) + float64(next.half) + (maxPace+p.driftBound)*float64(max(0, next.from-p.until, p.from-next.until))
}

// supersedes reports whether a window stands for the last one too: nothing that this
// one observed is lost. Of what solutions say, those of one time are refinements.
func (s *segment) supersedes(w *window) bool {
	last := s.last()
	if w.by == nil {
		return distance(w.at, last.at) < apart
	}
	return w.by == last.by || len(s.windows) > 1 && w.from <= s.windows[len(s.windows)-2].until && last.until <= w.until
}

// through returns what was read together nearest to a reading of a real-time clock, and
// by how much the raw clock's reading can be wrong by it.
func (t *track) through(u int64, slew float64) (best *reading, wrong int64) {
	seg := t.segments[0]
	if t.pieces != nil {
		i := len(t.pieces) - 1
		for i > 0 && t.pieces[i].from > u {
			i--
		}
		if len(t.pieces[i].segments) != 1 {
			return nil, 0
		}
		seg = t.pieces[i].segments[0]
	}
	wrong = math.MaxInt64
	consider := func(w *window) {
		if w.by == nil {
			return
		}
		outside := max(0, float64(w.from)-float64(u), float64(u)-float64(w.until))
		if off := grow(w.by.half, int64(math.Ceil((slew+w.by.driftBound)*outside))); off < wrong {
			best, wrong = w.by, off
		}
	}
	i := seg.firstUntil(u)
	for k := max(0, i-1); k < min(len(seg.windows), i+3); k++ {
		consider(&seg.windows[k])
	}
	consider(seg.last())
	return best, wrong
}

// oscillator returns the clock, its reading, and by how much that can be wrong, that
// bounds best where a reading stands by a solution. That takes all clocks for
// oscillators: what a real-time clock is slewed by outside of what it observed is added,
// and where the raw clock is known to less, that one is asked for.
func (t *Timeline) oscillator(sol *graph.Solution, tr *track, u int64) (id string, reading, wrong int64) {
	if !tr.name.realtime {
		return tr.id, u, 0
	}
	wrong = math.MaxInt64
	if m, ok := sol.Model(tr.id); ok {
		outside := max(0, float64(m.From)-float64(u), float64(u)-float64(m.Until))
		wrong = int64(math.Ceil(t.opt.Slew * outside))
	}
	if p, less := tr.through(u, t.opt.Slew); p != nil && less < wrong {
		return p.raw, p.rawAt(u), less
	}
	return tr.id, u, wrong
}
