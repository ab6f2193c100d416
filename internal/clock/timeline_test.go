// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// meetings builds n collectives over the given true offsets: every member
// enters up to spread before the last, all leave together but for skew, and each
// clock stamps the truth minus its offset.
func meetings(n int, name string, offsets []time.Duration, spread, skew time.Duration, seed uint64) []Meeting {
	rng := rand.New(rand.NewPCG(seed, 1))
	var out []Meeting
	at := int64(1_700_000_000_000_000_000)
	for range n {
		m := Meeting{Name: name, Synchronising: true, EndsCoincide: true, Root: -1}
		end := at + int64(spread) + int64(100*time.Microsecond)
		for c, off := range offsets {
			m.Arrivals = append(m.Arrivals, Arrival{
				Clock: fmt.Sprintf("clock%d", c),
				Enter: at + rng.Int64N(int64(spread)) - int64(off),
				Exit:  end + rng.Int64N(int64(skew)+1) - int64(off),
			})
		}
		out = append(out, m)
		at += int64(10 * time.Millisecond)
	}
	return out
}

func TestSolveRecoversOffsets(t *testing.T) {
	truth := []time.Duration{0, 7 * time.Millisecond, -9 * time.Millisecond, 3 * time.Microsecond}
	tl := Solve(meetings(20, "all_reduce", truth, time.Millisecond, 5*time.Microsecond, 1), nil, Options{})
	for c, want := range truth {
		o, ok := tl.Offset(fmt.Sprintf("clock%d", c))
		require.True(t, ok)
		assert.InDelta(t, want, o.Estimate, float64(5*time.Microsecond), "clock %d", c)
		assert.Equal(t, "clock0", o.Reference)
		assert.True(t, o.Bounded)
		assert.LessOrEqual(t, o.Lower, want, "the truth is inside the hard interval")
		assert.GreaterOrEqual(t, o.Upper, want, "the truth is inside the hard interval")
	}
	small, _ := tl.Offset("clock3")
	assert.Zero(t, small.Value, "3 µs do not stand out of a spread of 5 µs")
	large, _ := tl.Offset("clock1")
	assert.Equal(t, large.Estimate, large.Value)
}

func TestSolveLeavesNoisyClocksAlone(t *testing.T) {
	truth := make([]time.Duration, 8)
	for seed := range uint64(50) {
		tl := Solve(meetings(24, "all_reduce", truth, 20*time.Millisecond, 20*time.Millisecond, seed), nil, Options{})
		for c := range truth {
			o, _ := tl.Offset(fmt.Sprintf("clock%d", c))
			assert.Zero(t, o.Value, "seed %d clock %d: estimate %v, sigma %v", seed, c, o.Estimate, o.Sigma)
		}
	}
}

func TestSolveReachesAcrossGroups(t *testing.T) {
	// Clocks meet only their neighbours: 0-1, 1-2, 2-3.
	truth := []time.Duration{0, 5 * time.Millisecond, -5 * time.Millisecond, 8 * time.Millisecond}
	var all []Meeting
	for a := range 3 {
		for _, m := range meetings(5, "all_reduce", truth, time.Millisecond, 2*time.Microsecond, uint64(a)) {
			m.Arrivals = m.Arrivals[a : a+2]
			all = append(all, m)
		}
	}
	tl := Solve(all, nil, Options{})
	for c, want := range truth {
		o, _ := tl.Offset(fmt.Sprintf("clock%d", c))
		assert.InDelta(t, want, o.Estimate, float64(10*time.Microsecond), "clock %d", c)
	}
}

func TestSeparateComponentsAreNotComparable(t *testing.T) {
	a := meetings(3, "all_reduce", make([]time.Duration, 2), time.Millisecond, 0, 1)
	b := meetings(3, "all_reduce", make([]time.Duration, 2), time.Millisecond, 0, 2)
	for i := range b {
		for k := range b[i].Arrivals {
			b[i].Arrivals[k].Clock = "other" + b[i].Arrivals[k].Clock
		}
	}
	tl := Solve(append(a, b...), nil, Options{})
	assert.True(t, tl.Comparable("clock0", "clock1"))
	assert.False(t, tl.Comparable("clock0", "otherclock0"))
	assert.True(t, tl.Comparable("unknown", "unknown"))
	o, _ := tl.Offset("otherclock1")
	assert.Equal(t, "otherclock0", o.Reference)
}

func TestOffReportsEstimatesAndAppliesNothing(t *testing.T) {
	truth := []time.Duration{0, 7 * time.Millisecond}
	tl := Solve(meetings(5, "all_reduce", truth, time.Millisecond, 0, 1), nil, Options{Off: true})
	o, _ := tl.Offset("clock1")
	assert.Zero(t, o.Value)
	assert.InDelta(t, truth[1], o.Estimate, 1e3)
}

// stamps of one meeting, in µs.
func meet(name string, root int, sync bool, enterExit ...[2]int64) Meeting {
	m := Meeting{Name: name, Root: root, Synchronising: sync, EndsCoincide: sync}
	for c, e := range enterExit {
		m.Arrivals = append(m.Arrivals, Arrival{Clock: fmt.Sprintf("clock%d", c), Enter: e[0] * 1e3, Exit: e[1] * 1e3})
	}
	return m
}

func TestHardIntervals(t *testing.T) {
	us := time.Microsecond
	for name, tc := range map[string]struct {
		meetings     []Meeting
		messages     []Message
		lower, upper time.Duration
		ok           bool
	}{
		// 0 enters 0, leaves 100; 1 enters 40, leaves 110. Both ways:
		// theta1-theta0 <= 100-40 = 60, and theta0-theta1 <= 110-0 = 110.
		"all_reduce bounds both ways": {
			meetings: []Meeting{meet("all_reduce", -1, true, [2]int64{0, 100}, [2]int64{40, 110})},
			lower:    -112 * us, upper: 62 * us, ok: true,
		},
		// Only the leaf waits: the root's exit says nothing.
		"broadcast bounds one way only": {
			meetings: []Meeting{meet("broadcast", 0, false, [2]int64{0, 100}, [2]int64{40, 110})},
		},
		"all_to_all is no constraint": {
			meetings: []Meeting{meet("all_to_all", -1, false, [2]int64{0, 100}, [2]int64{40, 110})},
		},
		// A message each way: 0 sends at 10, 1 has it at 60; 1 sends at 70, 0 has it at 100.
		// theta0-theta1 <= 50, theta1-theta0 <= 30.
		"messages both ways": {
			messages: []Message{
				{SendClock: "clock0", SendStart: 10e3, RecvClock: "clock1", RecvEnd: 60e3},
				{SendClock: "clock1", SendStart: 70e3, RecvClock: "clock0", RecvEnd: 100e3},
			},
			lower: -52 * us, upper: 32 * us, ok: true,
		},
		"the tightest of several counts": {
			meetings: []Meeting{
				meet("barrier", -1, true, [2]int64{0, 100}, [2]int64{40, 110}),
				meet("barrier", -1, true, [2]int64{200, 250}, [2]int64{230, 260}),
			},
			lower: -62 * us, upper: 22 * us, ok: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tl := Solve(tc.meetings, tc.messages, Options{Clocks: []string{"clock0", "clock1"}})
			lower, upper, ok := tl.Interval("clock0", "clock1")
			assert.Equal(t, tc.ok, ok)
			assert.Equal(t, tc.lower, lower)
			assert.Equal(t, tc.upper, upper)
		})
	}
}

func TestEstimateIsKeptInsideTheHardInterval(t *testing.T) {
	o := Offset{Estimate: 90 * time.Microsecond, Sigma: time.Microsecond, Bounded: true, Lower: -10 * time.Microsecond, Upper: 40 * time.Microsecond}
	assert.Equal(t, 40*time.Microsecond, o.applied())
	o.Bounded = false
	assert.Equal(t, 90*time.Microsecond, o.applied())
}

func TestBroadcastsDoNotEstimate(t *testing.T) {
	// The root leaves 3 ms before its leaves, every time; the clocks are equal.
	var ms []Meeting
	for k := range int64(10) {
		ms = append(ms, meet("broadcast", 0, false, [2]int64{k * 1e4, k*1e4 + 100}, [2]int64{k * 1e4, k*1e4 + 3100}))
	}
	o, _ := Solve(ms, nil, Options{}).Offset("clock1")
	assert.Zero(t, o.Estimate)
	assert.Zero(t, o.Meetings)
	assert.Equal(t, "clock1", o.Reference, "nothing relates it to another clock")
}

func TestSteppedClockIsAConflict(t *testing.T) {
	truth := []time.Duration{0, 0, 0}
	ms := meetings(10, "all_reduce", truth, time.Millisecond, 0, 1)
	truth[1] = 8 * time.Millisecond
	for _, m := range meetings(10, "all_reduce", truth, time.Millisecond, 0, 2) {
		for i := range m.Arrivals {
			m.Arrivals[i].Enter += int64(time.Second)
			m.Arrivals[i].Exit += int64(time.Second)
		}
		ms = append(ms, m)
	}
	tl := Solve(ms, nil, Options{})
	stepped, _ := tl.Offset("clock1")
	assert.True(t, stepped.Conflict)
	assert.False(t, stepped.Bounded)
	before, _ := Solve(ms[:10], nil, Options{}).Offset("clock1")
	assert.False(t, before.Conflict)
}

func TestConflictsAreSeenAwayFromTheReference(t *testing.T) {
	// clock2 and clock3 meet each other only; clock3 is stepped by 8 ms.
	var ms []Meeting
	for k := range int64(2) {
		m := meet("barrier", -1, true, [2]int64{0, 100}, [2]int64{0, 100}, [2]int64{k * 1e6, k*1e6 + 100}, [2]int64{k*1e6 + k*8000, k*1e6 + k*8000 + 100})
		m.Arrivals = m.Arrivals[2:]
		ms = append(ms, m)
	}
	ms = append(ms, meet("barrier", -1, true, [2]int64{0, 100}, [2]int64{0, 100}, [2]int64{0, 100}))
	tl := Solve(ms, nil, Options{})
	o, _ := tl.Offset("clock3")
	assert.True(t, o.Conflict)
	o, _ = tl.Offset("clock1")
	assert.False(t, o.Conflict)
}

func TestSigmaGrowsAlongTheChain(t *testing.T) {
	truth := make([]time.Duration, 5)
	var all []Meeting
	for a := range 4 {
		for _, m := range meetings(10, "all_reduce", truth, time.Millisecond, 0, uint64(a)) {
			m.Arrivals = m.Arrivals[a : a+2]
			all = append(all, m)
		}
	}
	tl := Solve(all, nil, Options{})
	near, _ := tl.Offset("clock1")
	far, _ := tl.Offset("clock4")
	// Four meetings away instead of one, with half as many of its own.
	assert.Greater(t, far.Sigma, 2*near.Sigma)
}

func TestSolveWithoutEvidence(t *testing.T) {
	tl := Solve(nil, nil, Options{Clocks: []string{"a"}})
	o, ok := tl.Offset("a")
	assert.True(t, ok)
	assert.Zero(t, o.Value)
	assert.Equal(t, "a", o.Reference)
	_, ok = tl.Offset("b")
	assert.False(t, ok)
}

func BenchmarkSolve(b *testing.B) {
	for _, ranks := range []int{8, 512} {
		ms := meetings(64, "all_reduce", make([]time.Duration, ranks), time.Millisecond, 5*time.Microsecond, 1)
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Solve(ms, nil, Options{})
			}
		})
	}
}

func TestAnExitThatWasNotMeasuredSaysNothing(t *testing.T) {
	truth := []time.Duration{0, 0, 0}
	for _, off := range []time.Duration{-20 * time.Millisecond, 20 * time.Millisecond} {
		all := meetings(20, "all_reduce", truth, time.Millisecond, 5*time.Microsecond, 1)
		for i := range all[:15] {
			a := &all[i].Arrivals[2]
			a.Exit, a.ExitUnknown = a.Exit+int64(off), true
		}
		o, ok := Solve(all, nil, Options{}).Offset("clock2")
		require.True(t, ok)
		assert.Zero(t, o.Value)
		assert.Equal(t, 5, o.Meetings)
		assert.False(t, o.Conflict)
		assert.True(t, o.Bounded)

		o, _ = Solve(all[:15], nil, Options{}).Offset("clock2")
		assert.Equal(t, "clock2", o.Reference, "what others' exits say relates it to none")
	}
}
