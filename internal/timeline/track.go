package timeline

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// track is all that is known of one clock.
type track struct {
	id   string
	name name
	born int64 // its number in the order in which clocks came; 0 of those that were restored
	// segments, oldest first, and their pieces where there are several.
	segments []*segment
	pieces   []piece

	asked atomic.Int64 // newest reading that was placed, up to limit
	limit int64        // newest reading that can be true
	heard time.Time    // when the last news came

	untrusted, undecided bool
	neighbours           int
	evidence             []graph.Evidence
	foreign              bool // its models come from another gateway
	steps                int64
	jump                 int64 // ns, of the last step
}

const (
	// maxSegments bounds the steps of a clock that are remembered.
	maxSegments = 16
	// maxAhead is how much later than what was expected a reading may be and still be
	// settled by being placed: a window is solved some seconds after it began. Spans are
	// not from the future, and one that errs should bind nobody.
	maxAhead = int64(10 * time.Second)
	// maxPace bounds what a clock's rate can differ from the others between two
	// windows: what a jump exceeds beyond it is a step.
	maxPace = 1e-3
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
	if reading <= t.limit {
		raise(&t.asked, reading)
		raise(&at.scale.asked, at.ref)
	}
	return clock.Placement{
		Time: at.time, Offset: at.time - reading, Bound: bounded(at.bound), Bounded: at.bound != model.NoBound,
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

func bounded(b int64) int64 {
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

// learn takes a window of the clock on a scale; false where it says nothing new.
func (t *track) learn(s *scale, w window, opt *Options) bool {
	history := opt.History
	if len(t.segments) == 0 {
		t.begin(newSegment(s), w, history)
		return true
	}
	seg := t.last()
	switch {
	case seg.scale != s:
		t.move(s, w, history)
	case *seg.last() == w:
		return false
	case t.jumped(seg.last(), &w):
		t.step(w, history)
	case distance(w.at, seg.last().at) < apart:
		seg.refine(w, t.asked.Load(), history)
	default:
		seg.windows = append(seg.windows, w)
		seg.line.follow(w.at, w.offset, w.drift, t.asked.Load(), mostKnots(history))
	}
	t.trim(history)
	t.arrange(opt.Forget)
	return true
}

// anew reports whether the clock itself was observed since its last window, and not
// only others.
func (t *track) anew(on *scale, w *window) bool {
	if len(t.segments) == 0 || t.last().scale != on {
		return true
	}
	last := t.last().last()
	return w.until+w.offsetAt(w.until) > last.until+last.offsetAt(last.until)+observedAnew
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
	if t.name.raw || t.name.daemon || old.bound == model.NoBound || next.bound == model.NoBound {
		return false
	}
	unseen := max(0, next.from-old.until)
	most := float64(old.bound) + float64(next.bound) + max(maxPace, old.growth)*float64(unseen)
	t.jump = next.offsetAt(next.from) - old.offsetAt(next.from)
	return math.Abs(float64(t.jump)) > most
}

// step begins a segment. When exactly the clock was stepped is known to lie between
// what was observed before and after.
func (t *track) step(w window, history int) {
	t.steps++
	// Readings that were placed belong to the life before.
	t.asked.Store(math.MinInt64)
	old := t.last()
	next := newSegment(old.scale)
	next.steppedAtStart, old.steppedAtEnd = true, true
	ended, began := old.last().until+old.last().offsetAt(old.last().until), w.from+w.offsetAt(w.from)
	unseen := max(0, began-ended) + old.last().bound + w.bound
	old.hi, next.lo = old.last().until+unseen, w.from-unseen
	t.begin(next, w, history)
}

// trim bounds windows and segments.
func (t *track) trim(history int) {
	windows := 0
	for i := len(t.segments) - 1; i >= 0; i-- {
		seg := t.segments[i]
		if over := len(seg.windows) - history; over > 0 {
			seg.windows = append(seg.windows[:0], seg.windows[over:]...)
		}
		if windows += len(seg.windows); windows > history || len(t.segments)-i > maxSegments {
			t.segments = append(t.segments[:0], t.segments[max(i, 1):]...)
			break
		}
	}
}

// arrange divides readings among the segments. Of a clock that was stepped back far,
// none is as old as the first life would have to be.
func (t *track) arrange(forget time.Duration) {
	first := t.segments[0]
	first.lo, t.last().hi = first.windows[0].from-forget.Nanoseconds(), math.MaxInt64
	t.pieces = nil
	if len(t.segments) > 1 {
		t.pieces = compile(t.segments)
	}
}
