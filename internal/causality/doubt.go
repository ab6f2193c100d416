// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// doubts tell which relations between two clocks that are certainly wrong may be the
// clocks' after all. One that was just set is placed as if it had not been, until what
// shows it is solved. Nothing here rests on where clocks are placed: after a clock was
// set, its offset to another is as constant as before.
type doubts struct {
	window time.Duration
	now    time.Duration // of the data
	sides  map[direction]*messages
	held   map[direction]doubt
	swept  uint64 // batch
	over   int64  // undecided since more directions were in doubt than are held
}

// direction is from which clock to which a relation leads.
type direction struct{ from, to *Clock }

// messages are the relations of one direction in a batch.
type messages struct {
	all []message // by reading of the sender's clock
	// least is the tightest of those from each on, with what clocks can have gone
	// apart until then.
	least []int64
}

// message is a relation, as if a message had gone from one clock to another.
type message struct {
	from  int64 // reading of the sender's clock
	slack int64 // how much later the receiver's reads
	width int64
	by    model.SpanRef
	wrong bool
}

// doubt is since when relations of a direction are wrong, which nothing refutes.
type doubt struct {
	since, last time.Duration
	most        int64
}

const (
	// maxDoubts bounds the directions that are in doubt at the same time.
	maxDoubts = 1 << 12
	// mostLater is at how many later relations of a direction we look.
	mostLater = 32
	// rightToWrong is how many of these are right for one that is wrong where it is the
	// program. The longer a message takes the rarer it is: after a clock was set, those
	// that took long enough to seem right by less than others are wrong are no more.
	rightToWrong = 4
	// inFlight is the part of a window that no message takes that leaves before a clock
	// is set, and arrives after.
	inFlight = 100
)

func newDoubts(window time.Duration) *doubts {
	return &doubts{window: window, sides: map[direction]*messages{}, held: map[direction]doubt{}}
}

// accuses reports whether the relation says that a program is wrong, and a clock may be.
// Two clocks of which this is the first that is heard were not set since.
func (p *pairing) accuses(batch uint64) bool {
	return p.judged.class == Violation && p.first.Clock != p.second.Clock && min(p.first.Clock.met, p.second.Clock.met) < batch
}

// meets notes when a relation to another clock is heard of first.
func (p *pairing) meets(batch uint64) {
	if p.first.Clock == p.second.Clock {
		return
	}
	for _, c := range [...]*Clock{p.first.Clock, p.second.Clock} {
		if c.met == 0 {
			c.met = batch
		}
	}
}

func (p *pairing) direction() direction { return direction{p.first.Clock, p.second.Clock} }

func (p *pairing) message() message {
	first, second := p.first.At(p.row.From), p.second.At(p.row.To)
	from := first - p.first.Epoch
	return message{
		from: from, slack: second - p.second.Epoch - from, width: coarse(first, second, false),
		by: p.first.Ref, wrong: p.judged.class == Violation,
	}
}

// doubt leaves undecided what a clock may have done.
func (e *Engine) doubt() {
	d := e.doubts
	for i := range e.pairs {
		p := &e.pairs[i]
		p.meets(e.batch)
		if p.accuses(e.batch) {
			d.open(p.direction())
		}
	}
	if len(d.sides) == 0 {
		return
	}
	for i := range e.pairs {
		p := &e.pairs[i]
		if side := d.sides[p.direction()]; side != nil && !p.row.Usual {
			side.all = append(side.all, p.message())
		}
	}
	for _, side := range d.sides {
		side.sort()
	}
	for i := range e.pairs {
		if p := &e.pairs[i]; p.accuses(e.batch) && d.doubts(p, e.batch) {
			p.judged.class = Undecided
		}
	}
	clear(d.sides)
}

// open has both directions between two clocks gathered.
func (d *doubts) open(to direction) {
	if d.sides[to] == nil {
		d.sides[to], d.sides[direction{to.to, to.from}] = &messages{}, &messages{}
	}
}

func (m *messages) sort() {
	slices.SortFunc(m.all, func(a, b message) int { return cmp.Compare(a.from, b.from) })
	m.least = make([]int64, len(m.all)+1)
	m.least[len(m.all)] = mostBound
	for i := len(m.all) - 1; i >= 0; i-- {
		m.least[i] = m.least[i+1]
		if one := &m.all[i]; !one.wrong {
			m.least[i] = min(m.least[i], one.slack+one.width+one.from>>rateShift)
		}
	}
}

// after is the first that left at a reading or later.
func (m *messages) after(reading int64) int {
	i, _ := slices.BinarySearchFunc(m.all, reading, func(one message, r int64) int { return cmp.Compare(one.from, r) })
	return i
}

// doubts reports whether a relation that is certainly wrong may be the clocks' doing.
func (d *doubts) doubts(p *pairing, batch uint64) bool {
	to, one, magnitude := p.direction(), p.message(), p.judged.magnitude
	if d.sides[direction{to.to, to.from}].refute(&one, magnitude, p.second.Ref, d.window) || d.sides[to].outweigh(&one, magnitude) {
		delete(d.held, to)
		return false
	}
	held, ok := d.held[to]
	if !ok && len(d.held) >= maxDoubts && !d.sweep(batch) {
		d.over++
		return true
	}
	lasts := held.goesOn(d.now, d.window, magnitude, !ok)
	d.held[to] = held
	return lasts
}

// refute reports whether a message back, which left after the one that is wrong, took so
// little time that no offset makes both right. Under the hypothesis that the receiver's
// clock was set back while the first was under way, another can have left before; one
// that the receiving span itself has sent did not.
func (m *messages) refute(one *message, magnitude int64, receiver model.SpanRef, window time.Duration) bool {
	received := one.from + one.slack
	most := -one.slack - one.width + received>>rateShift
	if m.least[m.after(received+magnitude+int64(window)/inFlight)] < most {
		return true
	}
	i := m.after(received)
	for _, back := range m.all[i:min(i+mostLater, len(m.all))] {
		if back.by == receiver && !back.wrong && back.slack+back.width+back.from>>rateShift < most {
			return true
		}
	}
	return false
}

// outweigh reports whether most of the next messages of the same direction are right,
// which would be wrong, too, if a clock had been set.
func (m *messages) outweigh(one *message, magnitude int64) bool {
	i := m.after(one.from + 1)
	right, wrong := 0, 1
	for _, next := range m.all[i:min(i+mostLater, len(m.all))] {
		apart := (next.from-one.from)>>rateShift + next.width + one.width
		switch later := next.slack - one.slack; {
		case later < magnitude+apart:
			wrong++
		case later < 2*magnitude:
			right++
		}
	}
	return right >= rightToWrong*wrong
}

// goesOn takes what is wrong now, and reports whether the clocks may still come to be
// known anew. What is wrong by far more than before is something else.
func (h *doubt) goesOn(now, window time.Duration, magnitude int64, begins bool) bool {
	if begins || now-h.last > fitWindows*window || magnitude/2 > h.most {
		*h = doubt{since: now, most: magnitude}
	}
	h.last = now
	if now-h.since > fitWindows*window {
		return false
	}
	h.most = max(h.most, magnitude)
	return true
}

// sweep makes room, once in a batch.
func (d *doubts) sweep(batch uint64) bool {
	if d.swept != batch {
		d.swept = batch
		for to, h := range d.held {
			if to.from.gone || to.to.gone || d.now-h.last > fitWindows*d.window {
				delete(d.held, to)
			}
		}
	}
	return len(d.held) < maxDoubts
}
