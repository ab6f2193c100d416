// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// match finds the relations of a batch, among its spans and to those before. What is
// needed of the memory is loaded in rounds of its own: loads that do not wait for one
// another take a tenth of what they take one after the other.
func (e *Engine) match(b *Batch) {
	e.numbers = e.numbers[:0]
	e.memory.begin(len(b.Spans))
	e.ahead(b)
	for i := range b.Spans {
		s, number := &b.Spans[i], uint64(0)
		switch {
		case s.remembered():
			number = e.memory.add(e.names[i].own, s, func(r *remembered, via Via) { e.apply(via, s, int32(i), &r.span, -1, &r.was) })
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

// names are the hashes of a span's identity and of its parent's, which span of the
// batch that is, -1 where none is, and the story of both, where it is known.
type names struct {
	own, parent uint64
	there       int32
	story       *story
}

// ahead hashes what the batch's spans are looked for by, and loads what is found there.
func (e *Engine) ahead(b *Batch) {
	e.names = slices.Grow(e.names[:0], len(b.Spans))[:len(b.Spans)]
	for i := range b.Spans {
		if s := &b.Spans[i]; s.remembered() {
			n := &e.names[i]
			*n = names{own: hashOf(s.Ref), there: -1}
			e.memory.batch.put(n.own, i, b.Spans)
		} else {
			e.names[i] = names{there: -1}
		}
	}
	for i := range b.Spans {
		s := &b.Spans[i]
		if s.Parent == (model.SpanID{}) || !s.remembered() {
			continue
		}
		n := &e.names[i]
		n.parent = hashOf(s.parent())
		n.there = e.memory.batch.find(n.parent, s.parent(), b.Spans)
	}
	e.memory.ahead(e.names)
}

// parent is the identity of a span's parent.
func (s *Span) parent() model.SpanRef { return model.SpanRef{Trace: s.Ref.Trace, Span: s.Parent} }

// remembered reports whether a span is kept for others that name it, or that it names.
func (s *Span) remembered() bool { return s.Clock != nil && s.Meet == nil && s.Is&Operation == 0 }

// kin is the story of a span's trace, where a parent or child in the batch has told it.
func (e *Engine) kin(i int) *story {
	n := &e.names[i]
	if n.story == nil && n.there >= 0 {
		return e.names[n.there].story
	}
	return n.story
}

// pass tells a span and its parent the story of their trace.
func (e *Engine) pass(i int, s *story) {
	n := &e.names[i]
	n.story = s
	if n.there >= 0 {
		e.names[n.there].story = s
	}
}

// related finds what a span has to do with its parent, and with what it is linked to.
func (e *Engine) related(b *Batch, s *Span, at int32, number uint64) {
	if s.Parent != (model.SpanID{}) {
		n := &e.names[at]
		e.seek(b, s, at, number, s.parent(), n.parent, n.there, ViaParent)
	}
	for _, l := range s.Links {
		hash := hashOf(l)
		e.seek(b, s, at, number, l, hash, e.memory.batch.find(hash, l, b.Spans), ViaLink)
	}
}

// seek relates a span to another by its name, now or when it comes; there is its number
// in the batch.
func (e *Engine) seek(b *Batch, s *Span, at int32, number uint64, ref model.SpanRef, hash uint64, there int32, via Via) {
	if there >= 0 {
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
	e.meetings.pairs(m, visit)
	if m.few() {
		return
	}
	if first, second := m.worst(); first != nil && second != nil && first.span.Ref != second.span.Ref {
		visit(first, second)
	}
}
