// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// scale is one timeline: the reading of its reference, and what is added to it.
type scale struct {
	name, reference string
	// root is the reference of the first of the scales that went on from one another.
	root string
	line line // of the reference to Unix time
	// anchored: the line rests on a real-time clock.
	anchored bool
	// foreign: another gateway owns the scale, and its models lead to it directly.
	foreign bool
	// turn is how fast its pace changes, per ns, where other gateways extrapolate it; 0: without a limit.
	turn  float64
	asked atomic.Int64 // newest reading of the reference that was asked for
	// newest is, of a foreign scale that is not anchored, up to when any model has observed a clock, ns.
	newest int64
	// told is what was told before the scale was retracted, oldest first.
	told []told

	// epoch is how often the scale was set anew, and setBy how many real-time clocks
	// agreed on where it is.
	epoch, setBy int
	paired       bool  // those clocks hang on raw clocks
	vote         *vote // of the last solution, nil where no real-time clock is there

	// used: something stands on the scale, as far as clocks were gone through.
	used bool

	clocks, edges int
	raws          int // raw clocks that were solved together
	misfit        float64
	guessed       bool  // by the last solution: which of its clocks were set
	at            int64 // reading of the reference at the last solution
}

// walls is how many real-time clocks the scale follows.
func (s *scale) walls() int {
	if s.vote == nil {
		return 0
	}
	return s.vote.walls
}

const (
	// maxSlew is the fastest that a scale runs against its reference: as adjtime() slews
	// a clock.
	maxSlew = 500e-6
	// settle is in how many ns a scale approaches the median, so that one solution's
	// noise hardly shows.
	settle = float64(30 * time.Second)
	// astray is what a scale does not approach within settle any more. One that is
	// farther from where most clocks are was set by too few.
	astray = int64(maxSlew * settle)
	// maxScaleKnots bounds the knots of a scale: one for each solution.
	maxScaleKnots = 128
	// maxTold bounds how often a scale is retracted until the first of it is forgotten.
	maxTold = 4
)

// told is where a scale stood at readings from which it was retracted, up to the newest
// that was asked for.
type told struct {
	line        line
	from, until int64
}

// shared reports whether the scale is that of several gateways, of which another one solves.
func (s *scale) shared() bool { return s.foreign && s.turn > 0 }

func (s *scale) time(ref int64) int64 {
	if s.foreign {
		return ref
	}
	return ref + s.line.offset(ref)
}

func (s *scale) reading(unix int64) int64 {
	if s.foreign {
		return unix
	}
	return s.line.inverse(unix)
}

// blur is by how much the scale at a reading of its reference can be off the time that
// was told of it once: it was retracted, or the pieces before the first knot are not
// known any more.
func (s *scale) blur(ref int64) int64 {
	if s.foreign {
		return 0
	}
	off := int64(0)
	for i := range s.told {
		if t := &s.told[i]; t.from < ref && ref <= t.until {
			off = max(off, distance(t.line.offset(ref), s.line.offset(ref)))
		}
	}
	if since := float64(s.line.knots[0].x) - float64(ref); s.line.pruned && since > 0 {
		off = max(off, int64(min(math.Ceil(2*maxSlew*since)+2, float64(farthest))))
	}
	return off
}

// pace is the slope of the scale at a reading of its reference.
func (s *scale) pace(ref int64) float64 {
	if s.foreign {
		return 0
	}
	return s.line.piece(ref).slope
}

// follow lets the scale approach the median of real-time clocks, which holds at a
// reading of the reference. The first sets it.
func (s *scale) follow(at int64, v *vote) {
	s.vote = v
	switch {
	case v == nil:
		if len(s.line.knots) == 0 {
			s.line.follow(at, 0, 0, at, maxScaleKnots)
		}
	case !s.anchored:
		s.anchored = true
		s.set(v)
	case s.wrong(v):
		s.epoch++
		s.name = fmt.Sprintf("%s%s#%d", Prefix, s.reference, s.epoch+1)
		s.set(v)
	default:
		s.approach(at, v)
	}
}

// set puts the scale on the median. What stands on it stands elsewhere from then on.
func (s *scale) set(v *vote) {
	s.line, s.setBy, s.paired, s.told = line{}, len(v.reach), v.paired, nil
	s.line.follow(v.median.x, v.median.off, clamp(v.median.slope), v.median.x, maxScaleKnots)
}

// wrong reports whether the scale was set by clocks of which it is known now that
// they are wrong, or by traces where hosts tell now. What the clocks that agreed on
// it do later, it follows.
func (s *scale) wrong(v *vote) bool {
	away := distance(v.median.off, s.line.offset(v.median.x))
	if away <= astray {
		return false
	}
	return v.paired && !s.paired || 2*s.setBy < v.walls && v.against(away)
}

func (s *scale) approach(at int64, v *vote) {
	if at >= s.line.settled && at-s.line.settled < apart {
		return
	}
	s.line.settled = max(s.line.settled, at)
	from := max(s.line.settled, s.asked.Load())
	gap := float64(v.median.at(from) - s.line.offset(from))
	if math.Abs(gap) <= float64(astray) {
		s.setBy, s.paired = max(s.setBy, len(v.reach)), s.paired || v.paired
	}
	pace := clamp(v.median.slope + gap/settle)
	if s.turn > 0 {
		pace = s.towards(from, v.median.slope, gap)
	}
	s.line.steer(from, pace, maxScaleKnots)
}

// retract lets the scale follow again from a reading of its reference on: what was told
// of later ones was of another time. Where that is only late, spans of later ones have
// their times already.
func (s *scale) retract(ref int64) {
	s.line.settled = min(s.line.settled, ref)
	until, from := s.asked.Load(), ref+latest
	if until <= from {
		return
	}
	s.told = append(s.told, told{line: line{knots: slices.Clone(s.line.knots)}, from: from, until: until})
	s.told = s.told[max(0, len(s.told)-maxTold):]
	s.asked.Store(from)
}

func clamp(slope float64) float64 { return min(maxSlew, max(-maxSlew, slope)) }

// raise lets a number only grow.
func raise(to *atomic.Int64, v int64) {
	for old := to.Load(); v > old; old = to.Load() {
		if to.CompareAndSwap(old, v) {
			return
		}
	}
}

// turned is by how much a scale that another gateway steers can have departed from what was known of it so many ns
// before.
func (s *scale) turned(since int64) int64 {
	if s.turn == 0 || since <= 0 {
		return 0
	}
	x := float64(since)
	return int64(math.Ceil(min(s.turn*x*(x/2+float64(turnsIn)), 2*maxSlew*x)))
}

// towards is the pace at which a shared scale goes on from a reading of its reference: it comes near the wanted one, and
// closes the gap without passing it.
func (s *scale) towards(from int64, rate, gap float64) float64 {
	catch := math.Copysign(min(math.Abs(gap)/settle, math.Sqrt(2*s.turn*math.Abs(gap))), gap)
	last := s.line.piece(from)
	most := s.turn * float64(min(max(0, from-last.x), turnsIn))
	return clamp(max(last.slope-most, min(last.slope+most, rate+catch)))
}
