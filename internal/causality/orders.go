// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// orders makes the orders of a batch's traces, one after the other in the same
// memory.
type orders struct {
	Order
	slots  []int32 // traces by hash: their numbers from 1
	traces []traceParts

	round   int32
	inBatch []spanNumber // by a span's number in the batch
	earlier numbers[model.SpanRef]
	clocks  numbers[*Clock]
	chains  chains
}

// numbers are looked through while they are few, and looked up beyond.
type numbers[K comparable] struct {
	keys   []K
	values []int
	at     map[K]int
}

// fewNumbers is how many are looked through.
const fewNumbers = 16

func (n *numbers[K]) reset() { n.keys, n.values, n.at = n.keys[:0], n.values[:0], nil }

func (n *numbers[K]) get(k K) (int, bool) {
	if n.at != nil {
		v, ok := n.at[k]
		return v, ok
	}
	if i := slices.Index(n.keys, k); i >= 0 {
		return n.values[i], true
	}
	return 0, false
}

func (n *numbers[K]) put(k K, v int) {
	n.keys, n.values = append(n.keys, k), append(n.values, v)
	if len(n.keys) <= fewNumbers {
		return
	}
	if n.at == nil {
		n.at = make(map[K]int, 2*len(n.keys))
		for i, k := range n.keys {
			n.at[k] = n.values[i]
		}
	}
	n.at[k] = v
}

type traceParts struct {
	id       model.TraceID
	pairs    []int32 // relations
	verdicts []question
}

// question is whether other messages order the ends of an undecided relation.
type question struct{ verdict, pair int32 }

type spanNumber struct{ round, number int32 }

// begin forgets the batch before; so many questions are about to come.
func (o *orders) begin(spans, questions int) {
	n := 64
	for n < 2*questions {
		n *= 2
	}
	o.slots = zeroed(o.slots, n)
	o.traces = o.traces[:0]
	if len(o.inBatch) < spans {
		o.inBatch, o.round = make([]spanNumber, spans), 0
	}
}

// slot is where the number of a trace is, or would be.
func (o *orders) slot(trace model.TraceID) *int32 {
	mask := uint64(len(o.slots) - 1)
	for i := hashOf(model.SpanRef{Trace: trace}) & mask; ; i = (i + 1) & mask {
		if n := o.slots[i]; n == 0 || o.traces[n-1].id == trace {
			return &o.slots[i]
		}
	}
}

// want opens a trace.
func (o *orders) want(trace model.TraceID) {
	slot := o.slot(trace)
	if *slot != 0 {
		return
	}
	n := len(o.traces)
	if n < cap(o.traces) {
		o.traces = o.traces[:n+1]
		o.traces[n].id, o.traces[n].pairs, o.traces[n].verdicts = trace, o.traces[n].pairs[:0], o.traces[n].verdicts[:0]
	} else {
		o.traces = append(o.traces, traceParts{id: trace})
	}
	*slot = int32(n + 1)
}

func (o *orders) file(p *pairing, i int32) {
	n := *o.slot(p.second.Ref.Trace)
	if n == 0 {
		return
	}
	t := &o.traces[n-1]
	t.pairs = append(t.pairs, i)
	if p.judged.class == Undecided {
		t.verdicts = append(t.verdicts, question{verdict: p.verdict, pair: i})
	}
}

// outermost is the reading that a clock of a trace is left at latest, or come to at
// earliest, by which relation, and the same without that relation.
type outermost struct {
	reading, next int64
	by            int32
}

// note takes a reading, of which the greatest counts.
func (o *outermost) note(reading int64, by int32) {
	switch {
	case reading > o.reading:
		o.reading, o.next, o.by = reading, o.reading, by
	case reading > o.next:
		o.next = reading
	}
}

// without is the greatest reading of others than one relation.
func (o *outermost) without(one int32) int64 {
	if o.by == one {
		return o.next
	}
	return o.reading
}

// extremes are those of the clocks of a trace.
type extremes struct {
	clocks numbers[*Clock]
	of     []outermost
}

func (x *extremes) reset() {
	x.clocks.reset()
	x.of = x.of[:0]
}

func (x *extremes) note(c *Clock, reading int64, by int32) {
	n, ok := x.clocks.get(c)
	if !ok {
		n = len(x.of)
		x.clocks.put(c, n)
		x.of = append(x.of, outermost{reading: math.MinInt64, next: math.MinInt64, by: -1})
	}
	x.of[n].note(reading, by)
}

// reach reports whether another relation than one has a reading that is no less.
func (x *extremes) reach(c *Clock, reading int64, one int32) bool {
	n, ok := x.clocks.get(c)
	return ok && x.of[n].without(one) >= reading
}

// chains tells of the relations of one trace where chains can lead. Readings that are to
// be early are negated, so that the greatest counts.
type chains struct {
	leaves, comes extremes
	looked        int // at relations, ever
	behind        []arrival
}

// arrival is the earliest reading of a clock that a chain has come to.
type arrival struct {
	clock   *Clock
	reading int64
}

// gather looks through the relations of a trace.
func (c *chains) gather(all []pairing, of []int32) {
	c.leaves.reset()
	c.comes.reset()
	c.looked += len(of)
	for _, i := range of {
		if p := &all[i]; !p.row.Usual {
			c.leaves.note(p.first.Clock, p.first.reading(p.row.From), i)
			c.comes.note(p.second.Clock, -p.second.reading(p.row.To), i)
		}
	}
}

// possible reports whether a chain of other relations can lead from the first end of one
// to its second: it leaves the first clock no earlier, and comes to the second one no
// later.
func (c *chains) possible(p *pairing, i int32) bool {
	return p.first.Clock == p.second.Clock ||
		c.leaves.reach(p.first.Clock, p.first.reading(p.row.From), i) && c.comes.reach(p.second.Clock, -p.second.reading(p.row.To), i)
}

// fewRelations is of how many relations of a trace chains are followed for each
// question: of more, vector times cost less.
const fewRelations = 64

// leads reports whether such a chain is there, as if of equal readings of a clock each
// were before the other: it follows all that leave no earlier than what came before.
func (c *chains) leads(all []pairing, of []int32, one int32) bool {
	p := &all[one]
	target, ends := p.second.Clock, p.second.reading(p.row.To)
	if len(of) > fewRelations || p.first.Clock == target {
		return true
	}
	c.behind = append(c.behind[:0], arrival{p.first.Clock, p.first.reading(p.row.From)})
	for again := true; again; {
		again = false
		for _, i := range of {
			q := &all[i]
			if i == one || q.row.Usual || !c.follows(q.first.Clock, q.first.reading(q.row.From)) {
				continue
			}
			at := q.second.reading(q.row.To)
			if q.second.Clock == target && at <= ends {
				return true
			}
			again = c.arrive(q.second.Clock, at) || again
		}
	}
	return false
}

// follows reports whether a reading of a clock is behind what a chain has come to.
func (c *chains) follows(clock *Clock, reading int64) bool {
	for i := range c.behind {
		if c.behind[i].clock == clock {
			return reading >= c.behind[i].reading
		}
	}
	return false
}

// arrive notes that a chain comes to a reading of a clock; false where it is known.
func (c *chains) arrive(clock *Clock, reading int64) bool {
	for i := range c.behind {
		if b := &c.behind[i]; b.clock == clock {
			earlier := reading < b.reading
			b.reading = min(b.reading, reading)
			return earlier
		}
	}
	c.behind = append(c.behind, arrival{clock, reading})
	return true
}

// solve computes the order of one trace from its relations.
func (o *orders) solve(all []pairing, of []int32) bool {
	o.Reset()
	o.round++
	o.earlier.reset()
	o.clocks.reset()
	for _, i := range of {
		p := &all[i]
		a, b := o.number(p.first, p.a), o.number(p.second, p.b)
		if !p.row.Usual {
			o.Relate(Event{a, p.row.From}, Event{b, p.row.To})
		}
	}
	return o.Solve()
}

// number returns the number of a span, which is new where the span is.
func (o *orders) number(s *Span, at int32) int {
	if n := o.numberOf(at, s.Ref); n >= 0 {
		return n
	}
	n := o.Add(o.clock(s.Clock), s.Begin-s.Epoch, s.Until-s.Epoch)
	if at >= 0 {
		o.inBatch[at] = spanNumber{o.round, int32(n)}
	} else {
		o.earlier.put(s.Ref, n)
	}
	return n
}

// numberOf returns the number of a span, -1 where it has none.
func (o *orders) numberOf(at int32, ref model.SpanRef) int {
	if at >= 0 {
		if n := o.inBatch[at]; n.round == o.round {
			return int(n.number)
		}
		return -1
	}
	if n, ok := o.earlier.get(ref); ok {
		return n
	}
	return -1
}

// clock numbers the clocks of a trace.
func (o *orders) clock(c *Clock) int {
	n, ok := o.clocks.get(c)
	if !ok {
		n = len(o.clocks.keys)
		o.clocks.put(c, n)
	}
	return n
}
