// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// TestOrder: span 0 on clock 0 sends to span 1 on clock 1, which sends to span 2
// on clock 2, which is also a child of span 0.
func TestOrder(t *testing.T) {
	o := &Order{}
	for span := range 4 {
		o.Add(span, 100, 200)
	}
	s := func(n int) Event { return Event{n, Start} }
	o.Relate(s(0), s(1))
	o.Relate(s(1), s(2))
	o.Relate(s(0), s(2))
	require.True(t, o.Solve())
	assert.True(t, o.Before(s(0), s(2)), "by way of 1")
	assert.False(t, o.Before(s(0), s(1)), "a relation does not prove itself")
	assert.True(t, o.Before(s(0), Event{1, Finish}), "by 1's own clock")
	assert.False(t, o.Before(s(2), s(0)))
	assert.False(t, o.Before(s(0), s(3)), "concurrent")
	assert.False(t, o.Before(Event{9, Start}, s(0)), "unknown")
}

// TestOrderOfOneClock: what happened on one clock is ordered by it.
func TestOrderOfOneClock(t *testing.T) {
	o := &Order{}
	o.Add(0, 100, 150)
	o.Add(1, 0, 10)
	o.Add(0, 200, 250)
	o.Relate(Event{1, Start}, Event{0, Start})
	require.True(t, o.Solve())
	assert.True(t, o.Before(Event{1, Start}, Event{2, Start}))
	assert.False(t, o.Before(Event{1, Finish}, Event{2, Start}))
}

// TestOrderOfContradictions says nothing of events that are before themselves.
func TestOrderOfContradictions(t *testing.T) {
	o := &Order{}
	for span := range 3 {
		o.Add(span, 100, 200)
	}
	o.Relate(Event{0, Start}, Event{1, Start})
	o.Relate(Event{1, Start}, Event{0, Start})
	o.Relate(Event{2, Finish}, Event{2, Start})
	require.True(t, o.Solve())
	assert.False(t, o.Before(Event{0, Start}, Event{1, Finish}))
	assert.False(t, o.Before(Event{2, Start}, Event{2, Finish}))
}

func TestOrderIsBounded(t *testing.T) {
	o := &Order{}
	for span := range 1024 {
		o.Add(span, 0, 1)
	}
	assert.False(t, o.Solve(), "2048 events of 1024 clocks")
}

// TestOrderAgreesWithASearch: vector times say what following every chain does.
func TestOrderAgreesWithASearch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		const spans = 12
		o := &Order{}
		for range spans {
			at := r.Int64N(1000)
			o.Add(r.IntN(4), at, at+r.Int64N(100))
		}
		for range 10 {
			o.Relate(Event{r.IntN(spans), End(r.IntN(2))}, Event{r.IntN(spans), End(r.IntN(2))})
		}
		require.True(t, o.Solve())
		for a := range int32(2 * spans) {
			for b := range int32(2 * spans) {
				if a == b || o.events[a].cyclic || o.events[b].cyclic {
					continue
				}
				assert.Equal(t, o.leads(a, b, a), o.Before(Event{int(a / 2), End(a % 2)}, Event{int(b / 2), End(b % 2)}))
			}
		}
	}
}

// leads follows the chains back from b to a, save the direct relation of both.
func (o *Order) leads(a, b, direct int32) bool {
	for _, e := range o.edges {
		if e.to != b || e.from == direct && e.from != o.events[b].before {
			continue
		}
		if e.from == a || o.leads(a, e.from, -1) {
			return true
		}
	}
	return false
}

// TestUndecidedRelationsAreOrdered: a sends to b and b to c; a's and c's clocks
// cannot tell who was first, and the messages can. Nothing else orders a and b.
func TestUndecidedRelationsAreOrdered(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"a": {bound: 1e9}, "b": {bound: 1e9}, "c": {bound: 1e9}}}
	e := New(testConfig(), f)
	span := func(n, parent uint64, clock string, begin int64, links ...uint64) Span {
		s := Span{Ref: model.SpanRef{Trace: traceID(1), Span: spanID(n)}, Clock: e.Clock(clock), Begin: base + begin, Until: base + begin + 5e6, Is: Producer}
		if parent > 0 {
			s.Parent = spanID(parent)
		}
		for _, l := range links {
			s.Links = append(s.Links, model.SpanRef{Trace: traceID(1), Span: spanID(l)})
			s.Is = Consumer | Process
		}
		return s
	}
	b := &Batch{Spans: []Span{span(1, 0, "a", 0), span(2, 1, "b", -1e6), span(3, 2, "c", -3e6, 1)}}
	e.Run(b)
	got := map[string]bool{}
	for _, v := range b.Verdicts {
		require.Equal(t, Undecided, v.Class)
		require.True(t, v.OrderKnown)
		got[v.Row.Name+" "+string(rune('0'+v.FirstRef.Span[7]))+string(rune('0'+v.SecondRef.Span[7]))] = v.Ordered
	}
	assert.Equal(t, map[string]bool{
		"child_starts_after_parent 12": false, "child_starts_after_parent 23": false, "process_starts_after_send_begins 13": true,
	}, got)
}

// TestNumbers: many are found as few are.
func TestNumbers(t *testing.T) {
	var n numbers[int]
	for range 2 {
		for i := range 3 * fewNumbers {
			_, ok := n.get(i)
			require.False(t, ok)
			n.put(i, 2*i)
			for j := range i {
				got, ok := n.get(j)
				require.True(t, ok)
				require.Equal(t, 2*j, got)
			}
		}
		require.NotNil(t, n.at)
		n.reset()
	}
}

// TestChained: where it is said that no chain can lead from one end to the other, the
// vector times know of none.
func TestChained(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	clocks := []*Clock{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	without, with, far := 0, 0, 0
	for range 2000 {
		spans := make([]Span, 2+rnd.IntN(8))
		for i := range spans {
			begin := rnd.Int64N(10)
			spans[i] = Span{Ref: model.SpanRef{Span: spanID(uint64(i + 1))}, Clock: clocks[rnd.IntN(3)], Begin: begin, Until: begin + rnd.Int64N(6) - 1}
		}
		pairs := make([]pairing, 1+rnd.IntN(10))
		all := make([]int32, len(pairs))
		for i := range pairs {
			a, b := rnd.IntN(len(spans)), rnd.IntN(len(spans))
			pairs[i] = pairing{row: Table[rnd.IntN(len(Table))], first: &spans[a], second: &spans[b], a: int32(a), b: int32(b)}
			all[i] = int32(i)
		}
		o := &orders{}
		o.begin(len(spans), 0)
		require.True(t, o.solve(pairs, all))
		o.chains.gather(pairs, all)
		for i := range pairs {
			p := &pairs[i]
			ordered := o.Before(Event{o.numberOf(p.a, p.first.Ref), p.row.From}, Event{o.numberOf(p.b, p.second.Ref), p.row.To})
			possible := o.chains.possible(p, int32(i))
			require.Equal(t, chained(pairs, i), possible)
			leads := o.chains.leads(pairs, all, int32(i))
			if leads {
				require.True(t, possible)
			} else {
				require.False(t, ordered)
			}
			switch {
			case !possible:
				without++
			case !leads:
				far++
			case ordered:
				with++
			}
		}
	}
	assert.Positive(t, without)
	assert.Positive(t, far)
	assert.Positive(t, with)
}

// chained looks through all relations for what [chains.possible] keeps.
func chained(pairs []pairing, one int) bool {
	p := &pairs[one]
	begins, ends := p.first.reading(p.row.From), p.second.reading(p.row.To)
	leaves, comes := p.first.Clock == p.second.Clock, p.first.Clock == p.second.Clock
	for i := range pairs {
		q := &pairs[i]
		if i == one || q.row.Usual {
			continue
		}
		leaves = leaves || q.first.Clock == p.first.Clock && q.first.reading(q.row.From) >= begins
		comes = comes || q.second.Clock == p.second.Clock && q.second.reading(q.row.To) <= ends
	}
	return leaves && comes
}

// TestChainsAreLookedForOnce: a trace of undecided relations is gone through once, however
// many there are.
func TestChainsAreLookedForOnce(t *testing.T) {
	const n = 2000
	for name, clocks := range map[string]int{"two clocks": 1, "each its own": n} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig()
			cfg.MaxSpans, cfg.MaxClocks = 4*n, 4*n
			f := &fakeClocks{of: map[string]fakeClock{}}
			e := New(cfg, f)
			var spans []Span
			for i := range n {
				a, b := "a"+strconv.Itoa(i%clocks), "b"+strconv.Itoa(i%clocks)
				f.of[a], f.of[b] = fakeClock{bound: 1e6}, fakeClock{bound: 1e6}
				k, at := uint64(2*i+1), int64(i)*10_000+101
				spans = append(spans, span(e, 1, k, 0, a, at), span(e, 1, k+1, k, b, at-1003))
			}
			b := run(e, spans...)
			require.Len(t, b.Verdicts, n)
			assert.Equal(t, n, e.orders.chains.looked)
		})
	}
}
