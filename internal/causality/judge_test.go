// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// call is a client on clock a and its server on clock b. The server starts after
// and ends before the client by what is given, ns; in between are 10 ms.
func call(e *Engine, after, before int64) *Batch {
	trace := traceID(1)
	client := Span{Ref: model.SpanRef{Trace: trace, Span: spanID(1)}, Is: Client | Call, Clock: e.Clock("a"), Begin: base, Until: base + 10e6, Job: e.Job("shop")}
	server := Span{
		Ref: model.SpanRef{Trace: trace, Span: spanID(2)}, Parent: client.Ref.Span, Is: Server | Call, Clock: e.Clock("b"),
		Begin: client.Begin + after, Until: client.Until - before, Job: e.Job("shop"),
	}
	return &Batch{Spans: []Span{client, server}}
}

func classesOf(b *Batch) (out []Class) {
	for _, v := range b.Verdicts {
		out = append(out, v.Class)
	}
	return out
}

// TestVerdicts goes through the table of the package's comment. The corrected
// slack is the raw one and what clock b is moved by.
func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		raw, shift, bound int64
		want              []Class
		magnitude         int64
	}{
		"right":                               {1000, 500, 100, nil, 0},
		"right, by less than the bound":       {50, 0, 100, nil, 0},
		"wrong, then right beyond the bound":  {-1000, 1500, 100, []Class{Artefact}, 1000},
		"wrong, then right by the bound":      {-1000, 1100, 100, []Class{Artefact}, 1000},
		"wrong, then right within the bound":  {-1000, 1099, 100, []Class{Undecided}, 1000},
		"wrong, then wrong within the bound":  {-1000, 950, 100, []Class{Undecided}, 50},
		"wrong, then wrong by the bound":      {-1000, 900, 100, []Class{Undecided}, 100},
		"wrong, then wrong beyond the bound":  {-1000, 899, 100, []Class{Violation}, 101},
		"wrong, and moved further":            {-1000, -1000, 100, []Class{Violation}, 2000},
		"right, then wrong within the bound":  {30, -100, 100, []Class{Undecided}, 70},
		"right, then wrong by a perfect bit":  {30, -130, 100, []Class{Undecided}, 100},
		"exact clocks know":                   {-1000, 1000, 0, []Class{Artefact}, 1000},
		"exact clocks know a violation, too":  {-1000, 999, 0, []Class{Violation}, 1},
		"far apart, and the bound is no help": {-10e9, 5e9, 1e6, []Class{Violation}, 5e9},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeClocks{of: map[string]fakeClock{"a": {}, "b": {offset: c.shift, bound: c.bound}}}
			e := New(testConfig(), f)
			b := call(e, c.raw, 5e6-max(0, c.raw)) // the end has room
			if c.raw == -10e9 {
				b.Spans[1].Until = b.Spans[1].Begin + 1
			}
			e.Run(b)
			require.Equal(t, c.want, classesOf(b))
			if len(b.Verdicts) > 0 {
				assert.Equal(t, c.magnitude, b.Verdicts[0].Magnitude)
				assert.Equal(t, "child_starts_after_parent", b.Verdicts[0].Row.Name)
				assert.Equal(t, []int{0, 1}, []int{b.Verdicts[0].First, b.Verdicts[0].Second})
			}
		})
	}
}

// TestNothingIsIntroduced: a correction that would turn the call's right start
// certainly wrong is not applied to its trace, and to no other's harm.
func TestNothingIsIntroduced(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"a": {}, "b": {offset: -2e6, bound: 1000}}}
	e := New(testConfig(), f)
	b := call(e, 1e6, 1e6)
	other := call(e, 4e6, 4e6) // in another trace, which can be moved by 2 ms
	for i := range other.Spans {
		other.Spans[i].Ref.Trace = traceID(2)
	}
	b.Spans = append(b.Spans, other.Spans...)
	e.Run(b)
	assert.Empty(t, b.Verdicts)
	assert.Equal(t, []State{Withheld, Withheld, Placed, Placed}, states(b))
	assert.EqualValues(t, 2, e.Stats().Withheld)
	assert.Zero(t, e.Job("shop").Counts[Introduced])
}

func states(b *Batch) (out []State) {
	for _, p := range b.Places {
		out = append(out, p.State)
	}
	return out
}

// TestWithholdingSpreads: taking the correction off a and b leaves c, which stands
// right beside the corrected b only.
func TestWithholdingSpreads(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"a": {}, "b": {offset: -2e6}, "c": {offset: -2e6}}}
	e := New(testConfig(), f)
	b := call(e, 1e6, 1e6)
	b.Spans = append(b.Spans, Span{
		Ref: model.SpanRef{Trace: traceID(1), Span: spanID(3)}, Parent: spanID(2), Clock: e.Clock("c"), Begin: base + 2e6, Until: base + 3e6,
	})
	e.Run(b)
	assert.Equal(t, []State{Withheld, Withheld, Withheld}, states(b))
	assert.Empty(t, b.Verdicts)
}

// TestClocksThatNothingCompares gives no verdict that needs a comparison, and
// makes no fault by moving one of two.
func TestClocksThatNothingCompares(t *testing.T) {
	for name, of := range map[string]map[string]fakeClock{
		"unknown":            {"a": {}},
		"unbounded":          {"a": {}, "b": {offset: 1, unbounded: true}},
		"other timeline":     {"a": {}, "b": {timeline: "timeline:y"}},
		"untrusted":          {"a": {}, "b": {untrusted: true}},
		"neither is known":   {},
		"neither is bound":   {"a": {unbounded: true}, "b": {unbounded: true}},
		"bound by ages":      {"a": {bound: math.MaxInt64}, "b": {bound: math.MaxInt64}},
		"stepped in between": {"a": {}, "b": {unbounded: true, stepped: true}},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(testConfig(), &fakeClocks{of: of})
			b := call(e, -1e6, 1e6)
			e.Run(b)
			assert.Equal(t, []Class{Undecided}, classesOf(b))
		})
	}
	t.Run("moving one of two", func(t *testing.T) {
		e := New(testConfig(), &fakeClocks{of: map[string]fakeClock{"a": {offset: 2e6}}})
		b := call(e, 1e6, 1e6)
		e.Run(b)
		assert.Empty(t, b.Verdicts)
		assert.Equal(t, []State{Unknown, Unknown}, states(b), "both stay as they came")
		assert.Zero(t, b.Places[0].Shift)
	})
}

// TestWhatIsVagueIsNotApplied: a clock of which seconds are unknown stays as it is.
func TestWhatIsVagueIsNotApplied(t *testing.T) {
	for bound, want := range map[int64]State{1e9: Placed, 1e9 + 1: Unknown} {
		e := New(testConfig(), &fakeClocks{of: map[string]fakeClock{"a": {bound: 1}, "b": {bound: bound}}})
		b := call(e, 1e6, 1e6)
		e.Run(b)
		assert.Equal(t, want, states(b)[1])
	}
}

// TestOneClockNeedsNoBound: on one clock an impossible order is the program's.
func TestOneClockNeedsNoBound(t *testing.T) {
	for _, of := range []map[string]fakeClock{{}, {"a": {offset: 5, bound: 1e9}}} {
		e := New(testConfig(), &fakeClocks{of: of})
		b := call(e, -1, 1e6)
		b.Spans[1].Clock = e.Clock("a")
		e.Run(b)
		assert.Equal(t, []Class{Violation}, classesOf(b))
	}
}

// TestCoarseStamps: a server of ms stamps starts up to 1 ms before its client.
func TestCoarseStamps(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"a": {}, "b": {}}}
	for _, oneClock := range []bool{false, true} {
		e := New(testConfig(), f)
		b := call(e, 0, 1e6)
		b.Spans[1].Begin = base - base%1e6
		if oneClock {
			b.Spans[1].Clock = e.Clock("a")
		}
		e.Run(b)
		assert.Equal(t, []Class{Undecided}, classesOf(b))
	}
	e := New(testConfig(), f)
	b := call(e, 0, 1e6)
	b.Spans[1].Begin = base - base%1e6 - 1e6
	e.Run(b)
	assert.Equal(t, []Class{Violation}, classesOf(b))
}

// TestEndsAreJudgedByWhereTheyStand: a client of 100 s by a clock that runs 50 ppm
// fast ends 5 ms earlier than its start says.
func TestEndsAreJudgedByWhereTheyStand(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"a": {drift: -50e-6}, "b": {}}}
	e := New(testConfig(), f)
	b := call(e, 1e6, 0)
	b.Spans[0].Until = base + 100e9
	b.Spans[1].Until = base + 100e9 - 5e6 + 1000 // 1 µs after the client, in truth
	e.Run(b)
	assert.Equal(t, []State{Withheld, Withheld}, states(b), "the stamps have the end right")
	b.Spans[1].Until = base + 100e9 - 5e6 - 1000
	e = New(testConfig(), f)
	for i := range b.Spans {
		b.Spans[i].Clock = e.Clock(b.Spans[i].Clock.ID)
	}
	e.Run(b)
	assert.Equal(t, []State{Placed, Placed}, states(b))
	assert.Empty(t, b.Verdicts)
}

// TestAcrossBatches: either side may come first.
func TestAcrossBatches(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		f := &fakeClocks{of: map[string]fakeClock{"a": {}, "b": {}}}
		e := New(testConfig(), f)
		both := call(e, -1000, 1e6).Spans
		var found []Verdict
		for _, i := range order {
			b := &Batch{Spans: both[i : i+1]}
			e.Run(b)
			found = append(found, b.Verdicts...)
		}
		require.Len(t, found, 1)
		want := [2]int{-1, 0}
		if order[0] == 1 {
			want = [2]int{0, -1}
		}
		assert.Equal(t, want, [2]int{found[0].First, found[0].Second})
		assert.Equal(t, both[0].Ref, found[0].FirstRef)
		assert.Equal(t, Violation, found[0].Class)
	}
}

// TestMemoryIsBounded: of the oldest spans nothing is left, and what waited in
// vain is counted.
func TestMemoryIsBounded(t *testing.T) {
	cfg := testConfig()
	cfg.MaxSpans = 64
	e := New(cfg, &fakeClocks{})
	orphan := func(n uint64) Span {
		return Span{Ref: model.SpanRef{Trace: traceID(n), Span: spanID(2)}, Parent: spanID(1), Clock: e.Clock("b"), Begin: base, Until: base + 1}
	}
	for n := range uint64(1000) {
		e.Run(&Batch{Spans: []Span{orphan(n)}})
	}
	assert.Equal(t, 64, made(&e.memory.records))
	assert.Equal(t, 64, made(&e.memory.waits))
	assert.EqualValues(t, 1000-64, e.Stats().Forgotten)
	parent := func(n uint64) Span {
		return Span{Ref: model.SpanRef{Trace: traceID(n), Span: spanID(1)}, Clock: e.Clock("a"), Begin: base, Until: base + 1}
	}
	e.Run(&Batch{Spans: []Span{parent(10)}})
	assert.Zero(t, e.Stats().Relations, "forgotten")
	e.Run(&Batch{Spans: []Span{parent(990)}})
	assert.EqualValues(t, 1, e.Stats().Relations)

	big := &Batch{}
	for n := range uint64(1000) {
		big.Spans = append(big.Spans, orphan(n), parent(n))
	}
	e.Run(big)
	assert.Equal(t, 64, made(&e.memory.records))
}

// made is for how many values a ring has memory.
func made[T any](r *ring[T]) (n int) {
	for _, c := range r.chunks {
		n += len(c)
	}
	return n
}

// TestIDsSpread: ids that count up, at either end, fill the buckets as random ones
// would: of as many spans as are remembered hardly one is lost.
func TestIDsSpread(t *testing.T) {
	const n = 1 << 14
	for name, ref := range map[string]func(i uint64) model.SpanRef{
		"spans":  func(i uint64) model.SpanRef { return model.SpanRef{Trace: traceID(1), Span: spanID(i)} },
		"traces": func(i uint64) model.SpanRef { return model.SpanRef{Trace: traceID(i), Span: spanID(1)} },
		"first byte": func(i uint64) model.SpanRef {
			return model.SpanRef{Span: model.SpanID{byte(i), byte(i >> 8)}}
		},
		"both": func(i uint64) model.SpanRef { return model.SpanRef{Trace: traceID(i), Span: spanID(i)} },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(n)
			for i := range uint64(n) {
				m.add(hashOf(ref(i)), &Span{Ref: ref(i), Begin: int64(i)}, nil)
			}
			lost := 0
			for i := range uint64(n) {
				if number := m.find(hashOf(ref(i)), ref(i)); number == 0 {
					lost++
				} else {
					require.EqualValues(t, i, m.records.get(number).begin)
				}
			}
			assert.Less(t, lost, n/200)
		})
	}
}

// TestSpansOfOneIdentity: the last of a batch is who is named, and many cost no more
// than as many others.
func TestSpansOfOneIdentity(t *testing.T) {
	e := New(testConfig(), &fakeClocks{})
	b := &Batch{}
	for n := range int64(20_000) {
		b.Spans = append(b.Spans, span(e, 1, 1, 0, "a", -n))
	}
	b.Spans = append(b.Spans, span(e, 1, 2, 1, "b", -19_999-1))
	e.Run(b)
	assert.EqualValues(t, 1, e.Stats().Relations)
	slots := 0
	for _, slot := range e.memory.batch.slots {
		if slot != 0 {
			slots++
		}
	}
	assert.Equal(t, 2, slots)
}

func TestMeetingsAreBounded(t *testing.T) {
	cfg := testConfig()
	cfg.MaxSpans = 10
	e := New(cfg, &fakeClocks{})
	for n := range int64(100) {
		r, op := member(model.KindCollective, model.AllReduce, 0, 0)
		op.Collective.Seq = model.Some(n)
		e.Run(&Batch{Spans: []Span{{Ref: model.SpanRef{Span: spanID(uint64(n))}, Is: Operation, Meet: MeetOf(r, op), Clock: e.Clock("a"), Begin: base, Until: base + 1}}})
	}
	assert.Len(t, e.meetings.open, 5, "each has a start and an end")
	assert.Len(t, e.meetings.order, 5)
	assert.EqualValues(t, 95, e.Stats().Unmet)
}

func TestClocksAndJobsAreBounded(t *testing.T) {
	cfg := testConfig()
	cfg.MaxClocks, cfg.MaxJobs = 2, 2
	e := New(cfg, &fakeClocks{})
	assert.NotNil(t, e.Clock("a"))
	assert.NotNil(t, e.Clock("b"))
	assert.Nil(t, e.Clock("c"))
	first := e.Clock("a")
	assert.Same(t, first, e.Clock("a"))
	assert.EqualValues(t, 1, e.Stats().ClocksOver)
	e.Job("1")
	e.Job("2")
	assert.Same(t, e.Job("3"), e.Job("4"))
	names := []string{}
	e.Jobs(time.Now(), func(j *Job, _ bool) { names = append(names, j.Name) })
	assert.ElementsMatch(t, []string{"1", "2", ""}, names)
}

// TestClocksAndJobsAreForgotten: processes name theirs anew with every start, and a
// limit that was reached once is not the end.
func TestClocksAndJobsAreForgotten(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	cfg := testConfig()
	cfg.MaxClocks, cfg.MaxJobs, cfg.Now = 4, 4, func() time.Time { return now }
	e := New(cfg, &fakeClocks{})
	fill := func(from, n int) (clocks, jobs int) {
		for i := range n {
			name := string(rune('a' + from + i))
			if e.Clock(name) != nil {
				clocks++
			}
			if e.Job(name).Name == name {
				jobs++
			}
		}
		return clocks, jobs
	}
	pass := func(d time.Duration) {
		now = now.Add(d)
		e.Run(&Batch{})
	}
	fill(0, 4)
	clocks, jobs := fill(4, 2)
	assert.Equal(t, [2]int{}, [2]int{clocks, jobs}, "all are in use")
	pass(300 * time.Second)
	fill(0, 1) // the first is still there
	pass(300 * time.Second)
	clocks, jobs = fill(4, 3)
	assert.Equal(t, [2]int{3, 3}, [2]int{clocks, jobs})
	assert.EqualValues(t, 4, e.Stats().Clocks)
	assert.NotNil(t, e.clocks["a"], "it was seen since")
	indices := map[int]bool{}
	for _, c := range e.clocks {
		indices[c.index] = true
	}
	assert.Len(t, indices, 4)
}

// TestMeetingsOfAnotherRun: a job that is started again counts from the beginning, and
// another may bear the same name. Neither meets the other.
func TestMeetingsOfAnotherRun(t *testing.T) {
	e := New(testConfig(), &fakeClocks{of: map[string]fakeClock{"a": {}, "b": {}, "c": {}, "d": {}}})
	n := uint64(0)
	run := func(job string, rank int64, clock string, at int64) (out []string) {
		n++
		r, op := member(model.KindCollective, model.AllReduce, rank, 0)
		r.JobID = job
		s := Span{
			Ref: model.SpanRef{Trace: traceID(n), Span: spanID(n)}, Is: Operation, Meet: MeetOf(r, op), Clock: e.Clock(clock),
			Begin: base + at, Until: base + at + 1e6,
		}
		before := e.Stats().Relations
		b := &Batch{Spans: []Span{s}}
		e.Run(b)
		for _, v := range b.Verdicts {
			out = append(out, v.Row.Name)
		}
		assert.LessOrEqual(t, e.Stats().Relations-before, int64(2))
		return out
	}
	const later = 300e9
	for name, spans := range map[string][]func() []string{
		"one after the other": {
			func() []string { return run("1", 0, "a", 0) }, func() []string { return run("1", 1, "b", 1000) },
			func() []string { return run("1", 0, "a", later) }, func() []string { return run("1", 1, "b", later+1000) },
		},
		"file by file": {
			func() []string { return run("2", 0, "a", 0) }, func() []string { return run("2", 0, "a", later) },
			func() []string { return run("2", 1, "b", 1000) }, func() []string { return run("2", 1, "b", later+1000) },
		},
		"on other hosts": {
			func() []string { return run("3", 0, "a", 0) }, func() []string { return run("3", 1, "b", 1000) },
			func() []string { return run("3", 0, "c", later) }, func() []string { return run("3", 1, "d", later+1000) },
		},
		"another job": {
			func() []string { return run("4", 0, "a", 0) }, func() []string { return run("4", 1, "b", 1000) },
			func() []string { return run("5", 0, "c", 100e9) }, func() []string { return run("5", 1, "d", 100e9+1000) },
		},
		"long after": {
			func() []string { return run("6", 0, "a", 0) }, func() []string { return run("6", 1, "b", 2*later+2000) },
		},
	} {
		before := e.Stats().Relations
		for _, span := range spans {
			assert.Empty(t, span(), name)
		}
		assert.EqualValues(t, 4*(len(spans)/4), e.Stats().Relations-before, name)
	}
	for range 3 * maxRuns {
		run("7", 0, "a", 0)
	}
	runs := 0
	for m := e.meetings.order[len(e.meetings.order)-1]; m != nil; m = m.older {
		runs++
	}
	assert.LessOrEqual(t, runs, maxRuns+1)
}

// TestResolutions: what a stamp can be off by, from its digits.
func TestResolutions(t *testing.T) {
	for stamp, want := range map[int64]int64{
		1_700_000_000_123_456_789: 0, 1_700_000_000_123_456_700: 100, 1_700_000_000_123_456_000: 1000, 1_700_000_000_123_000_000: 1_000_000,
	} {
		assert.Equal(t, want, resolution(stamp))
	}
}

// TestHealth: a violation in a hundred relations is beyond a limit of 1 ‰, for as
// long as the window.
func TestHealth(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	cfg := testConfig()
	cfg.HealthLimit, cfg.Now = 0.001, func() time.Time { return now }
	e := New(cfg, &fakeClocks{of: map[string]fakeClock{"a": {}, "b": {}}})
	healthy := func() (ok bool) {
		e.Jobs(now, func(_ *Job, h bool) { ok = h })
		return ok
	}
	run := func(n int, after int64) {
		for range n {
			e.Run(call(e, after, 0.9e6)) // back sooner than any start is early
		}
	}
	run(50, 1e6)
	assert.True(t, healthy())
	now = now.Add(time.Second)
	run(1, -1e6)
	assert.False(t, healthy())
	now = now.Add(29 * time.Second)
	assert.False(t, healthy())
	now = now.Add(time.Second)
	assert.True(t, healthy(), "the window is over")
	run(1, -1e6)
	assert.False(t, healthy())
	run(1000, 1e6)
	assert.True(t, healthy(), "one in 2000")
	assert.EqualValues(t, 2, e.Job("shop").Counts[Violation])
}

// TestRing: the latest values are there by their numbers, and older ones are not.
func TestRing(t *testing.T) {
	r := ring[uint64]{max: 2*ringChunk + 7}
	for n := range uint64(5 * ringChunk) {
		v, number := r.add()
		require.Equal(t, n+1, number)
		*v = number
		require.Equal(t, int(min(number+ringChunk-1-(number-1)%ringChunk, r.max)), made(&r))
		for _, ago := range []uint64{0, 1, ringChunk, r.max - 1, r.max} {
			switch got := r.get(number - min(ago, number)); {
			case ago < number && ago < r.max:
				require.Equal(t, number-ago, *got)
			default:
				require.Nil(t, got)
			}
		}
	}
}
