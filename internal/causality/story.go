// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// story is how the first span of a trace was given out.
type story struct {
	shift    int64
	timeline string // "" none
	// stays: what comes is moved like the first, whatever is known by then.
	stays bool
	batch uint64 // the first one
}

// stories are those of the latest traces.
type stories struct {
	of    map[model.TraceID]*story
	order ring[model.TraceID]
}

// spansPerStory is how many spans are remembered for each trace that is.
const spansPerStory = 4

func newStories(maxSpans int) *stories {
	s := &stories{of: map[model.TraceID]*story{}}
	s.order.max = uint64(max(1, maxSpans/spansPerStory))
	return s
}

// tell returns the story of a trace, which begins with a place where it is new.
func (ss *stories) tell(trace model.TraceID, first *Place, batch uint64) *story {
	if s := ss.of[trace]; s != nil {
		return s
	}
	if oldest := ss.order.evicts(); oldest != nil {
		delete(ss.of, *oldest)
	}
	slot, _ := ss.order.add()
	*slot = trace
	s := &story{shift: first.Shift, timeline: first.Timeline, batch: batch}
	if first.State != Placed {
		s.stay(batch)
	}
	ss.of[trace] = s
	return s
}

// fits reports whether a span may stand where its clock's model puts it.
func (s *story) fits(p *Place) bool { return p.State == Placed && p.Timeline == s.timeline }

// agree lets the spans of a trace stand on one timeline, or stay among each other as
// they were stamped: what stands on two, or on none, cannot be compared, and who moves
// one of both may turn what was right, with nothing to tell by how much it can be wrong.
// What was given out before stays; so a trace that began before its clocks were known, or
// on a timeline that was set anew since, ends as it began.
func (e *Engine) agree(b *Batch) {
	growing := e.growth.goesOn(e, b)
	e.told = e.told[:0]
	var trace model.TraceID
	var s *story
	for i := range b.Spans {
		span, p := &b.Spans[i], &b.Places[i]
		if !span.remembered() || p.State == Untrusted || p.State == Unknown && e.passed-span.Clock.first >= grows {
			e.told = append(e.told, nil)
			continue
		}
		if s == nil || span.Ref.Trace != trace {
			trace = span.Ref.Trace
			if s = e.kin(i); s == nil {
				s = e.stories.tell(trace, p, e.batch)
			}
		}
		e.pass(i, s)
		if !s.stays && (growing || !s.fits(p)) {
			s.stay(e.batch)
		}
		e.told = append(e.told, s)
	}
	for i, s := range e.told {
		if s != nil && s.stays {
			e.leave(&b.Places[i], s)
		}
	}
}

// leave moves a span like the first one of its trace.
func (e *Engine) leave(p *Place, s *story) {
	switch {
	case s.shift != 0:
		*p = withheld(p, choice{s.shift, s.timeline})
	case p.State == Placed:
		*p = Place{}
		e.stats.NotPlaced++
	}
}

// stay ends a story as it began; where nothing is out, as it was stamped.
func (s *story) stay(batch uint64) {
	s.stays = true
	if s.batch == batch {
		s.shift, s.timeline = 0, ""
	}
}

// growth tells while clocks come to be known: what is moved then, and what comes after
// it of a clock that nothing is known of yet, cannot both stand right.
type growth struct {
	young  []*Clock // that came to be on no timeline, and are not on one yet
	clocks int
	since  time.Duration // of the data, when it began
	last   time.Duration // when there was a new clock
	on     bool
}

const (
	// grows is over how long it lasts at most, and a clock counts as new.
	grows = 10 * time.Second
	// grown is for how long there is no new clock when it is over: exporters send once a
	// second.
	grown = time.Second
	// maxYoung bounds the clocks that are asked for with each batch.
	maxYoung = 256
	// growingShare is what share of the clocks is many.
	growingShare = 1.0 / 8
)

// goesOn reports whether it does, with a batch that was placed.
func (g *growth) goesOn(e *Engine, b *Batch) bool {
	if len(e.clocks) > g.clocks {
		g.last = e.passed
	}
	g.clocks = len(e.clocks)
	for i := range b.Places {
		c := b.Spans[i].Clock
		if c == nil || b.Places[i].State != Unknown || c.young || e.passed-c.first >= grows || len(g.young) >= maxYoung {
			continue
		}
		c.young, c.reading = true, b.Spans[i].Begin-b.Spans[i].Epoch
		g.young = append(g.young, c)
	}
	if len(g.young) == 0 && !g.on {
		return false
	}
	g.young = slices.DeleteFunc(g.young, func(c *Clock) bool {
		_, placed := e.timeline.Place(c.ID, c.reading)
		if old := placed || c.gone || e.passed-c.first >= grows; !old {
			return false
		}
		c.young = false
		return true
	})
	if !g.on && float64(len(g.young)) > growingShare*float64(g.clocks) {
		g.on, g.since = true, e.passed
	}
	g.on = g.on && e.passed-g.since < grows && (len(g.young) > 0 || e.passed-g.last < grown)
	return g.on
}
