// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newTestLedger(t *testing.T, store Store, now time.Time, change func(*Config)) *Ledger {
	t.Helper()
	cfg := limits
	if change != nil {
		change(&cfg)
	}
	l, err := NewLedger(cfg, store, now)
	require.NoError(t, err)
	return l
}

// some returns an arrival of numbers of a step.
func some(source string, step, first, last int64) []Arrival {
	return []Arrival{{Source: source, Steps: map[Step]Ranges{of(step): {{first, last}}}}}
}

func pass(t *testing.T, l *Ledger, all []Arrival, now time.Time) {
	t.Helper()
	l.Expect(all)
	require.NoError(t, l.Arrive(all, now))
}

func conclude(t *testing.T, l *Ledger, step Step) Verdict {
	t.Helper()
	v, err := l.Begin(step)
	require.NoError(t, err)
	require.NoError(t, l.End([]Step{step}))
	return v
}

func TestLedger_KilledBetweenTwoRanks_StepSaysWhatItLost(t *testing.T) {
	store := newMemory()
	l := newTestLedger(t, store, start, nil)
	pass(t, l, some("a", 7, 0, 9), start)
	l = newTestLedger(t, store, start, nil)
	pass(t, l, some("b", 7, 0, 4), start)
	v, err := l.Begin(of(7))
	require.NoError(t, err)
	assert.Equal(t, Verdict{Lost: 10}, v)
	assert.Equal(t, IncompleteRestart, v.Incomplete())
	require.NoError(t, l.End([]Step{of(7)}))
	assert.Equal(t, Totals{Arrived: 15, Concluded: 5, Lost: 10}, l.Totals())
	assert.Equal(t, []Loss{{Step: of(7), Last: 7, Spans: 10, Reason: ReasonRestart}}, l.Losses())
	assert.Empty(t, l.Losses(), "each is reported once")
}

func TestLedger_NothingMoreComesOfAStep_IsLostAfterTheWait(t *testing.T) {
	store := newMemory()
	l := newTestLedger(t, store, start, nil)
	pass(t, l, some("a", 7, 0, 9), start)
	pass(t, l, some("a", 8, 10, 12), start)
	l = newTestLedger(t, store, start, nil)
	require.NoError(t, l.Tick(start.Add(limits.Wait-1)))
	assert.Zero(t, l.Totals().Lost)
	require.NoError(t, l.Tick(start.Add(limits.Wait)))
	assert.Equal(t, []Loss{{Step: of(7), Last: 8, Spans: 13, Reason: ReasonRestart}}, l.Losses())
	// A rank that comes later still makes a step, which says what it lacks.
	pass(t, l, some("b", 8, 0, 4), start.Add(limits.Wait))
	v, err := l.Begin(of(8))
	require.NoError(t, err)
	assert.Equal(t, Verdict{Lost: 3}, v)
	assert.EqualValues(t, 13, l.Totals().Lost, "they are counted once")
}

func TestLedger_SentAgainInTheCallThatConcludes_IsNotLost(t *testing.T) {
	store := newMemory()
	l := newTestLedger(t, store, start, nil)
	pass(t, l, some("a", 7, 0, 9), start) // killed before the sender learns it
	l = newTestLedger(t, store, start, nil)
	again := some("a", 7, 0, 9)
	l.Expect(again)
	v, err := l.Begin(of(7))
	require.NoError(t, err)
	assert.Equal(t, Verdict{}, v)
	require.NoError(t, l.End([]Step{of(7)}))
	require.NoError(t, l.Arrive(again, start))
	assert.Equal(t, Totals{Arrived: 10, Again: 10, Concluded: 10}, l.Totals())
}

func TestLedger_KilledWhileAConclusionIsSent_IsUncertain(t *testing.T) {
	store := newMemory()
	l := newTestLedger(t, store, start, nil)
	pass(t, l, some("a", 7, 0, 9), start)
	_, err := l.Begin(of(7))
	require.NoError(t, err)
	l = newTestLedger(t, store, start, nil)
	assert.Equal(t, Totals{Arrived: 10, Uncertain: 10}, l.Totals())
	assert.Equal(t, []Loss{{Step: of(7), Last: 7, Spans: 10, Reason: ReasonUncertain}}, l.Losses())
	// What comes later is of a step of which it is not known whether anything was sent.
	pass(t, l, some("a", 7, 10, 11), start)
	assert.Equal(t, IncompleteBefore, conclude(t, l, of(7)).Incomplete())
	pass(t, l, some("a", 7, 12, 12), start)
	assert.Equal(t, Totals{Arrived: 13, Uncertain: 13}, l.Totals())
	l = newTestLedger(t, store, start, nil)
	pass(t, l, some("a", 7, 13, 13), start)
	assert.Equal(t, Totals{Arrived: 14, Uncertain: 14}, l.Totals())
}

// A kill while it concludes once more what was concluded for certain makes nothing uncertain.
func TestLedger_KilledWhileAStepIsConcludedAgain_StaysConcluded(t *testing.T) {
	store := newMemory()
	l := newTestLedger(t, store, start, nil)
	pass(t, l, some("a", 7, 0, 9), start)
	conclude(t, l, of(7))
	_, err := l.Begin(of(7))
	require.NoError(t, err)
	l = newTestLedger(t, store, start, nil)
	pass(t, l, some("a", 7, 10, 11), start)
	assert.Equal(t, Totals{Arrived: 12, Concluded: 12}, l.Totals())
}

func TestLedger_KilledBeforeALossIsAskedFor_IsReportedAfterTheRestart(t *testing.T) {
	store := newMemory()
	l := newTestLedger(t, store, start, nil)
	pass(t, l, some("a", 7, 0, 9), start)
	l = newTestLedger(t, store, start, nil)
	conclude(t, l, of(7))
	l = newTestLedger(t, store, start, nil)
	want := []Loss{{Step: of(7), Last: 7, Spans: 10, Reason: ReasonRestart}}
	assert.Equal(t, want, l.Losses())
	require.NoError(t, l.Tick(start))
	assert.Empty(t, newTestLedger(t, store, start, nil).Losses(), "it was asked for")
}

// What a source makes up as a step is in no store that cannot be read again.
func TestLedger_StepOutOfRange_IsNotKept(t *testing.T) {
	for _, step := range []Step{{"job", "inc", math.MaxInt64}, {"job", "inc", math.MinInt64}, {"\xff", "inc", 1}, {"job", "\xff", 1}} {
		store := newMemory()
		l := newTestLedger(t, store, start, nil)
		pass(t, l, some("a", 7, 0, 9), start)
		for range 2 {
			assert.Equal(t, Verdict{}, conclude(t, l, step))
		}
		again := newTestLedger(t, store, start, nil)
		assert.Equal(t, l.Totals(), again.Totals())
		assert.Equal(t, l.Open(), again.Open())
	}
}

func TestLedger_Gap_IsCountedUnlessItIsFilledOrVoid(t *testing.T) {
	l := newTestLedger(t, nil, start, nil)
	pass(t, l, some("a", 7, 0, 9), start)
	pass(t, l, some("a", 7, 20, 29), start)
	pass(t, l, some("a", 7, 40, 49), start)
	pass(t, l, some("a", 7, 60, 69), start)
	require.NoError(t, l.Tick(start.Add(limits.Wait)))
	pass(t, l, some("a", 7, 10, 19), start.Add(limits.Wait))
	pass(t, l, []Arrival{{Source: "a", Void: Ranges{{30, 39}}}}, start.Add(limits.Wait))
	require.NoError(t, l.Tick(start.Add(2*limits.Wait)))
	assert.Equal(t, Totals{Arrived: 50, Gap: 10, Void: 10}, l.Totals())
	assert.Equal(t, []Loss{{Step: Step{Job: "job", Incarnation: "inc"}, Spans: 10, Reason: ReasonGap}}, l.Losses())
	pass(t, l, some("a", 7, 50, 59), start.Add(3*limits.Wait))
	assert.EqualValues(t, 10, l.Totals().Again, "what comes after the wait changes nothing")
}

func TestLedger_StreamBeginsInTheMiddle_WasElsewhere(t *testing.T) {
	l := newTestLedger(t, nil, start, nil)
	pass(t, l, some("a", 7, 100, 109), start)
	pass(t, l, some("a", 8, 110, 119), start)
	first, err := l.Begin(of(7))
	require.NoError(t, err)
	assert.Equal(t, IncompleteElsewhere, first.Incomplete())
	second, err := l.Begin(of(8))
	require.NoError(t, err)
	assert.Empty(t, second.Incomplete())
	require.NoError(t, l.End([]Step{of(7), of(8)}))
	require.NoError(t, l.Tick(start.Add(limits.Wait)))
	require.NoError(t, l.Tick(start.Add(2*limits.Wait)))
	assert.Equal(t, Totals{Arrived: 20, Concluded: 20, Elsewhere: 100}, l.Totals())
	assert.Empty(t, l.Losses(), "the other gateway counts what it loses")
}

func TestLedger_JobComesBack_GapWasElsewhere(t *testing.T) {
	l := newTestLedger(t, nil, start, func(c *Config) { c.JobsMove = true })
	pass(t, l, some("a", 7, 0, 9), start)
	pass(t, l, some("a", 9, 50, 59), start)
	require.NoError(t, l.Tick(start.Add(limits.Wait)))
	require.NoError(t, l.Tick(start.Add(2*limits.Wait)))
	assert.Equal(t, Totals{Arrived: 20, Elsewhere: 40}, l.Totals())
	assert.Empty(t, l.Losses())
}

func TestLedger_FirstRequestsOvertakeEachOther_NothingIsMissing(t *testing.T) {
	l := newTestLedger(t, nil, start, nil)
	pass(t, l, some("a", 7, 5, 9), start)
	pass(t, l, some("a", 7, 0, 4), start)
	v, err := l.Begin(of(7))
	require.NoError(t, err)
	assert.Empty(t, v.Incomplete())
}

func TestLedger_NoAgentNumbers_StepsCostNothing(t *testing.T) {
	store := newMemory()
	l := newTestLedger(t, store, start, nil)
	v, err := l.Begin(of(7))
	require.NoError(t, err)
	assert.Equal(t, Verdict{}, v)
	require.NoError(t, l.End([]Step{of(7)}))
	assert.Empty(t, store.values)
}

func TestLedger_Limits_AreKeptAndCounted(t *testing.T) {
	t.Run("streams", func(t *testing.T) {
		store := newMemory()
		l := newTestLedger(t, store, start, func(c *Config) { c.MaxStreams = 2 })
		for i := range 5 {
			pass(t, l, some(fmt.Sprint(i), 7, 0, 9), start)
		}
		assert.Equal(t, 2, l.Streams())
		assert.EqualValues(t, 30, l.Totals().Forgotten)
		assert.EqualValues(t, 20, l.Open())
		assert.Len(t, store.values, 4, "two streams, their list and the state")
	})
	t.Run("open steps", func(t *testing.T) {
		l := newTestLedger(t, nil, start, func(c *Config) { c.MaxOpen = 3 })
		for step := range int64(5) {
			pass(t, l, some("a", step, step*10, step*10+9), start)
		}
		assert.EqualValues(t, 20, l.Totals().Forgotten)
		assert.EqualValues(t, 30, l.Open())
	})
	t.Run("ranges", func(t *testing.T) {
		l := newTestLedger(t, nil, start, func(c *Config) { c.MaxRanges = 4 })
		for i := range int64(10) {
			pass(t, l, some("a", 7, 2*i, 2*i), start)
		}
		_, s, _ := l.streams.Oldest()
		assert.LessOrEqual(t, len(s.seen), 4)
		assert.EqualValues(t, 10, l.Totals().Arrived)
		assert.EqualValues(t, 6, l.Totals().Gap)
	})
	t.Run("ranges of open steps", func(t *testing.T) {
		l := newTestLedger(t, nil, start, func(c *Config) { c.MaxRanges = 4 })
		for i := range int64(100) { // of two steps in turn
			pass(t, l, some("a", 7, 2*i, 2*i), start)
			pass(t, l, some("a", 8, 2*i+1, 2*i+1), start)
		}
		_, s, _ := l.streams.Oldest()
		assert.Equal(t, openRanges*4, s.openRanges())
		assert.EqualValues(t, openRanges*4, l.Open())
		assert.Equal(t, Totals{Arrived: 200, Forgotten: 200 - openRanges*4}, l.Totals())
	})
	t.Run("bytes", func(t *testing.T) {
		store := newMemory()
		const limit = 8 << 10
		l := newTestLedger(t, store, start, func(c *Config) { c.MaxBytes = limit })
		for i := range int64(1000) {
			step := Step{strings.Repeat("j", 100), strings.Repeat("i", int(i%200)), i}
			pass(t, l, []Arrival{{Source: fmt.Sprint("s", i%50), Steps: map[Step]Ranges{step: {{2 * i, 2 * i}}}}}, start)
			if i%2 == 0 {
				conclude(t, l, step)
			}
			require.LessOrEqual(t, l.streams.Bytes(), limit)
			require.LessOrEqual(t, l.jobs.Bytes(), limit)
		}
		got := l.Totals()
		assert.Equal(t, got.Arrived, got.Concluded+got.Forgotten+l.Open())
		assert.Positive(t, got.Forgotten)
		assert.Len(t, store.values, 2+l.streams.Len()+l.jobs.Len(), "what leaves is deleted")
	})
	t.Run("bytes that no stream has", func(t *testing.T) {
		store := newMemory()
		l := newTestLedger(t, store, start, func(c *Config) { c.MaxBytes = 100 })
		pass(t, l, some("a", 7, 0, 9), start)
		assert.Equal(t, Verdict{}, conclude(t, l, of(7)))
		require.NoError(t, l.Tick(start.Add(limits.Wait)))
		assert.Equal(t, Totals{Arrived: 10, Forgotten: 10}, l.Totals())
		assert.Empty(t, l.steps)
		assert.Len(t, store.values, 2, "the list of streams and the state")
	})
	t.Run("open steps of before", func(t *testing.T) {
		store := newMemory()
		l := newTestLedger(t, store, start, nil)
		for step := range int64(10) {
			pass(t, l, some("a", step, step*10, step*10+9), start)
		}
		for range 2 { // what has left is counted once
			l = newTestLedger(t, store, start, func(c *Config) { c.MaxOpen = 3 })
			assert.EqualValues(t, 30, l.Open())
			assert.Equal(t, Totals{Arrived: 100, Forgotten: 70}, l.Totals())
			require.NoError(t, l.Tick(start))
		}
		require.NoError(t, l.Tick(start.Add(limits.Wait)))
		assert.Equal(t, Totals{Arrived: 100, Lost: 30, Forgotten: 70}, l.Totals())
	})
	t.Run("losses that nothing asks for", func(t *testing.T) {
		l := newTestLedger(t, nil, start, func(c *Config) { c.MaxJobs = 2 })
		for i := range 5 {
			source := fmt.Sprint(i)
			for _, r := range []Range{{0, 9}, {20, 29}} {
				pass(t, l, []Arrival{{Source: source, Steps: map[Step]Ranges{{source, "inc", 7}: {r}}}}, start)
			}
		}
		ticks(t, l, start, 2)
		assert.EqualValues(t, 50, l.Totals().Gap)
		assert.Len(t, l.Losses(), 2)
	})
	t.Run("changes that are not stored", func(t *testing.T) {
		store := newMemory()
		l := newTestLedger(t, store, start, func(c *Config) { c.MaxStreams, c.MaxJobs = 2, 2 })
		bring := func(i int) {
			step := Step{fmt.Sprint("job", i), "inc", 7}
			all := []Arrival{{Source: fmt.Sprint(i), Steps: map[Step]Ranges{step: {{0, 9}}}}}
			l.Expect(all)
			_, _ = l.Begin(step)
			_ = l.End([]Step{step})
			_ = l.Arrive(all, start)
		}
		bring(0)
		bring(1)
		store.fails = true
		for i := range 100 {
			bring(i)
		}
		assert.LessOrEqual(t, len(l.dirty), 4, "those that are stored, and those that are known")
		assert.LessOrEqual(t, len(l.changed), 4)
		store.fails = false
		require.NoError(t, l.Tick(start))
		assert.Len(t, store.values, 6, "two streams, two jobs, their list and the state")
	})
	t.Run("concluded steps", func(t *testing.T) {
		l := newTestLedger(t, nil, start, func(c *Config) { c.MaxRanges = 2 })
		pass(t, l, some("a", 0, 0, 0), start)
		for step := range int64(4) {
			_, err := l.Begin(of(2 * step))
			require.NoError(t, err)
			require.NoError(t, l.End([]Step{of(2 * step)}))
		}
		_, j, _ := l.jobs.Oldest()
		assert.Equal(t, Ranges{{4, 4}, {6, 6}}, j.done)
	})
	t.Run("time", func(t *testing.T) {
		store := newMemory()
		l := newTestLedger(t, store, start, nil)
		pass(t, l, some("a", 7, 0, 9), start)
		_, err := l.Begin(of(7)) // the analysis panics: no End follows
		require.NoError(t, err)
		require.NoError(t, l.Tick(start.Add(limits.StepLimit)))
		assert.Len(t, l.underway, 1)
		require.NoError(t, l.Tick(start.Add(limits.StepLimit+time.Second)))
		assert.Empty(t, l.underway)
		assert.Equal(t, Totals{Arrived: 10, Forgotten: 10}, l.Totals())
		require.NoError(t, l.Tick(start.Add(limits.StreamLimit+time.Second)))
		assert.Zero(t, l.Streams())
		assert.Len(t, store.values, 2, "the list of streams and the state")
	})
}

func TestLedger_StoreFails_IsStoredWithTheNextChange(t *testing.T) {
	store := newMemory()
	l := newTestLedger(t, store, start, nil)
	store.fails = true
	require.ErrorContains(t, l.Arrive(some("a", 7, 0, 9), start), "store which spans arrived: no space")
	store.fails = false
	require.NoError(t, l.Tick(start))
	l = newTestLedger(t, store, start, nil)
	assert.EqualValues(t, 10, l.Totals().Arrived)
	assert.EqualValues(t, 10, l.Open())
}

func TestNewLedger_DamagedValue_IsNamedAndLeftOut(t *testing.T) {
	for key, cases := range map[string]map[string]string{
		"state": {
			"{": "got a damaged value", `{"v":2}`: "got version 2; want 1",
			`{"v":1,"underway":[{"step":9000000000000000000}]}`: "steps that were underway: got step 9000000000000000000",
		},
		"job/3/job/inc": {`{"v":1,"done":[[5,1]]}`: "steps: got the range 5 to 1"},
		"list":          {`{"v":1,"streams":7}`: "got a damaged value"},
		"stream/a": {
			`{"v":1,"seen":[[-4,1]]}`:                                 "numbers: got the range -4 to 1",
			`{"v":1,"seen":[[1]]}`:                                    "got a damaged value",
			`{"v":1,"seen":[],"open":[{"step":3,"numbers":[[2,1]]}]}`: "numbers of step 3: got the range 2 to 1",
		},
	} {
		for value, want := range cases {
			store := newMemory()
			l := newTestLedger(t, store, start, nil)
			pass(t, l, some("a", 7, 0, 9), start)
			conclude(t, l, of(6))
			require.Contains(t, store.values, key)
			store.values[key] = []byte(value)
			l, err := NewLedger(limits, store, start)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, `read "`+key+`"`)
			assert.Equal(t, Totals{}, l.Totals())
			if key != "list" { // which says what there is
				require.NoError(t, l.Tick(start))
				assert.Len(t, store.values, 2, "what cannot be used is deleted")
			}
			pass(t, l, some("a", 7, 0, 9), start)
			assert.EqualValues(t, 10, newTestLedger(t, store, start, nil).Totals().Arrived)
		}
	}
}

// What is stored, read and stored again is the same.
func FuzzLedger_Load(f *testing.F) {
	store := newMemory()
	l, err := NewLedger(limits, store, start)
	require.NoError(f, err)
	require.NoError(f, l.Arrive(some("a", 7, 0, 9), start))
	_, err = l.Begin(of(6))
	require.NoError(f, err)
	f.Add(string(store.values[stateKey]), `{"v":1,"used":1700000000,"done":[[0,4]]}`, string(store.values[streamKey+"a"]))
	f.Add(`{"v":1,"losses":[{"job":"j","incarnation":"i","step":3,"last":4,"spans":5,"reason":"restart"}]}`,
		`{"v":1,"used":1700000000,"done":[[0,4],[6,9]],"unsure":[[7,7]],"lost":{"5":3}}`,
		`{"v":1,"seen":[[0,3],[5,9]],"open":[{"job":"j","incarnation":"i","step":5,"numbers":[[5,6]]}]}`)
	f.Fuzz(func(t *testing.T, state, job, stream string) {
		kept := &memory{values: map[string][]byte{
			stateKey: []byte(state), listKey: []byte(`{"v":1,"streams":["a","a"],"jobs":[{"job":"j","incarnation":"i"}]}`),
			jobKey{"j", "i"}.key(): []byte(job), streamKey + "a": []byte(stream),
		}}
		l, err := NewLedger(limits, kept, start)
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "read "), err.Error())
		}
		require.NoError(t, l.Arrive(some("a", 7, 20, 29), start))
		require.NoError(t, l.Tick(start.Add(3*limits.Wait)))
		open := l.Open()
		again, err := NewLedger(limits, kept, start)
		require.NoError(t, err)
		require.Equal(t, open, again.Open())
		require.Equal(t, l.Totals(), again.Totals())
		require.Equal(t, l.Streams(), again.Streams())
	})
}

func BenchmarkLedger_Arrive(b *testing.B) {
	store := newMemory()
	l, err := NewLedger(Config{
		Wait: time.Minute, StepLimit: time.Hour, StreamLimit: time.Hour, MaxStreams: 1 << 14, MaxJobs: 1 << 10, MaxOpen: 1 << 17, MaxRanges: 1 << 10,
	}, store, start)
	require.NoError(b, err)
	const agents = 2048
	for b.Loop() {
		n := l.Totals().Arrived
		source, step := fmt.Sprint(n/1000%agents), n/1000/agents
		all := some(source, step, step*1000, step*1000+999)
		l.Expect(all)
		require.NoError(b, l.Arrive(all, start))
		if n/1000%agents == agents-1 {
			_, err := l.Begin(of(step))
			require.NoError(b, err)
			require.NoError(b, l.End([]Step{of(step)}))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(l.Totals().Arrived), "ns/span")
	var sum int
	for _, v := range store.values {
		sum += len(v)
	}
	b.ReportMetric(float64(sum)/float64(max(1, l.Streams())), "B/stream")
	require.True(b, json.Valid(store.values[stateKey]))
}
