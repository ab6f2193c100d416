// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"math"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// clockOff is how far a time may be from the clock that a host was seen to have: as late as
// batches of spans come, and far less than a time that is damaged, or a clock that was set.
const clockOff = 5 * time.Second

// A clock was set where so many times in a row say so, over so long: one damaged time does
// not, and two states of a rank are 2 s apart.
const (
	clockTimes = 3
	clockSpan  = 3 * time.Second
)

// slewed is the share of a later time by which the clock is followed that is slewed, and not one
// late batch: one of 64.
const slewed = 64

// hostClock follows how a rank's host sets its clock, by the times that come from it and when
// they do. Nobody's clock is corrected: what is asked is which times cannot be of it.
type hostClock struct {
	known bool
	ahead time.Duration // of the watch's; less by as long as times take to come
	// other are times in a row that are of another clock, the first of which came at since.
	other time.Duration
	times int
	since time.Time
}

// hear takes the newest time that something tells which comes now, and reports whether
// the clock was set meanwhile, or may have been.
func (c *hostClock) hear(at int64, now time.Time) (set bool) {
	d := time.Duration(at - now.UnixNano())
	switch {
	case at <= 0: // of no clock
	case !c.known:
		c.known, c.ahead = true, d
	case d > c.ahead && d <= clockOff: // what came before came late, or its clock was behind
		set = apart(d, c.ahead) > clockOff
		c.ahead, c.times = d, 0
	case apart(d, c.ahead) <= clockOff:
		c.ahead, c.times = max(d, c.ahead-(c.ahead-d)/slewed), 0
	case c.times == 0 || apart(d, c.other) > clockOff:
		c.other, c.times, c.since = d, 1, now
	default:
		c.times++
		if c.times >= clockTimes && now.Sub(c.since) >= clockSpan {
			c.ahead, c.times = d, 0
			return true
		}
	}
	return set
}

// latest is the latest time, Unix ns of the host, that can have been by now. What is past
// by the watch's own clock has been: records are played back faster than they were made.
func (c *hostClock) latest(now time.Time) int64 {
	if !c.known {
		return math.MaxInt64
	}
	return after(now, max(c.ahead, 0)+clockOff)
}

// reached is the latest time by the clock as it is now, also of one that is behind.
func (c *hostClock) reached(now time.Time) int64 {
	if !c.known {
		return math.MaxInt64
	}
	return after(now, c.ahead+clockOff)
}

// after is a time in ns, and the last that there is where it would be beyond.
func after(now time.Time, d time.Duration) int64 {
	at := now.UnixNano()
	if int64(d) > math.MaxInt64-at {
		return math.MaxInt64
	}
	return at + int64(d)
}

func apart(a, b time.Duration) time.Duration { return max(a-b, b-a) }

// hear takes the newest time of the rank's host that something tells which comes now. What was
// completed at times that have not been yet, by the clock that it has now, is forgotten: it was
// damaged, or the clock was set back since. No gap is counted over a clock that was set.
func (r *rank) hear(at int64, now time.Time) {
	set := r.host.hear(at, now)
	reached := r.host.reached(now)
	if !set && (r.host.times > 0 || r.completed <= reached) {
		return
	}
	r.completed, r.newest = past(r.completed, reached), past(r.newest, reached)
	for _, p := range r.comms {
		if p.ended = past(p.ended, reached); set {
			p.ended = 0
		}
	}
}

func past(at, reached int64) int64 {
	if at > reached {
		return 0
	}
	return at
}

// inTime reports whether a state is of no time before that of the one known, nor of one that has
// not been yet. A clock that was set makes neither.
func (r *rank) inTime(old *held, s *model.RankState, now time.Time) bool {
	if s.Time == 0 {
		return true
	}
	clock := r.clockOf(s.Source)
	if clock == nil {
		return old == nil || s.Time >= old.state.Time
	}
	if clock == &r.host {
		r.hear(s.Time, now)
	} else {
		clock.hear(s.Time, now)
	}
	if s.Time > clock.latest(now) {
		return false
	}
	return old == nil || s.Time >= old.state.Time || clock.times == 0 && old.state.Time > clock.reached(now)
}

// clockOf is the clock that states of a source are of; nil of dumps, which are files of any time.
func (r *rank) clockOf(source model.StateSource) *hostClock {
	switch source {
	case model.StateRankEvents:
		return &r.host
	case model.StateRAS:
		return &r.asked
	}
	return nil
}

// ofOneClock returns the state without the stamps of operations that were enqueued, by these,
// after it was taken: the clock was set meanwhile, and for how long they have stood is known to the
// watch alone.
func ofOneClock(s *model.RankState) *model.RankState {
	later := func(o model.StateOp) bool { return o.Created > s.Time }
	if s.Time == 0 || !slices.ContainsFunc(s.Ops, later) {
		return s
	}
	of := *s
	of.Ops = slices.Clone(s.Ops)
	for i := range of.Ops {
		if later(of.Ops[i]) {
			of.Ops[i].Created = 0
		}
	}
	return &of
}
