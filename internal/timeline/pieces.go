// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"math"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// piece is a range of readings, up to the next piece, that can belong to the same
// segments of a clock.
type piece struct {
	from     int64
	segments []*segment
	// before and after stand in for segments where no reading should be: a step
	// forward left them out.
	before, after *segment
	// floor is where the readings before the piece end: readings that occur twice are
	// placed between both, and must not lead back.
	floor int64
}

// compile divides the readings of a clock with several segments.
func compile(segments []*segment) []piece {
	var cuts []int64
	for _, s := range segments {
		cuts = append(cuts, s.lo)
		if s.hi != math.MaxInt64 {
			cuts = append(cuts, s.hi+1)
		}
		if s.lo < s.stale && s.stale < s.hi {
			cuts = append(cuts, s.stale+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	pieces := make([]piece, len(cuts))
	floor := int64(math.MinInt64)
	for i, from := range cuts {
		last := int64(math.MaxInt64)
		if i+1 < len(cuts) {
			last = cuts[i+1] - 1
		}
		p := &pieces[i]
		*p = piece{from: from, floor: floor}
		p.find(segments, last)
		if last != math.MaxInt64 {
			floor = p.place(last).time
		}
	}
	return pieces
}

func (p *piece) find(segments []*segment, last int64) {
	for _, s := range segments {
		switch {
		case s.lo <= p.from && last <= s.hi:
			p.segments = append(p.segments, s)
		case s.hi < p.from && (p.before == nil || s.hi >= p.before.hi):
			p.before = s
		case s.lo > last && (p.after == nil || s.lo < p.after.lo):
			p.after = s
		}
	}
	// The newest segment of those that have the readings is never stale.
	for len(p.segments) > 1 && last <= p.segments[0].stale {
		p.segments = p.segments[1:]
	}
}

// spots is where the reading can be, by each segment that it can belong to.
func (p *piece) spots(reading int64) []spot {
	var spots []spot
	for _, s := range p.segments {
		spots = append(spots, s.place(reading))
	}
	if len(spots) == 0 && p.before != nil {
		spots = append(spots, p.before.place(p.before.hi))
	}
	if len(p.segments) == 0 && p.after != nil {
		spots = append(spots, p.after.place(p.after.lo))
	}
	return spots
}

// place puts the reading in the middle of where it can be, not before the floor,
// with a bound that covers all.
func (p *piece) place(reading int64) spot {
	spots := p.spots(reading)
	at := spots[len(spots)-1]
	lo, hi := at.time, at.time
	for _, s := range spots {
		lo, hi = min(lo, s.time), max(hi, s.time)
		if s.scale == at.scale {
			at.ref = max(at.ref, s.ref)
		}
	}
	at.time = max(lo+(hi-lo)/2, p.floor)
	at.bound = 0
	for _, s := range spots {
		if s.bound == model.NoBound || at.bound == model.NoBound {
			at.bound = model.NoBound
			continue
		}
		at.bound = max(at.bound, s.bound+distance(s.time, at.time))
	}
	return at
}

// nearStep is for how long before and after a step readings are marked: what is under way
// meanwhile bears readings of both lives.
const nearStep = int64(time.Second)

// stepped reports whether the clock was stepped near the reading.
func (p *piece) stepped(reading int64) bool {
	if len(p.segments) != 1 {
		return true
	}
	s := p.segments[0]
	return s.steppedAtStart && reading < s.windows[0].from+nearStep || s.steppedAtEnd && reading > s.last().until-nearStep
}
