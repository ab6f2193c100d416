// SPDX-License-Identifier: Apache-2.0

package causality

import "slices"

// Event is one end of a span, which bears the number that Add gave it.
type Event struct {
	Span int
	End  End
}

func (e Event) index() int32 { return int32(2*e.Span + int(e.End)) }

// Order are vector times inside a trace: of each event, how much of each clock's
// past it can know of. The events of one clock are ordered by its stamps; events
// of two clocks by the relations alone. The zero value is ready.
type Order struct {
	events []orderEvent // both ends of each span
	edges  []orderEdge
	clocks int
	solved bool
	vector []int32 // of event i: vector[i*clocks:]

	// By event: where its edges begin, those that lead to it and from it.
	into, from   []int32
	intoOf, toOf []int32
	waiting      []int32
	sorted       []int32
}

type orderEvent struct {
	clock    int32
	position int32 // on its clock, from 1
	before   int32 // the clock's previous event, -1 none
	// cyclic: it is before and behind itself, and nothing is said of it.
	cyclic  bool
	reading int64
}

type orderEdge struct{ from, to int32 }

// maxVector bounds the vector times of a trace: events times clocks.
const maxVector = 1 << 20

// Reset forgets everything.
func (o *Order) Reset() {
	o.events, o.edges, o.clocks, o.solved = o.events[:0], o.edges[:0], 0, false
}

// Add files both ends of a span by the readings of its clock, which is numbered
// from 0, and returns the span's number.
func (o *Order) Add(clock int, begin, until int64) (span int) {
	o.events = append(o.events,
		orderEvent{clock: int32(clock), reading: begin}, orderEvent{clock: int32(clock), reading: max(begin, until)})
	o.clocks = max(o.clocks, clock+1)
	return len(o.events)/2 - 1
}

// Relate says that one event is before another. Both must have been added.
func (o *Order) Relate(first, second Event) {
	o.edges = append(o.edges, orderEdge{first.index(), second.index()})
}

// Solve computes the vector times; false where there would be too many.
func (o *Order) Solve() bool {
	if len(o.events)*o.clocks > maxVector {
		return false
	}
	o.solved = true
	o.chain()
	o.group()
	o.vector = zeroed(o.vector, len(o.events)*o.clocks)
	ready := o.sorted[:0]
	for i := range o.events {
		if o.waiting[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	for n := 0; n < len(ready); n++ {
		i := ready[n]
		o.reach(i)
		for _, next := range o.toOf[o.from[i]:o.from[i+1]] {
			if o.waiting[next]--; o.waiting[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	for i := range o.events {
		o.events[i].cyclic = o.waiting[i] > 0
	}
	o.sorted = ready
	return true
}

// chain orders the events of each clock, and adds that order to the edges.
func (o *Order) chain() {
	o.sorted = o.sorted[:0]
	for i := range o.events {
		o.sorted = append(o.sorted, int32(i))
	}
	slices.SortFunc(o.sorted, func(a, b int32) int {
		x, y := &o.events[a], &o.events[b]
		switch {
		case x.clock != y.clock:
			return int(x.clock - y.clock)
		case x.reading < y.reading:
			return -1
		case x.reading > y.reading:
			return 1
		case a&1 != b&1: // starts first
			return int(a&1) - int(b&1)
		}
		return int(a - b)
	})
	for n, i := range o.sorted {
		e := &o.events[i]
		e.before, e.position = -1, 1
		if n > 0 && o.events[o.sorted[n-1]].clock == e.clock {
			e.before = o.sorted[n-1]
			e.position = o.events[e.before].position + 1
			o.edges = append(o.edges, orderEdge{e.before, i})
		}
	}
}

// group files the edges by either end.
func (o *Order) group() {
	n := len(o.events)
	o.into, o.from = zeroed(o.into, n+1), zeroed(o.from, n+1)
	o.intoOf, o.toOf = zeroed(o.intoOf, len(o.edges)), zeroed(o.toOf, len(o.edges))
	o.waiting = zeroed(o.waiting, n)
	for _, e := range o.edges {
		o.into[e.to]++
		o.from[e.from]++
		o.waiting[e.to]++
	}
	for i := range n { // to where each group ends
		o.into[i+1] += o.into[i]
		o.from[i+1] += o.from[i]
	}
	for _, e := range o.edges { // and back to where it begins
		o.into[e.to]--
		o.from[e.from]--
		o.intoOf[o.into[e.to]] = e.from
		o.toOf[o.from[e.from]] = e.to
	}
}

func zeroed(s []int32, n int) []int32 {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

func (o *Order) of(i int32) []int32 { return o.vector[int(i)*o.clocks : (int(i)+1)*o.clocks] }

func (o *Order) before(i int32) []int32 { return o.intoOf[o.into[i]:o.into[i+1]] }

// reach computes an event's vector time from those before it.
func (o *Order) reach(i int32) {
	v := o.of(i)
	for _, from := range o.before(i) {
		for c, n := range o.of(from) {
			v[c] = max(v[c], n)
		}
	}
	v[o.events[i].clock] = o.events[i].position
}

// Before reports whether messages other than a direct one order two events: a
// chain leads from the first to the second that is not their own relation alone.
func (o *Order) Before(first, second Event) bool {
	a, b := first.index(), second.index()
	if !o.solved || int(max(a, b)) >= len(o.events) || o.events[a].cyclic || o.events[b].cyclic {
		return false
	}
	mine := &o.events[a]
	for _, from := range o.before(b) {
		// What its own clock has before it is known without a message.
		if (from != a || from == o.events[b].before) && o.of(from)[mine.clock] >= mine.position {
			return true
		}
	}
	return false
}
