// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// introduced counts the relations that the stamps have right, and what was emitted
// has wrong: beyond the bounds that both spans bear, and where one of them bears
// none, at all. It looks at the spans alone, and at nothing that the processor says.
func (c *corrected) introduced() (n int) {
	byID := map[uint64]*trueSpan{}
	for _, s := range c.w.spans {
		byID[s.id] = s
	}
	for _, s := range c.w.spans {
		parent := byID[s.parent]
		if parent != nil && !s.op && c.turned(parent, s, starts, starts) {
			n++
		}
		if parent != nil && waited(parent, s) && c.turned(s, parent, ends, ends) {
			n++
		}
		for _, l := range s.links {
			if c.turned(byID[l], s, starts, ends) {
				n++
			}
		}
	}
	return n
}

func starts(s ptrace.Span) int64 { return int64(s.StartTimestamp()) }
func ends(s ptrace.Span) int64   { return int64(s.EndTimestamp()) }

// waited reports whether the caller waited for the callee.
func waited(caller, callee *trueSpan) bool {
	return caller.kind == ptrace.SpanKindClient && callee.kind == ptrace.SpanKindServer && !callee.async && !caller.failed && !callee.failed
}

func (c *corrected) turned(first, second *trueSpan, from, to func(ptrace.Span) int64) bool {
	raw := to(c.raw[second.id]) - from(c.raw[first.id])
	now := to(c.spans[second.id]) - from(c.spans[first.id])
	if raw < 0 || now >= 0 {
		return false
	}
	_, a, placed := place(c.spans[first.id])
	_, b, too := place(c.spans[second.id])
	if !placed || !too {
		return true
	}
	if first.host == second.host {
		a, b = 0, 0
	}
	return float64(now) < -(a + b)
}

// split gives each resource a batch of its own, as hosts export.
func split(td ptrace.Traces) (out []ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		one := ptrace.NewTraces()
		rs.CopyTo(one.ResourceSpans().AppendEmpty())
		out = append(out, one)
	}
	return out
}

// TestNothingIsIntroducedFromTheStart: traces alone, a batch a second and host, from the
// very first one on. Clocks come to be known one after the other, and timelines are set
// anew meanwhile.
func TestNothingIsIntroducedFromTheStart(t *testing.T) {
	for _, hosts := range []int{2, 3, 6, 8, 16, 32} {
		seeds := tier.N(t, 3, 12)
		if hosts > 8 {
			seeds = tier.N(t, 2, 6)
		}
		for seed := range uint64(seeds) {
			for _, shuffled := range []bool{false, true} {
				w := chatting(seed+1, hosts, 5)
				w.shuffled = shuffled
				c := correct(t, w, ModeRealign, 1e9)
				counts := c.counts()
				assert.Zero(t, c.introduced(), "%d hosts, seed %d, shuffled %v", hosts, seed+1, shuffled)
				assert.Zero(t, counts[causality.Introduced])
				assert.Zero(t, counts[causality.Violation])
			}
		}
	}
}

// TestOneBatchPerHost: a parent, and a child 5 ms after it on the stamps, in either
// order and one batch each. Whatever becomes known in between, what was given out is
// not turned.
func TestOneBatchPerHost(t *testing.T) {
	const a, b = "host:a/?/realtime", "host:b/?/realtime"
	for name, c := range map[string]struct{ first, then known }{
		"a wrong model":         {known{a: 10e6, b: 0}, nil},
		"the other way round":   {known{a: 0, b: -10e6}, nil},
		"known later":           {known{}, known{a: -10e6, b: -10e6}},
		"one is known":          {known{a: 10e6}, nil},
		"the child is known":    {known{b: -10e6}, nil},
		"one is known later":    {known{a: 10e6}, known{a: 10e6, b: 0}},
		"forgotten in between":  {known{a: 10e6, b: 10e6}, known{}},
		"forgotten, other sign": {known{a: -10e6, b: -10e6}, known{}},
	} {
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			t.Run(name, func(t *testing.T) {
				clocks := known{}
				set := func(k known) {
					if k != nil {
						clear(clocks)
					}
					for id, offset := range k {
						clocks[id] = offset
					}
				}
				set(c.first)
				p, sink, _ := start(t, ModeRealign, clocks)
				in := split(pair(5_000_000))
				require.NoError(t, p.ConsumeTraces(t.Context(), in[order[0]]))
				set(c.then)
				require.NoError(t, p.ConsumeTraces(t.Context(), in[order[1]]))
				var at [2]int64
				for i, td := range sink.AllTraces() {
					at[order[i]] = startsOf(td)[0]
				}
				assert.GreaterOrEqual(t, at[1], at[0])
				assert.Zero(t, p.engine.Job("shop").Counts[causality.Introduced])
				require.NoError(t, p.Shutdown(t.Context()))
			})
		}
	}
}

// TestWithheldSpansSaySo, and come out the same when they come again.
func TestWithheldSpansSaySo(t *testing.T) {
	clocks := known{"host:a/?/realtime": 10e6, "host:b/?/realtime": 0}
	p, sink, _ := start(t, ModeRealign, clocks)
	in := split(pair(5_000_000))
	for _, td := range in {
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
	}
	child := spanAt(sink.AllTraces()[1], 0)
	assert.EqualValues(t, base+15e6, child.StartTimestamp(), "moved like its parent")
	at := int64(10e6 + 1000) // the parent's shift from its own model, which is 1 µs wide
	assert.Equal(t, map[string]any{
		semconv.ClockWithheld: true, semconv.ClockOffset: 0.01, semconv.ClockBound: math.Nextafter(float64(at)*1e-9, 1), semconv.ClockTimeline: "timeline:x", semconv.ClockRawStart: base + 5_000_000,
	}, child.Attributes().AsRaw())

	again, twice, _ := start(t, ModeRealign, clocks)
	for _, td := range sink.AllTraces() {
		mine := ptrace.NewTraces()
		td.CopyTo(mine)
		require.NoError(t, again.ConsumeTraces(t.Context(), mine))
	}
	for i, td := range twice.AllTraces() {
		assert.Equal(t, spanAt(sink.AllTraces()[i], 0).StartTimestamp(), spanAt(td, 0).StartTimestamp())
		assert.Equal(t, spanAt(sink.AllTraces()[i], 0).Attributes().AsRaw(), spanAt(td, 0).Attributes().AsRaw())
	}

	clocks["host:a/?/realtime"] = 0
	td := ptrace.NewTraces()
	for _, one := range sink.AllTraces() {
		one.ResourceSpans().At(0).CopyTo(td.ResourceSpans().AppendEmpty())
		td.ResourceSpans().At(td.ResourceSpans().Len() - 1).ScopeSpans().At(0).Spans().At(0).SetTraceID(pcommon.TraceID{2})
	}
	require.NoError(t, again.ConsumeTraces(t.Context(), td))
	assert.Equal(t, []int64{0, 5_000_000}, startsOf(td))
	assert.NotContains(t, td.ResourceSpans().At(1).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw(), semconv.ClockWithheld)
}

// TestWhatCannotBeRight: what was given out leaves no place for the span in the middle.
// Its bound leaves it open which of the three is wrong.
func TestWhatCannotBeRight(t *testing.T) {
	p, sink, _ := start(t, ModeRealign, known{"host:a/?/realtime": 10e6, "host:b/?/realtime": 0, "host:c/?/realtime": -10e6})
	in := split(pair(5_000_000))
	grandchild := ptrace.NewTraces()
	in[1].CopyTo(grandchild)
	grandchild.ResourceSpans().At(0).Resource().Attributes().PutStr(semconv.HostID, "c")
	s := spanAt(grandchild, 0)
	s.SetSpanID(pcommon.SpanID{3})
	s.SetParentSpanID(pcommon.SpanID{2})
	s.SetStartTimestamp(s.StartTimestamp() + 5_000_000)
	for _, td := range []ptrace.Traces{in[0], grandchild, in[1]} {
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
	}
	var at []int64
	turned := 0
	for _, td := range sink.AllTraces() {
		at = append(at, startsOf(td)[0])
	}
	if at[2] < at[0] {
		turned++
	}
	if at[1] < at[2] {
		turned++
	}
	assert.Positive(t, turned)
	assert.Zero(t, p.engine.Job("shop").Counts[causality.Introduced])
	assert.EqualValues(t, turned, p.engine.Stats().Widened)
	middle := spanAt(sink.AllTraces()[2], 0)
	assert.Equal(t, semconv.VerdictUndecided, valueOf(t, middle, semconv.CausalityVerdict).Str())
	_, bound, ok := place(middle)
	require.True(t, ok)
	_, other, ok := place(spanAt(sink.AllTraces()[0], 0))
	require.True(t, ok)
	assert.GreaterOrEqual(t, float64(at[2])+bound, float64(at[0])-other, "it may have been after its parent")
	assert.GreaterOrEqual(t, float64(at[1])+other, float64(at[2])-bound, "and before its child")
}

func valueOf(t *testing.T, s ptrace.Span, name string) pcommon.Value {
	t.Helper()
	v, ok := s.Attributes().Get(name)
	require.True(t, ok, name)
	return v
}
