package causality

import (
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
	verdicts []int32
}

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

func (o *orders) ask(trace model.TraceID, verdict int32) {
	t := &o.traces[o.byTrace[trace]]
	t.verdicts = append(t.verdicts, verdict)
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
