// SPDX-License-Identifier: Apache-2.0

package pair

import "math"

// turn is when a clock changed, as far as bounds tell: between two readings.
type turn struct {
	from, until int64
	about       bool // nothing contradicts itself yet: it may be somewhat earlier or later
}

func (t turn) middle() int64 { return t.from + (t.until-t.from)/2 }

// maxTurns is how many turns are remembered, the latest.
const maxTurns = 8

// notice learns from intervals, in their order, when the clocks changed. What is after an
// interval and contradicts itself holds a change that comes later than it; and what is
// before one, a change that came earlier. Where both hold together and apart, it is inside
// or near, on either side by as much as leaves the envelopes uncrossed.
func (e *Estimator) notice(reach int64) {
	for k := range e.intervals {
		i := &e.intervals[k]
		if i.later {
			e.ahead = i.until
		}
		switch {
		case i.torn && i.contradicted == 0:
			e.turned(turn{i.from - reach/4, i.until + reach/4, true}, reach)
		case i.earlier:
			e.turned(turn{max(e.ahead, i.from-reach), i.from, false}, reach)
		}
	}
	oldest := e.done - int64(e.cfg.MaxFit) - int64(e.cfg.Window)
	for len(e.turns) > 0 && e.turns[0].until < oldest {
		e.turns = e.turns[:copy(e.turns, e.turns[1:])]
	}
}

// turned adds a turn, unless it can be the one that was seen last.
func (e *Estimator) turned(t turn, reach int64) {
	n := len(e.turns)
	if n > 0 && t.until-reach <= e.turns[n-1].until {
		if e.turns[n-1].about && !t.about {
			e.turns[n-1] = t
		}
		return
	}
	if n == maxTurns {
		e.turns = e.turns[:copy(e.turns, e.turns[1:])]
	}
	e.turns = append(e.turns, t)
}

// era is how many turns came before a reading.
func (e *Estimator) era(t int64) (n int) {
	for n < len(e.turns) && e.turns[n].middle() <= t {
		n++
	}
	return n
}

// steady is the time around a run of intervals in which no change is known.
func (e *Estimator) steady(from, until int64) (first, last int64) {
	first, last = math.MinInt64, math.MaxInt64
	for _, t := range e.turns {
		if t.middle() <= from {
			first = max(first, t.until)
		} else if t.middle() >= until {
			last = min(last, t.from)
		}
	}
	return first, last
}
