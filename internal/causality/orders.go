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
	byTrace map[model.TraceID]int
	traces  []traceParts

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
	pairs    []int32 // relations
	verdicts []question
}

// question is whether other messages order the ends of an undecided relation.
type question struct{ verdict, pair int32 }

type spanNumber struct{ round, number int32 }

// begin forgets the batch before.
func (o *orders) begin(spans int) {
	if o.byTrace == nil {
		o.byTrace = map[model.TraceID]int{}
	}
	clear(o.byTrace)
	o.traces = o.traces[:0]
	if len(o.inBatch) < spans {
		o.inBatch, o.round = make([]spanNumber, spans), 0
	}
}

// want opens a trace.
func (o *orders) want(trace model.TraceID) {
	if _, ok := o.byTrace[trace]; ok {
		return
	}
	o.byTrace[trace] = len(o.traces)
	if n := len(o.traces); n < cap(o.traces) {
		o.traces = o.traces[:n+1]
		o.traces[n].pairs, o.traces[n].verdicts = o.traces[n].pairs[:0], o.traces[n].verdicts[:0]
		return
	}
	o.traces = append(o.traces, traceParts{})
}

func (o *orders) file(p *pairing, i int32) {
	if t, ok := o.byTrace[p.second.Ref.Trace]; ok {
		o.traces[t].pairs = append(o.traces[t].pairs, i)
	}
}

func (o *orders) ask(trace model.TraceID, q question) {
	t := &o.traces[o.byTrace[trace]]
	t.verdicts = append(t.verdicts, q)
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
