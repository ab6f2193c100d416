// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// track is all that is known of one clock.
type track struct {
	id    string
	name  name
	born  int64     // its number in the order in which clocks came; 0 of those that were restored
	begun time.Time // when it came; zero likewise
	// segments, oldest first, and their pieces where there are several.
	segments []*segment
	pieces   []piece

	asked atomic.Int64 // newest reading that was placed, up to limit
	limit int64        // newest reading that can be true
	heard time.Time    // when the last news came
	held  time.Time    // when it was left where it is, as nobody compares it

	untrusted, undecided bool
	neighbours           int
	evidence             []graph.Evidence
	foreign              bool // its models come from another gateway
	steps                int64
	// behind counts solutions in a row that are far behind the last window, and behindAt
	// is where the latest of them ended, on the scale's reference.
	behind   int
	behindAt int64
	unrest   int    // for how many windows it is restless, of what was restored
	restored bool   // and not observed since
	leapt    int64  // ns, by the last step
	unsure   bool   // it can have been another clock that was stepped
	readWith string // that one, where both are of one host; readAt is of which step
	readAt   int64
	told     *reading // what its last model given out rests on
	doubt    *doubt   // whether it was set; nil where none
}

const (
	// maxSegments bounds the steps of a clock that are remembered.
	maxSegments = 16
	// maxAhead is how much later than what was expected a reading may be and still be
	// settled by being placed: a window is solved some seconds after it began. Spans are
	// not from the future, and one that errs should bind nobody.
	maxAhead = int64(10 * time.Second)
	// latest is how late readings are expected: tail sampling waits for half a minute. Of
	// a clock that was set back what occurs twice is taken for the later one from then on.
	latest = int64(time.Minute)
	// maxPace bounds what a clock's rate can differ from the others between two
	// windows: what a jump exceeds beyond it is a step.
	maxPace = 1e-3
	// leastRaws is how many raw clocks tell which one of them was set.
	leastRaws = 3
	// convinced is for how many solutions a clock goes on behind its last window until
	// that is where it is.
	convinced = 3
	// observedAnew is what the same last observation can be moved by when others are
	// observed better.
	observedAnew = int64(time.Microsecond)
	// maxBend is the most that a change of the reference is hidden by bending a line.
	maxBend = int64(10 * time.Second)
)

func newTrack(id string) *track {
	t := &track{id: id, name: parse(id)}
	t.asked.Store(math.MinInt64)
	return t
}

func (t *track) last() *segment { return t.segments[len(t.segments)-1] }

// first is the least reading at which the clock was observed.
func (t *track) first() int64 {
	first := t.segments[0].windows[0].from
	for _, s := range t.segments[1:] {
		first = min(first, s.windows[0].from)
	}
	return first
}

// expect moves on which readings can be true, by the time since the last news.
func (t *track) expect(now time.Time) {
	t.limit = t.last().last().until + max(0, now.Sub(t.heard).Nanoseconds()) + maxAhead
}

// place returns where a reading stands; false where it is farther than forget from
// all that is known.
func (t *track) place(reading int64, forget time.Duration) (clock.Placement, bool) {
	first, last := t.first(), t.last().last().until
	if float64(first)-float64(reading) > float64(forget) || float64(reading)-float64(last) > float64(forget) {
		return clock.Placement{}, false
	}
	if t.untrusted {
		return clock.Placement{Time: reading, Timeline: t.last().scale.name, Untrusted: true}, true
	}
	at, stepped := t.spot(reading)
	if d := t.doubt; d != nil && reading >= d.from {
		at.bound, stepped = d.widened(at.bound, reading), true
	}
	if reading <= t.limit {
		raise(&t.asked, reading)
		raise(&at.scale.asked, at.ref)
	}
	return clock.Placement{
		Time: at.time, Offset: at.time - reading, Bound: orZero(at.bound), Bounded: at.bound != model.NoBound,
		Sigma: at.sigma, Timeline: at.scale.name, Stepped: stepped,
	}, true
}

// dated reports whether the scale that a reading is placed on is one of Unix time.
func (t *track) dated(reading int64) bool {
	if t.pieces == nil {
		return t.last().scale.anchored
	}
	at, _ := t.spot(reading)
	return at.scale.anchored
}

func orZero(b int64) int64 {
	if b == model.NoBound {
		return 0
	}
	return b
}

func (t *track) spot(reading int64) (at spot, stepped bool) {
	if t.pieces == nil {
		return t.segments[0].place(reading), false
	}
	i := len(t.pieces) - 1
	for i > 0 && t.pieces[i].from > reading {
		i--
	}
	return t.pieces[i].place(reading), t.pieces[i].stepped(reading)
}

// dateBy forgets the history on an undated scale of another gateway once the clock is on a dated one: no reading was
// placed there, and older readings stand on the dated scale, too.
func (t *track) dateBy(s *scale) {
	if len(t.segments) > 0 && s.anchored && t.last().scale.foreign && !t.last().scale.anchored {
		t.segments, t.pieces = nil, nil
		t.asked.Store(math.MinInt64)
	}
}

// learn takes a window of the clock on a scale; false where it says nothing new.
func (t *track) learn(s *scale, w window, opt *Options) bool {
	history := opt.History
	if t.dateBy(s); len(t.segments) == 0 {
		t.begin(newSegment(s), w, history)
		return true
	}
	seg := t.last()
	back := t.behind >= convinced || t.restored
	t.behind, t.restored = 0, false
	t.unrest = max(0, t.unrest-1)
	by, slack := t.departs(s, &w)
	stepped := math.Abs(float64(by)) > slack
	switch {
	case seg.scale != s && stepped:
		t.step(s, w, by, history)
	case seg.scale != s:
		t.move(s, w, history)
	case *seg.last() == w:
		return false
	case back && t.retract(w, history):
	case stepped:
		t.step(s, w, by, history)
	case seg.supersedes(&w):
		seg.refine(w, t.asked.Load(), history)
	default:
		seg.windows = append(seg.windows, w)
		seg.line.follow(w.at, w.offset, w.drift, t.asked.Load(), mostKnots(history))
	}
	t.trim(history)
	t.arrange(opt.Forget)
	return true
}

// heardOf reports whether the clock itself was observed since its last window, and not
// only others. What is far behind that window is heard once it goes on for several
// solutions, and at once after a restart: then the window was of another time.
func (t *track) heardOf(on *scale, w *window) bool {
	if len(t.segments) == 0 || t.last().scale != on {
		return true
	}
	last := t.last().last()
	end, before := w.until+w.offsetAt(w.until), last.until+last.offsetAt(last.until)
	if end > before-maxAhead {
		t.behind = 0
		return end > before+observedAnew
	}
	if t.behind == 0 || end > t.behindAt+observedAnew {
		t.behind, t.behindAt = t.behind+1, end
	}
	return t.behind >= convinced || t.restored
}

// retract drops the windows that read later than one that was heard after them, where
// the rest agrees with it: nobody set the clock.
func (t *track) retract(w window, history int) bool {
	seg := t.last()
	n := len(seg.windows)
	for n > 0 && seg.windows[n-1].from > w.until {
		n--
	}
	if n == len(seg.windows) || t.jumped(&seg.windows[max(n-1, 0)], &w) {
		return false
	}
	seg.windows = append(seg.windows[:n], w)
	t.asked.Store(min(t.asked.Load(), w.until+latest))
	seg.line.settled = min(seg.line.settled, w.at)
	seg.line.follow(w.at, w.offset, w.drift, t.asked.Load(), mostKnots(history))
	seg.scale.retract(w.until + w.offsetAt(w.until))
	return true
}

func (t *track) begin(s *segment, w window, history int) {
	s.windows = append(s.windows, w)
	s.line.follow(w.at, w.offset, w.drift, math.MinInt64, mostKnots(history))
	t.segments = append(t.segments, s)
}

// move lets the clock go on with another scale: later readings stand on the new one,
// and time neither jumps nor turns back.
func (t *track) move(s *scale, w window, history int) {
	old := t.last()
	cut := max(t.asked.Load(), old.line.settled)
	next := newSegment(s)
	offset := s.reading(old.place(cut).time) - cut
	if distance(offset, w.offsetAt(cut)) <= maxBend {
		next.line.follow(cut, offset, w.drift, cut, mostKnots(history))
	}
	if cut < math.MaxInt64 {
		old.hi, next.lo = cut, cut+1
	}
	t.begin(next, w, history)
}

// jumped tells a step from a change of frequency: both are beyond what the last
// window foresaw, but no frequency changes that much in so short a time.
func (t *track) jumped(old, next *window) bool {
	by, slack := t.jump(old, next)
	return math.Abs(float64(by)) > slack
}

// jump is by how much the clock departs from what a window foresaw, and by how much it
// can without having been set. What was read of both clocks of a host tells more, if the
// raw clock was not set in between.
func (t *track) jump(old, next *window) (by int64, slack float64) {
	switch {
	case t.name.daemon || old.bound == model.NoBound || next.bound == model.NoBound:
		return 0, 0
	case old.by != nil && next.by != nil && old.by.raw == next.by.raw && old.by.life == next.by.life:
		by, slack = old.by.jump(next.by)
		return -by, slack
	}
	return jump(old, next)
}

// departs is jump from the last window to one that may be on another scale. Where
// neither of both scales goes on from the other, nothing tells.
func (t *track) departs(s *scale, w *window) (by int64, slack float64) {
	old := t.last()
	if old.scale == s {
		return t.jump(old.last(), w)
	}
	if old.scale.root != s.root || s.root == "" {
		return 0, 0
	}
	was := *old.last()
	was.at, was.offset = w.from, s.reading(old.place(w.from).time)-w.from
	return t.jump(&was, w)
}

// restless reports whether a clock that nobody sets went elsewhere again and again in
// its history: several machines bear its name. Steps of which nothing tells whose they
// were do not count.
func (t *track) restless() bool {
	lives := 0
	for _, s := range t.segments {
		if s.steppedAtStart && !s.unsure {
			lives++
		}
	}
	return t.unrest > 0 || t.name.raw && lives >= convinced
}

// restlessFor is for how many windows a clock that goes nowhere any more is restless.
func (t *track) restlessFor(history int) int {
	windows, lives := 0, 0
	for _, s := range slices.Backward(t.segments) {
		windows += len(s.windows)
		if s.steppedAtStart && !s.unsure {
			lives++
		}
		if lives == convinced && t.name.raw {
			return max(t.unrest, history-windows)
		}
	}
	return t.unrest
}

// step begins a segment. When exactly the clock was set is known to lie between what
// was observed before and after.
func (t *track) step(s *scale, w window, by int64, history int) {
	t.steps++
	t.leapt = by
	t.unsure = t.name.raw && s.raws < leastRaws || s.guessed
	// Readings that were placed belong to the life before.
	t.asked.Store(math.MinInt64)
	old := t.last()
	next := newSegment(s)
	next.steppedAtStart, old.steppedAtEnd, next.unsure = true, true, t.unsure
	last := old.last()
	ended, began := old.scale.time(last.until+last.offsetAt(last.until)), s.time(w.from+w.offsetAt(w.from))
	unseen := max(0, began-ended)
	for _, b := range [2]int64{last.bound, w.bound} {
		if b != model.NoBound {
			unseen += b
		}
	}
	old.hi, next.lo = last.until+unseen, w.from-unseen
	t.begin(next, w, history)
}

// trim bounds windows and segments: the oldest windows of all go first.
func (t *track) trim(history int) {
	room := history
	for i := len(t.segments) - 1; i >= 0; i-- {
		seg := t.segments[i]
		if room == 0 || len(t.segments)-i > maxSegments {
			t.segments = append(t.segments[:0], t.segments[i+1:]...)
			break
		}
		if over := len(seg.windows) - room; over > 0 {
			seg.windows = append(seg.windows[:0], seg.windows[over:]...)
		}
		room -= len(seg.windows)
	}
}

// arrange divides readings among the segments. Of a clock that was stepped back far,
// none is as old as the first life would have to be.
func (t *track) arrange(forget time.Duration) {
	first, newest := t.segments[0], t.last().last()
	first.lo, t.last().hi = first.windows[0].from-forget.Nanoseconds(), math.MaxInt64
	t.pieces = nil
	late := t.last().place(newest.until).time - latest
	for _, s := range t.segments[:len(t.segments)-1] {
		u := s.last().until
		s.stale = late - (s.place(u).time - u)
	}
	if len(t.segments) > 1 {
		t.pieces = compile(t.segments)
	}
}
