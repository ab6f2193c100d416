// SPDX-License-Identifier: Apache-2.0

package skewmap

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// Write puts the results of the batch on its spans. With realign false no time
// changes.
func (m *Mapper) Write(realign bool) {
	m.rankVerdicts()
	for i := range m.items {
		it := &m.items[i]
		m.makeRoom(it, i)
		if realign {
			m.realign(it, &m.batch.Spans[i], &m.batch.Places[i])
		} else {
			annotate(it, &m.batch.Places[i])
		}
		m.verdict(i, it)
	}
}

// The attributes of a place and of a verdict are given room at once: growing costs
// as much as all of them.
const verdictAttributes = 5

func (m *Mapper) makeRoom(it *item, i int) {
	room, p := 0, &m.batch.Places[i]
	if it.note.has&hasRawStart == 0 && stands(p) {
		room = placeAttributes(p)
	}
	if m.worst[i] != 0 && it.note.has&hasVerdict == 0 {
		room += verdictAttributes
	}
	if room > 0 {
		attrs := it.span.Attributes()
		attrs.EnsureCapacity(attrs.Len() + room)
	}
}

// placeAttributes is how many a place has: offset, timeline, where the span started, and
// how well that is known.
func placeAttributes(p *causality.Place) int {
	n := 3
	for _, has := range [...]bool{p.Bounded, p.Sigma > 0, p.Stepped, p.State == causality.Withheld} {
		if has {
			n++
		}
	}
	return n
}

// annotate writes where a span would stand. One that was moved says so already,
// and one that stands on another clock says how it came there.
func annotate(it *item, p *causality.Place) {
	attrs := it.span.Attributes()
	it.note.state(attrs, p.State)
	if it.note.moved || it.note.has&hasViaStart != 0 {
		return
	}
	if !stands(p) {
		it.note.clean(attrs)
		return
	}
	attrs.PutDouble(semconv.ClockOffset, seconds(p.Shift))
	it.note.interval(attrs, p, 0)
	attrs.PutStr(semconv.ClockTimeline, p.Timeline)
}

// stands reports whether a span has a place: by its clock's model, like those of its
// trace that were given out before, or as it came and to within what the model says.
func stands(p *causality.Place) bool {
	return p.State == causality.Placed || p.State == causality.Withheld && (p.Shift != 0 || p.Bounded)
}

// realign moves a span to where it stands on the timeline; one that stands on
// none goes back to where it came from.
func (m *Mapper) realign(it *item, s *causality.Span, p *causality.Place) {
	n := &it.note
	to := s.Begin + p.Shift
	attrs := it.span.Attributes()
	n.state(attrs, p.State)
	if !stands(p) || to <= 0 || s.Until+p.Shift <= 0 {
		n.restore(it.span, s.Begin)
		return
	}
	move(it.span, to)
	if n.has&hasViaStart != 0 {
		n.compose(attrs, p, to)
	} else {
		attrs.PutDouble(semconv.ClockOffset, seconds(p.Shift))
		n.interval(attrs, p, 0)
		attrs.PutStr(semconv.ClockTimeline, p.Timeline)
		attrs.PutInt(semconv.ClockRawStart, s.Begin)
	}
	if n.has&hasLaunch != 0 {
		m.launch(it, attrs)
	}
}

// compose writes a correction on top of that of the span's source, and what is
// needed to take it off again.
func (n *note) compose(attrs pcommon.Map, p *causality.Place, to int64) {
	total := n.viaOffset + seconds(p.Shift)
	if n.has&hasRawStart != 0 {
		total = seconds(to - n.rawStart)
	}
	attrs.PutDouble(semconv.ClockOffset, total)
	n.interval(attrs, p, n.viaBound)
	attrs.PutStr(semconv.ClockTimeline, p.Timeline)
	attrs.PutStr(semconv.ClockViaTimeline, n.viaTimeline)
	attrs.PutInt(semconv.ClockViaStart, n.viaStart)
	if n.has&hasViaOffset != 0 {
		attrs.PutDouble(semconv.ClockViaOffset, n.viaOffset)
	}
	if n.has&hasViaBound != 0 {
		attrs.PutDouble(semconv.ClockViaBound, n.viaBound)
	}
}

// interval writes how well a place is known: a bound where there is one. The bound
// of the correction before is added; where it had none, there is none now.
func (n *note) interval(attrs pcommon.Map, p *causality.Place, before float64) {
	via := n.has&hasViaStart != 0
	if p.Bounded && (!via || n.has&hasViaBound != 0) {
		attrs.PutDouble(semconv.ClockBound, outwards(seconds(p.Bound)+before))
	} else if n.has&hasBound != 0 {
		attrs.Remove(semconv.ClockBound)
	}
	if sigma := p.Sigma * 1e-9; sigma > 0 && !(via && sigma < n.sigma) {
		attrs.PutDouble(semconv.ClockSigma, sigma)
	} else if n.has&hasSigma != 0 && !via {
		attrs.Remove(semconv.ClockSigma)
	}
	if p.Stepped {
		attrs.PutBool(semconv.ClockStep, true)
	} else if n.has&hasStep != 0 {
		attrs.Remove(semconv.ClockStep)
	}
}

// launch moves the launch of an operation by the host's clock, which is another
// than that of the GPU.
func (m *Mapper) launch(it *item, attrs pcommon.Map) {
	src := &m.sources[it.source]
	shift, ok := m.engine.PlaceLaunch(src.clock, it.note.launch, src.epoch)
	switch {
	case ok && it.note.launch+shift > 0:
		attrs.PutInt(semconv.LaunchTime, it.note.launch+shift)
		attrs.PutInt(semconv.ClockRawLaunch, it.note.launch)
	case it.note.has&hasRawLaunch != 0:
		attrs.PutInt(semconv.LaunchTime, it.note.launch)
		attrs.Remove(semconv.ClockRawLaunch)
	}
}

// restore takes a correction of ours off a span.
func (n *note) restore(s ptrace.Span, begin int64) {
	attrs := s.Attributes()
	if !n.moved {
		if n.has&hasViaStart == 0 {
			n.clean(attrs)
		}
		return
	}
	move(s, begin)
	if n.has&hasRawLaunch != 0 {
		attrs.PutInt(semconv.LaunchTime, n.launch)
		attrs.Remove(semconv.ClockRawLaunch)
	}
	if n.has&hasViaStart == 0 {
		n.clean(attrs)
		attrs.Remove(semconv.ClockRawStart)
		return
	}
	attrs.PutStr(semconv.ClockTimeline, n.viaTimeline)
	put := func(name, via string, known bool, v float64) {
		if known {
			attrs.PutDouble(name, v)
		} else {
			attrs.Remove(name)
		}
		attrs.Remove(via)
	}
	put(semconv.ClockOffset, semconv.ClockViaOffset, n.has&hasViaOffset != 0, n.viaOffset)
	put(semconv.ClockBound, semconv.ClockViaBound, n.has&hasViaBound != 0, n.viaBound)
	attrs.Remove(semconv.ClockViaTimeline)
	attrs.Remove(semconv.ClockViaStart)
}

// clean removes what an annotation wrote.
func (n *note) clean(attrs pcommon.Map) {
	if n.timeline != "" {
		attrs.Remove(semconv.ClockTimeline)
		attrs.Remove(semconv.ClockOffset)
		attrs.Remove(semconv.ClockBound)
		attrs.Remove(semconv.ClockSigma)
		attrs.Remove(semconv.ClockStep)
	}
}

// state says why a span does not stand where its clock's model would put it.
func (n *note) state(attrs pcommon.Map, s causality.State) {
	mark(attrs, semconv.ClockUntrusted, s == causality.Untrusted, n.has&hasUntrusted != 0)
	mark(attrs, semconv.ClockWithheld, s == causality.Withheld, n.has&hasWithheld != 0)
}

func mark(attrs pcommon.Map, name string, is, was bool) {
	switch {
	case is:
		attrs.PutBool(name, true)
	case was:
		attrs.Remove(name)
	}
}

// move shifts a span and its events so that it starts at a time. The difference
// is taken modulo 2^64, as stamps are, so that durations stay to the bit. An event
// without a time has none afterwards.
func move(s ptrace.Span, to int64) {
	by := pcommon.Timestamp(to) - s.StartTimestamp()
	if by == 0 {
		return
	}
	s.SetStartTimestamp(s.StartTimestamp() + by)
	s.SetEndTimestamp(s.EndTimestamp() + by)
	events := s.Events()
	for i := range events.Len() {
		if e := events.At(i); e.Timestamp() != 0 {
			e.SetTimestamp(e.Timestamp() + by)
		}
	}
}

func seconds(ns int64) float64 { return float64(ns) * 1e-9 }

// outwards rounds a bound up, so that the seconds are never less than the ns.
func outwards(s float64) float64 { return math.Nextafter(s, math.Inf(1)) }
