// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// span is a span of 1 ms on a clock, which starts after base by what is given.
func span(e *Engine, trace, n, parent uint64, clock string, begin int64) Span {
	s := Span{
		Ref: model.SpanRef{Trace: traceID(trace), Span: spanID(n)}, Clock: e.Clock(clock), Begin: base + begin, Until: base + begin + 1e6, Job: e.Job("shop"),
	}
	if parent > 0 {
		s.Parent = spanID(parent)
	}
	return s
}

func run(e *Engine, spans ...Span) *Batch {
	b := &Batch{Spans: spans}
	e.Run(b)
	return b
}

// TestHeldInLaterBatches: spans of one clock compare exactly, so that a clock that was
// held in a trace stays held in it, and not in others.
func TestHeldInLaterBatches(t *testing.T) {
	e := New(testConfig(), &fakeClocks{of: map[string]fakeClock{"a": {}, "b": {offset: -2e6, bound: 1000}}})
	first := run(e, span(e, 1, 1, 0, "a", 0), span(e, 1, 2, 1, "b", 1e6))
	require.Equal(t, []State{Withheld, Withheld}, states(first))
	later := run(e, span(e, 1, 3, 2, "b", 50e6), span(e, 2, 3, 2, "b", 50e6), span(e, 1, 4, 1, "a", 60e6))
	assert.Equal(t, []State{Withheld, Placed, Withheld}, states(later))
	assert.EqualValues(t, 4, e.Stats().Withheld)
}

// TestModelsThatChange: between two batches the clock's model becomes better, by more
// than its spans are apart. They do not change places.
func TestModelsThatChange(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"a": {offset: 3e6, bound: 5e6}}}
	e := New(testConfig(), f)
	parent := run(e, span(e, 1, 1, 0, "a", 0))
	f.of["a"] = fakeClock{bound: 1000}
	child := run(e, span(e, 1, 2, 1, "a", 1e6))
	assert.Equal(t, int64(3e6), parent.Places[0].Shift)
	assert.Equal(t, int64(3e6), child.Places[0].Shift)
	assert.Equal(t, Withheld, child.Places[0].State)
	assert.Equal(t, int64(3e6+1000), child.Places[0].Bound, "to where its model is now")
	assert.Zero(t, e.Job("shop").Counts[Introduced])
}

// TestCollectivesAcrossBatches: of members, too, the one that comes later gives way.
func TestCollectivesAcrossBatches(t *testing.T) {
	e := New(testConfig(), &fakeClocks{of: map[string]fakeClock{"a": {offset: 10e6, bound: 1000}, "b": {bound: 1000}}})
	at := func(rank int64, clock string) Span {
		r, op := member(model.KindCollective, model.AllReduce, rank, 0)
		s := span(e, 1, uint64(rank+1), 0, clock, rank*1000)
		s.Is, s.Meet = Operation, MeetOf(r, op)
		return s
	}
	run(e, at(0, "a"))
	second := run(e, at(1, "b"))
	assert.Equal(t, int64(10e6), second.Places[0].Shift)
	assert.Empty(t, second.Verdicts)
}

// TestTracesAreHeldApart: one in which nothing is right, one that can be held, one that
// need not be, in the same batch.
func TestTracesAreHeldApart(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"a": {offset: 10e6}, "b": {offset: 1e6}, "c": {offset: -10e6}, "d": {offset: 6e6}}}
	e := New(testConfig(), f)
	run(e, span(e, 1, 1, 0, "a", 0), span(e, 1, 3, 2, "c", 10e6), span(e, 2, 1, 0, "a", 0), span(e, 3, 1, 0, "a", 0))
	b := run(e, span(e, 1, 2, 1, "d", 5e6), span(e, 2, 2, 1, "b", 5e6), span(e, 3, 2, 1, "b", 15e6))
	assert.Equal(t, []State{Placed, Withheld, Placed}, states(b), "what cannot be right stands by its model")
	assert.Equal(t, int64(10e6), b.Places[1].Shift)
	assert.Zero(t, e.Job("shop").Counts[Introduced])
	require.NotEmpty(t, b.Verdicts)
	for _, v := range b.Verdicts {
		assert.Equal(t, traceID(1), v.SecondRef.Trace)
		assert.Equal(t, Undecided, v.Class)
	}
	assert.EqualValues(t, len(b.Verdicts), e.Stats().Widened)
	assert.GreaterOrEqual(t, b.Places[0].Bound, b.Verdicts[0].Magnitude)
}

// TestWithoutABoundNothingIsWidened: of what stands on no timeline nothing is claimed
// that could be wider. It comes first, then, and relations to what has a bound give way.
func TestWithoutABoundNothingIsWidened(t *testing.T) {
	clocks := map[string]fakeClock{"a": {offset: 10e6, bound: 1000}, "b": {offset: 1e6, bound: 1000}}
	e := New(testConfig(), &fakeClocks{of: clocks})
	unknown := e.Clock("unknown")
	unknown.first = -grows // for so long that nothing will be known of it
	run(e, span(e, 1, 1, 0, "a", 0), span(e, 1, 3, 2, "unknown", 6e6))
	b := run(e, span(e, 1, 2, 1, "b", 5.5e6))
	assert.LessOrEqual(t, b.Places[0].Shift, int64(0.5e6), "before its child, which stands as it came")
	assert.GreaterOrEqual(t, 5.5e6+float64(b.Places[0].Shift+b.Places[0].Bound), float64(10e6-1000), "and its parent is within its bound")
	assert.Zero(t, e.Job("shop").Counts[Introduced])
}

// TestATraceEndsAsItBegan, where a clock of it is not known yet, or is known too late.
func TestATraceEndsAsItBegan(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"a": {offset: 10e6}, "b": {offset: 1e6}, "c": {offset: -10e6}}}
	e := New(testConfig(), f)
	for i := range 10 { // a new one is not many
		e.Clock(strconv.Itoa(i))
	}
	shifts := func(b *Batch) (out []int64) {
		for _, p := range b.Places {
			out = append(out, p.Shift)
		}
		return out
	}
	b := run(e, span(e, 4, 1, 0, "a", 0), span(e, 4, 2, 1, "new", 1e6), span(e, 5, 1, 0, "a", 0))
	assert.Equal(t, []int64{0, 0, 10e6}, shifts(b), "what came with a new one stays as it came, and others do not")
	f.of["new"] = fakeClock{offset: -20e6}
	b = run(e, span(e, 4, 3, 2, "c", 2e6), span(e, 4, 4, 2, "new", 2e6), span(e, 5, 2, 1, "new", 40e6))
	assert.Equal(t, []int64{0, 0, -20e6}, shifts(b))
	f.of["b"] = fakeClock{offset: 3e6, timeline: "timeline:y"}
	b = run(e, span(e, 5, 3, 2, "b", 41e6), span(e, 5, 4, 2, "a", 41e6), span(e, 6, 1, 0, "b", 0))
	assert.Equal(t, []int64{10e6, 10e6, 3e6}, shifts(b), "what stands on another timeline now is moved like the first")
	assert.Zero(t, e.Job("shop").Counts[Introduced])
}

// TestHoldingSpreadsByLinks: what is held in one trace may turn a message to another,
// which is then held, too.
func TestHoldingSpreadsByLinks(t *testing.T) {
	e := New(testConfig(), &fakeClocks{of: map[string]fakeClock{"a": {}, "b": {offset: -2e6}, "c": {offset: -2e6}}})
	send := span(e, 1, 2, 1, "b", 1e6)
	send.Is = Producer
	take := span(e, 2, 3, 0, "c", 2e6)
	take.Is, take.Links = Consumer|Process, []model.SpanRef{send.Ref}
	b := run(e, span(e, 1, 1, 0, "a", 0), send, take)
	assert.Equal(t, []State{Withheld, Withheld, Withheld}, states(b))
	assert.Empty(t, b.Verdicts)
}
