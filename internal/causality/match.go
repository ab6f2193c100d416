package causality

import "github.com/lockstep-otel/lockstep/internal/model"

// match finds the relations of a batch, among its spans and to those before.
func (e *Engine) match(b *Batch) {
	e.numbers = e.numbers[:0]
	for i := range b.Spans {
		s, number := &b.Spans[i], uint64(0)
		switch {
		case s.Clock == nil:
		case s.Meet != nil:
			if m := e.meetings.add(s, i); m != nil {
				e.touched = append(e.touched, m)
			}
		case s.Is&Operation == 0:
			number = e.memory.add(s, e.batch, i)
		}
		e.numbers = append(e.numbers, number)
	}
	for i, number := range e.numbers {
		if number > 0 {
			e.related(b, &b.Spans[i], int32(i), number)
		}
	}
	for _, m := range e.touched {
		e.met(b, m)
	}
}

// related finds what a span has to do with its parent, with what it is linked
// to, and with those who waited for it.
func (e *Engine) related(b *Batch, s *Span, at int32, number uint64) {
	if s.Parent != (model.SpanID{}) {
		e.seek(b, s, at, number, model.SpanRef{Trace: s.Ref.Trace, Span: s.Parent}, ViaParent)
	}
	for _, l := range s.Links {
		e.seek(b, s, at, number, l, ViaLink)
	}
	e.memory.came(s.Ref, func(r *record, via Via) {
		if r.batch != e.batch {
			e.apply(via, s, at, &r.span, -1, &r.was)
		}
	})
}

// seek relates a span to another by its name, now or when it comes.
func (e *Engine) seek(b *Batch, s *Span, at int32, number uint64, ref model.SpanRef, via Via) {
	other := e.memory.find(ref)
	switch {
	case other == nil:
		e.memory.await(number, ref, via)
	case other.batch == e.batch:
		e.apply(via, &b.Spans[other.at], other.at, s, at, nil)
	default:
		e.apply(via, &other.span, -1, s, at, &other.was)
	}
}

// apply tries the rows on a span and one that names it: its child, or who is
// linked to it.
func (e *Engine) apply(via Via, named *Span, namedAt int32, by *Span, byAt int32, was *emitted) {
	if via == ViaLink {
		for _, row := range links {
			if row.First.met(named.Is) && row.Second.met(by.Is) {
				e.pair(row, named, namedAt, by, byAt, was)
			}
		}
		return
	}
	if starts.First.met(named.Is) && starts.Second.met(by.Is) {
		e.pair(starts, named, namedAt, by, byAt, was)
	}
	if by.Is&Server != 0 {
		for _, row := range callEnds {
			if row.First.met(by.Is) && row.Second.met(named.Is) {
				e.pair(row, by, byAt, named, namedAt, was)
			}
		}
	}
	if receivesOfParent.Second.met(by.Is) && receivesOfParent.First.met(named.Is) {
		e.pair(receivesOfParent, named, namedAt, by, byAt, was)
	}
}

func (e *Engine) pair(row *Row, first *Span, a int32, second *Span, b int32, was *emitted) {
	e.pairs = append(e.pairs, pairing{row: row, first: first, second: second, a: a, b: b, was: was})
}

// met relates the members of a meeting that the batch has added to.
func (e *Engine) met(b *Batch, m *meeting) {
	at := func(s *side, was **emitted) (*Span, int32) {
		if s.batch == e.batch {
			return &b.Spans[s.index], s.index
		}
		*was = &s.was
		return &s.span, -1
	}
	visit := func(first, second *side) {
		var was *emitted
		f, i := at(first, &was)
		s, j := at(second, &was)
		e.pair(m.row, f, i, s, j, was)
	}
	m.pairs(visit)
	if len(m.senders.list) <= allPairs && len(m.receivers.list) <= allPairs {
		return
	}
	if first, second := m.worst((*Span).At); first != nil && second != nil && first.span.Ref != second.span.Ref {
		visit(first, second)
	}
}
