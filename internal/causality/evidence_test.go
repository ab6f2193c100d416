// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// TestCallsBecomeEdges: clock b is 5 ms ahead, a message takes 1 ms each way. A
// call's start bounds the offset by 6 ms from above, its end by 4 ms from below.
func TestCallsBecomeEdges(t *testing.T) {
	f := &fakeClocks{}
	e := New(testConfig(), f)
	for n := range int64(50) {
		b := call(e, 6e6, -4e6) // 1 ms after and before, by a clock 5 ms ahead
		for i := range b.Spans {
			s := &b.Spans[i]
			s.Ref.Trace = traceID(uint64(n))
			s.Begin, s.Until = s.Begin+n*100e6+n, s.Until+n*100e6+n
		}
		e.Run(b)
	}
	require.NotEmpty(t, f.edges, "the first call makes one")
	for _, edge := range f.edges {
		assert.Equal(t, []string{"a", "b", model.EdgeCall, model.StampApplication}, []string{edge.Src, edge.Dst, edge.Source, edge.Stamps})
		assert.LessOrEqual(t, edge.Lower, int64(5e6))
		assert.GreaterOrEqual(t, edge.Upper, int64(5e6))
		assert.GreaterOrEqual(t, edge.Width(), 2e6, "no less than the round trip")
	}
	s := e.Stats().Evidence
	assert.EqualValues(t, 100, s.Samples)
	assert.Zero(t, s.Refused)
}

// TestOneWayBoundsOneSide: sends alone say nothing of the lower bound.
func TestOneWayBoundsOneSide(t *testing.T) {
	f := &fakeClocks{}
	e := New(testConfig(), f)
	for n := range int64(100) {
		e.Run(&Batch{Spans: []Span{
			{Ref: model.SpanRef{Trace: traceID(uint64(n)), Span: spanID(1)}, Is: Producer, Clock: e.Clock("a"), Begin: base + n*100e6, Until: base + n*100e6 + 1},
			{
				Ref: model.SpanRef{Trace: traceID(uint64(n)), Span: spanID(2)}, Parent: spanID(1), Is: Consumer | Receive, Clock: e.Clock("b"),
				Begin: base + n*100e6 - 5e6, Until: base + n*100e6 + 6e6,
			},
		}})
	}
	for _, edge := range f.edges {
		assert.Equal(t, int64(model.NoLower), edge.Lower)
		assert.Zero(t, edge.Sigma)
	}
}

// TestPairsAreBounded: samples of pairs beyond the limit are counted, and no more.
func TestPairsAreBounded(t *testing.T) {
	cfg := testConfig()
	cfg.MaxPairs = 3
	e := New(cfg, &fakeClocks{})
	for n := range 10 {
		b := call(e, 1e6, 1e6)
		b.Spans[1].Clock = e.Clock(fmt.Sprint("b", n))
		e.Run(b)
	}
	assert.Equal(t, 3, e.evidence.pairs.Len())
	assert.EqualValues(t, 14, e.Stats().Evidence.Overflow)

	cfg.MaxPairs = 0
	off := New(cfg, &fakeClocks{})
	off.Run(call(off, 1e6, 1e6))
	assert.Zero(t, off.Stats().Evidence)
}

// A pair that makes room for another leaves the queue, with the sample that waits for the end of its window.
func TestEvidence_PairMakesRoom_LeavesTheQueue(t *testing.T) {
	cfg := testConfig()
	cfg.MaxPairs = 1
	e := New(cfg, &fakeClocks{})
	e.Run(call(e, 1e6, 1e6)) // known, and nothing waits
	again := call(e, 1e6, 1e6)
	for i := range again.Spans {
		again.Spans[i].Ref.Trace = traceID(2)
	}
	e.Run(again)
	require.Len(t, e.evidence.queue, 1)
	e.batch += staleBatches
	other := call(e, 1e6, 1e6)
	for i := range other.Spans {
		other.Spans[i].Ref.Trace = traceID(3)
	}
	other.Spans[1].Clock = e.Clock("c")
	e.Run(other)
	assert.Equal(t, 1, e.evidence.pairs.Len())
	assert.Zero(t, e.Stats().Evidence.Overflow)
	assert.Empty(t, e.evidence.queue)
}

// TestEdgesArePaidFor: a batch of 1,000 pairs closes no more windows than a second
// of data earns; the others wait.
func TestEdgesArePaidFor(t *testing.T) {
	cfg := testConfig()
	cfg.MaxPairs, cfg.MaxClocks = 2000, 2000
	f := &fakeClocks{}
	e := New(cfg, f)
	b := &Batch{}
	for n := range 1000 {
		one := call(e, 1e6, 1e6)
		for i := range one.Spans {
			one.Spans[i].Ref.Trace = traceID(uint64(n))
		}
		one.Spans[1].Clock = e.Clock(fmt.Sprint("b", n))
		b.Spans = append(b.Spans, one.Spans...)
	}
	e.Run(b)
	assert.LessOrEqual(t, float64(len(f.edges)), closesPerSecond+2000*closesPerSpan)
	assert.Len(t, e.evidence.queue, 1000-len(f.edges))
	assert.NotEmpty(t, f.edges)
}

// TestEachClockIsAskedForItsOwnReading: clock b counts since its boot.
func TestEachClockIsAskedForItsOwnReading(t *testing.T) {
	f := &asked{fakeClocks: fakeClocks{of: map[string]fakeClock{"a": {bound: 10}, "b": {bound: 10}}}, latest: map[string]int64{}}
	e := New(testConfig(), f)
	for n := range int64(100) {
		b := call(e, 1e6, 1e6)
		for i := range b.Spans {
			s := &b.Spans[i]
			s.Ref.Trace = traceID(uint64(n))
			s.Begin, s.Until = s.Begin+n*100e6, s.Until+n*100e6
		}
		b.Spans[1].Epoch = base - 3600e9
		e.Run(b)
	}
	assert.Greater(t, f.latest["a"], base)
	assert.Less(t, f.latest["b"], int64(3700e9))
	assert.Greater(t, f.latest["b"], int64(3600e9))
}

// TestContradictionIsToldAtOnce: where packets know both clocks, a window of their
// relations is long, until one of them contradicts what was told.
func TestContradictionIsToldAtOnce(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"a": {bound: 10}, "b": {bound: 10}}}
	e := New(testConfig(), f)
	calls := int64(0)
	after := func(seconds, ahead int64) (edges int) {
		before := len(f.edges)
		for range 10 * seconds {
			b := call(e, 1e6+ahead, 1e6-ahead)
			for i := range b.Spans {
				s := &b.Spans[i]
				s.Ref.Trace = traceID(uint64(calls))
				s.Begin, s.Until = s.Begin+calls*100e6, s.Until+calls*100e6
			}
			calls++
			e.Run(b)
		}
		return len(f.edges) - before
	}
	assert.Positive(t, after(30, 0))
	quiet := int64(e.cfg.Window.Seconds() * (checkWindows + 1))
	assert.LessOrEqual(t, after(quiet, 0), 2)
	after(int64(e.cfg.Window.Seconds())*checkWindows/2, 0)
	assert.Positive(t, after(quiet/4, 20e6)+after(quiet/4, 20e6))
}

// asked remembers the latest reading that was asked for.
type asked struct {
	fakeClocks
	latest map[string]int64
}

func (a *asked) Place(id string, reading int64) (clock.Placement, bool) {
	a.latest[id] = max(a.latest[id], reading)
	return a.fakeClocks.Place(id, reading)
}
