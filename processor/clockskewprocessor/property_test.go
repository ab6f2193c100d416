// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// corrected is a world's spans after the processor.
type corrected struct {
	w     *world
	p     *skew
	raw   map[uint64]ptrace.Span
	spans map[uint64]ptrace.Span
	out   []ptrace.Traces
}

// correct runs all batches through a processor with a timeline of its own.
func correct(t *testing.T, w *world, mode string, every int64) *corrected {
	t.Helper()
	cfg := newDefaultConfig()
	cfg.Mode = mode
	if w.probed {
		cfg.SlewLimit = 1 // nobody slews these clocks, and this is known
	}
	sink := new(consumertest.TracesSink)
	p, err := newSkew(cfg, componenttest.NewNopTelemetrySettings(), sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	c := &corrected{w: w, p: p, raw: map[uint64]ptrace.Span{}, spans: map[uint64]ptrace.Span{}}
	probed := int64(0)
	for _, td := range w.batches(every) {
		if now := int64(td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).StartTimestamp()); w.probed && now > probed+2e9 {
			probed = now
			w.probe(t, p.clocks, now)
		}
		before := ptrace.NewTraces()
		td.CopyTo(before)
		index(before, c.raw)
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
	}
	c.out = sink.AllTraces()
	for _, td := range c.out {
		index(td, c.spans)
	}
	return c
}

func index(td ptrace.Traces, by map[uint64]ptrace.Span) {
	for _, rs := range td.ResourceSpans().All() {
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			id := s.SpanID()
			by[binary.BigEndian.Uint64(id[:])] = s
		}
	}
}

func (c *corrected) counts() (n [5]int64) {
	for _, name := range []string{"shop", "job"} {
		for class, k := range c.p.engine.Job(name).Counts {
			n[class] += k
		}
	}
	return n
}

// probe tells the clocks what packets would: host 0 and every other, in the two
// seconds around a time, to 1 µs either way.
func (w *world) probe(tb testing.TB, c clocks, at int64) {
	tb.Helper()
	for h := 1; h < len(w.hosts); h++ {
		src, dst := w.hosts[0].shows(at), w.hosts[h].shows(at)
		require.NoError(tb, c.AddEdge(model.ClockEdge{
			Src: "host:h0/?/realtime", Dst: fmt.Sprintf("host:h%d/?/realtime", h), At: src, Span: 2e9,
			Lower: dst - src - 1000, Upper: dst - src + 1000, Offset: dst - src, Sigma: 100,
			Drift: w.hosts[h].drift - w.hosts[0].drift, DriftBound: 1e-6, Samples: 200, Source: model.EdgeProbe, Stamps: model.StampKernel,
		}))
	}
	c.Advance(time.Now())
}

// place is where a span was put, and to within what.
func place(s ptrace.Span) (start int64, bound float64, ok bool) {
	if s == (ptrace.Span{}) {
		return 0, 0, false
	}
	b, ok := s.Attributes().Get(semconv.ClockBound)
	if !ok {
		return 0, 0, false
	}
	return int64(s.StartTimestamp()), b.Double() * 1e9, true
}

// check asserts what must hold of every span whatever the clocks did. It returns
// the mean absolute error of the distance of children on other hosts from their
// parents, ns, raw and corrected, and how many there are.
func (c *corrected) check(t *testing.T) (raw, now float64, n int) {
	t.Helper()
	require.Len(t, c.spans, len(c.w.spans))
	byID := map[uint64]*trueSpan{}
	for _, s := range c.w.spans {
		byID[s.id] = s
		was, is := c.raw[s.id], c.spans[s.id]
		require.Equal(t, was.EndTimestamp()-was.StartTimestamp(), is.EndTimestamp()-is.StartTimestamp(), "durations stay")
		require.Equal(t, was.Events().At(0).Timestamp()-was.StartTimestamp(), is.Events().At(0).Timestamp()-is.StartTimestamp(), "events move along")
	}
	for _, s := range c.w.spans {
		parent := byID[s.parent]
		if parent == nil || parent.host == s.host {
			continue
		}
		at, bound, ok := place(c.spans[s.id])
		parentAt, parentBound, parentOK := place(c.spans[parent.id])
		if !ok || !parentOK {
			continue
		}
		truth := s.begin - parent.begin
		off := math.Abs(float64(at - parentAt - truth))
		require.LessOrEqual(t, off, bound+parentBound, "the bounds hold")
		if s.async && float64(s.end-parent.end) > bound+parentBound {
			require.Greater(t, c.spans[s.id].EndTimestamp(), c.spans[parent.id].EndTimestamp(), "what outlives its parent is not moved into it")
		}
		now += off
		raw += math.Abs(float64(int64(c.raw[s.id].StartTimestamp()) - int64(c.raw[parent.id].StartTimestamp()) - truth))
		n++
	}
	return raw / float64(n), now / float64(n), n
}

// services is a minute of requests, 50 a second.
func services(seed uint64) *world {
	w := newWorld(seed, 6, 10e6, 50)
	for n := range uint64(3000) {
		w.request(n+1, base+int64(n)*20e6)
	}
	return w
}

// TestMicroservices: clocks ±10 ms apart, drifting by ±50 ppm, and nothing but
// traces. The paths take 0.2 ms at least, and the clocks could be slewed at any
// time: so nothing is certain, and yet all of it is right.
func TestMicroservices(t *testing.T) {
	for seed := range uint64(tier.N(t, 1, 3)) {
		c := correct(t, services(seed), ModeRealign, 1e9)
		raw, now, n := c.check(t)
		counts := c.counts()
		t.Logf("seed %d: %d relations between hosts; mean error %.0f ns raw, %.0f ns corrected; verdicts %v", seed, n, raw, now, counts)
		assert.Zero(t, c.introduced())
		assert.Zero(t, counts[causality.Introduced])
		assert.Zero(t, counts[causality.Violation], "in truth there is none")
		assert.NotZero(t, counts[causality.Undecided])
		assert.Greater(t, n, 10_000)
		assert.Greater(t, raw, 100*now)
		// Within the bound an estimate may have two that are 0.2 ms apart the wrong way.
		assert.Less(t, c.reversed(), n/1000, "children are shown after their parent")
	}
}

// reversed counts the children that are shown before their parent, of those of
// which both stand on the timeline.
func (c *corrected) reversed() (n int) {
	for _, s := range c.w.spans {
		at, _, ok := place(c.spans[s.id])
		parentAt, _, known := place(c.spans[s.parent])
		if s.parent != 0 && ok && known && at < parentAt {
			n++
		}
	}
	return n
}

func text(v pcommon.Value) string {
	if v == (pcommon.Value{}) {
		return ""
	}
	return v.Str()
}

// TestMicroservicesWithProbes: packets bound the same clocks to 2 µs, nobody slews
// them, and nothing is undecided.
func TestMicroservicesWithProbes(t *testing.T) {
	w := services(9)
	w.probed = true
	c := correct(t, w, ModeRealign, 1e9)
	raw, now, n := c.check(t)
	counts := c.counts()
	t.Logf("%d relations between hosts; mean error %.0f ns raw, %.0f ns corrected; verdicts %v", n, raw, now, counts)
	assert.Zero(t, c.introduced())
	assert.Zero(t, counts[causality.Introduced])
	assert.Zero(t, counts[causality.Violation])
	assert.Greater(t, counts[causality.Artefact], 10*counts[causality.Undecided])
	assert.Zero(t, c.reversed())
}

// TestLateStamps: one client in a hundred stamps its start 5 ms late, after its
// server has begun. Where the skew does not hide it, it is a violation.
func TestLateStamps(t *testing.T) {
	w := services(4)
	w.probed = true
	client := map[uint64]*trueSpan{}
	for i, s := range w.spans {
		if i%100 == 0 && s.kind == ptrace.SpanKindClient {
			s.late = 5e6
			client[s.id] = s
		}
	}
	require.NotEmpty(t, client)
	c := correct(t, w, ModeRealign, 1e9)
	flagged, hidden := 0, 0
	for _, s := range w.spans {
		parent := client[s.parent]
		if parent == nil || parent.host == s.host {
			continue
		}
		reversal := parent.begin + parent.late - s.begin
		if reversal < 1e6 {
			continue
		}
		if c.raw[s.id].StartTimestamp() >= c.raw[parent.id].StartTimestamp() {
			hidden++
			continue
		}
		// It stands on both, or on the one that came last.
		child, _ := c.spans[s.id].Attributes().Get(semconv.CausalityVerdict)
		caller, _ := c.spans[parent.id].Attributes().Get(semconv.CausalityVerdict)
		require.Contains(t, []string{text(child), text(caller)}, semconv.VerdictViolation)
		flagged++
	}
	counts := c.counts()
	t.Logf("%d flagged, %d hidden by the skew; verdicts %v; withheld %d of %d spans", flagged, hidden, counts, c.p.engine.Stats().Withheld, len(w.spans))
	assert.Positive(t, flagged)
	assert.NotZero(t, hidden)
	assert.Zero(t, c.introduced())
	assert.Zero(t, counts[causality.Introduced])
	// A span that was given out is not called back: where the program stamped late, the
	// skew hid it, and spans on both sides are out, nothing is right, and bounds say so.
	assert.Positive(t, c.p.engine.Stats().Widened)

	// Before any of it is given out there is always a choice.
	w.together = true
	c = correct(t, w, ModeRealign, 1e9)
	assert.Zero(t, c.introduced())
	assert.Zero(t, c.counts()[causality.Introduced])
	assert.Zero(t, c.p.engine.Stats().Widened)
}

// TestNothingIsIntroduced: one client in a hundred stamps late, and hosts export in any
// order, by packets and by traces alone.
func TestNothingIsIntroduced(t *testing.T) {
	for seed := range uint64(tier.N(t, 2, 8)) {
		for _, probed := range []bool{true, false} {
			w := services(seed)
			w.probed, w.shuffled = probed, true
			for i, s := range w.spans {
				if i%100 == 0 && s.kind == ptrace.SpanKindClient {
					s.late = 5e6
				}
			}
			c := correct(t, w, ModeRealign, 1e9)
			counts, stats := c.counts(), c.p.engine.Stats()
			t.Logf("seed %d, probed %v: verdicts %v; withheld %d of %d spans, bounds widened for %d relations", seed, probed, counts, stats.Withheld, len(w.spans), stats.Widened)
			assert.Zero(t, c.introduced())
			assert.Zero(t, counts[causality.Introduced])
			assert.Less(t, stats.Withheld+stats.Widened, int64(len(w.spans)/100))
		}
	}
}

// TestRanks: eight ranks on as many hosts meet ten times a second.
func TestRanks(t *testing.T) {
	w := newWorld(5, 8, 10e6, 50)
	at := base
	for n := range uint64(300) {
		at = w.step(n+1, at+100e6)
	}
	c := correct(t, w, ModeRealign, 1e9)
	c.check(t)
	counts := c.counts()
	assert.Zero(t, c.introduced())
	assert.Zero(t, counts[causality.Introduced])
	assert.Zero(t, counts[causality.Violation])
	assert.NotZero(t, counts[causality.Undecided])

	// All members leave within the delay's jitter: by how much they seem not to.
	worst := func(spans map[uint64]ptrace.Span) (sum float64) {
		first, last, truth := map[uint64]int64{}, map[uint64]int64{}, map[uint64][2]int64{}
		for _, s := range w.spans {
			if s.attrs[semconv.OpKind] != "collective" {
				continue
			}
			end := int64(spans[s.id].EndTimestamp())
			if _, ok := first[s.trace]; !ok {
				first[s.trace], last[s.trace], truth[s.trace] = end, end, [2]int64{s.end, s.end}
			}
			first[s.trace], last[s.trace] = min(first[s.trace], end), max(last[s.trace], end)
			truth[s.trace] = [2]int64{min(truth[s.trace][0], s.end), max(truth[s.trace][1], s.end)}
		}
		for n := range first {
			sum += math.Abs(float64(last[n]-first[n]-(truth[n][1]-truth[n][0]))) / float64(len(first))
		}
		return sum
	}
	raw, now := worst(c.raw), worst(c.spans)
	t.Logf("spread of the ends off by %.0f ns raw, %.0f ns corrected; verdicts %v", raw, now, counts)
	assert.Greater(t, raw, 10*now)
}

// TestRealignedTwice: what the processor gave, given to it again, comes out the
// same to the byte, since it starts from the raw stamps.
func TestRealignedTwice(t *testing.T) {
	c := correct(t, services(2), ModeRealign, 1e9)
	run := func(in []ptrace.Traces) []ptrace.Traces {
		sink := new(consumertest.TracesSink)
		p, err := newSkew(c.p.cfg, componenttest.NewNopTelemetrySettings(), sink)
		require.NoError(t, err)
		p.use(deaf{c.p.clocks})
		for _, td := range in {
			mine := ptrace.NewTraces()
			td.CopyTo(mine)
			require.NoError(t, p.ConsumeTraces(t.Context(), mine))
		}
		return sink.AllTraces()
	}
	once := run(c.w.batches(1e9))
	twice, again := run(once), run(c.out) // the latter by other models before
	marshal := &ptrace.ProtoMarshaler{}
	for i := range once {
		a, err := marshal.MarshalTraces(once[i])
		require.NoError(t, err)
		b, err := marshal.MarshalTraces(twice[i])
		require.NoError(t, err)
		require.Equal(t, string(a), string(b))
		for j := range once[i].ResourceSpans().At(0).ScopeSpans().At(0).Spans().Len() {
			x, y := spanAt(once[i], j), spanAt(again[i], j)
			require.Equal(t, x.StartTimestamp(), y.StartTimestamp())
			require.Equal(t, x.Attributes().AsRaw(), y.Attributes().AsRaw())
		}
	}
}

func spanAt(td ptrace.Traces, i int) ptrace.Span {
	return td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(i)
}

// deaf is a timeline that learns nothing further.
type deaf struct{ clocks }

func (deaf) AddEdge(model.ClockEdge) error { return nil }

// TestAnnotateChangesNoTime: not of any span, whatever is known of clocks.
func TestAnnotateChangesNoTime(t *testing.T) {
	c := correct(t, services(3), ModeAnnotate, 1e9)
	for id, was := range c.raw {
		is := c.spans[id]
		require.Equal(t, was.StartTimestamp(), is.StartTimestamp())
		require.Equal(t, was.EndTimestamp(), is.EndTimestamp())
		require.Equal(t, was.Events().At(0).Timestamp(), is.Events().At(0).Timestamp())
	}
	counts := c.counts()
	assert.Zero(t, counts[causality.Introduced])
	assert.NotZero(t, counts[causality.Undecided])
}
