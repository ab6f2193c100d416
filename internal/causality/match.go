package causality

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// match finds the relations of a batch, among its spans and to those before.
func (e *Engine) match(b *Batch) {
	e.numbers = e.numbers[:0]
	e.memory.begin(len(b.Spans))
	e.hashes = slices.Grow(e.hashes[:0], len(b.Spans))[:len(b.Spans)]
	for i := range b.Spans {
		if s := &b.Spans[i]; s.remembered() {
			e.hashes[i] = hashOf(s.Ref)
			e.memory.batch.put(e.hashes[i], i, b.Spans)
			e.memory.ahead(e.hashes[i])
		}
	}
	for i := range b.Spans {
		s, number := &b.Spans[i], uint64(0)
		switch {
		case s.remembered():
			number = e.memory.add(e.hashes[i], s, func(r *remembered, via Via) { e.apply(via, s, int32(i), &r.span, -1, &r.was) })
		case s.Clock != nil && s.Meet != nil:
			if m := e.meetings.add(s, i); m != nil {
				e.touched = append(e.touched, m)
			}
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

// remembered reports whether a span is kept for others that name it, or that it names.
func (s *Span) remembered() bool { return s.Clock != nil && s.Meet == nil && s.Is&Operation == 0 }

// related finds what a span has to do with its parent, and with what it is linked to.
func (e *Engine) related(b *Batch, s *Span, at int32, number uint64) {
	if s.Parent != (model.SpanID{}) {
		e.seek(b, s, at, number, model.SpanRef{Trace: s.Ref.Trace, Span: s.Parent}, ViaParent)
	}
	for _, l := range s.Links {
		e.seek(b, s, at, number, l, ViaLink)
	}
}

// seek relates a span to another by its name, now or when it comes.
func (e *Engine) seek(b *Batch, s *Span, at int32, number uint64, ref model.SpanRef, via Via) {
	hash := hashOf(ref)
	if there := e.memory.batch.find(hash, ref, b.Spans); there >= 0 {
		e.apply(via, &b.Spans[there], there, s, at, nil)
	} else if other := e.memory.find(hash, ref); other == 0 {
		e.memory.await(number, hash, ref, via)
	} else if r := e.memory.recall(other); r != nil {
		e.apply(via, &r.span, -1, s, at, &r.was)
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
