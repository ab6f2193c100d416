// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"math"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// window is one solution of one clock, against the reference of its scale.
type window struct {
	from, until int64 // readings between which the clock was observed
	at, offset  int64
	drift       float64
	bound       int64 // model.NoBound where nothing bounds it
	growth      float64
	sigma       float64
	by          *reading // of a real-time clock by its raw clock; nil where it was solved
	known       int64    // of a foreign scale: the time up to which the scale is known
}

func (w *window) offsetAt(reading int64) int64 {
	return w.offset + int64(math.Round(w.drift*float64(reading-w.at)))
}

func (w *window) boundAt(reading int64) int64 {
	return model.BoundAt(w.from, w.until, w.bound, w.growth, reading)
}

// segment is the life of a clock between two of its steps, or on one scale.
type segment struct {
	scale   *scale
	line    line // to the scale's reference
	windows []window
	// lo and hi are the readings that can belong to the segment.
	lo, hi int64
	// stale: readings up to here belong to a later segment where they occur in one.
	stale int64
	// stepped: a step began the segment, or ended it.
	steppedAtStart, steppedAtEnd bool
	// unsure: nothing tells whether it was this clock that was stepped, and not another.
	unsure bool
}

func newSegment(s *scale) *segment {
	return &segment{scale: s, lo: math.MinInt64, hi: math.MaxInt64, stale: math.MinInt64}
}

// apart is how many ns of a clock lie between two windows of its history. Whoever
// solves more often refines the last one, so that history is as long in any case.
const apart = int64(time.Second)

const (
	// knotsOfWindow is how many knots a line has for each window of its history: two
	// for the window and two for a refinement of it, and spareKnots for the beginning,
	// when each solution brings much.
	knotsOfWindow = 4
	spareKnots    = 16
)

func mostKnots(windows int) int { return knotsOfWindow*windows + spareKnots }

// refine replaces the last window by a better one of about the same time. The line
// follows where that says something else by a share of its own noise: bounds from
// traces are a hundred times as wide as their estimates err, and the noise of what is
// new is told too wide. Each bend takes knots, and with them history: where there are
// none to spare it follows only what matters to the bound.
func (s *segment) refine(w window, frozen int64, history int) {
	*s.last() = w
	tolerated := int64(w.sigma)
	if w.bound != model.NoBound {
		tolerated = w.bound / 8
	}
	if len(s.line.knots)+2 <= mostKnots(len(s.windows)) {
		tolerated = min(tolerated, int64(w.sigma/16))
	}
	away := distance(w.offset, s.line.offset(w.at))
	if w.by != nil {
		away = max(away, distance(w.offsetAt(w.until), s.line.offset(w.until)))
	}
	if away > tolerated {
		s.line.follow(w.at, w.offset, w.drift, frozen, mostKnots(history))
	}
}

func (s *segment) last() *window { return &s.windows[len(s.windows)-1] }

// spot is where a reading stands, by one segment.
type spot struct {
	time  int64
	ref   int64 // reading of the scale's reference
	bound int64
	sigma float64
	scale *scale
}

// place is what the segment says of a reading. The model that bounds it best counts:
// each of them bounds it truly.
func (s *segment) place(reading int64) spot {
	offset := s.line.offset(reading)
	ref := reading + offset
	best := spot{time: s.scale.time(ref), ref: ref, bound: model.NoBound, scale: s.scale, sigma: s.last().sigma}
	i := s.firstUntil(reading)
	for k := max(0, i-1); k < min(len(s.windows), i+3); k++ {
		best.narrow(&s.windows[k], reading, offset)
	}
	if i+3 < len(s.windows) {
		best.narrow(s.last(), reading, offset)
	}
	blur := s.scale.blur(ref)
	if s.scale.foreign {
		blur = s.scale.turned(ref - s.last().known)
	}
	if blur > 0 && best.bound != model.NoBound {
		best.bound = grow(best.bound, blur)
	}
	return best
}

// firstUntil returns the first window that ends at or after the reading.
func (s *segment) firstUntil(reading int64) int {
	for i := len(s.windows) - 1; i >= 0; i-- {
		if s.windows[i].until < reading {
			return i + 1
		}
	}
	return 0
}

// narrow takes the window's bound around the line where it is the better one. While
// the line is on its way to the window's estimate, it errs by as much as is left.
func (p *spot) narrow(w *window, reading, offset int64) {
	bound := w.boundAt(reading)
	if bound == model.NoBound {
		return
	}
	away := distance(w.offsetAt(reading), offset)
	if bound = grow(bound, away); bound < p.bound {
		p.bound, p.sigma = bound, w.sigma
		if p.sigma > 0 && away > 0 {
			p.sigma = math.Hypot(p.sigma, float64(away))
		}
	}
}

// grow adds to a bound, with what a scale that runs at another pace makes of it.
func grow(bound, by int64) int64 {
	sum := (float64(bound) + float64(by)) * (1 + maxSlew)
	if sum >= model.NoBound {
		return model.NoBound
	}
	return int64(math.Ceil(sum)) + 1
}

func distance(a, b int64) int64 {
	if a > b {
		return a - b
	}
	return b - a
}
