// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// pausingAt holds a rank's host up in these steps.
func pausingAt(rank int, s float64, steps ...int) func(int, []testRow) {
	return func(step int, rows []testRow) {
		if slices.Contains(steps, step) {
			rows[rank].idle["garbage_collection"] += s
			rows[rank].longest["garbage_collection"] = s
		}
	}
}

// Of eight ranks one has all of four pauses by chance once in 512 times, before looks are
// counted: that they come by the clock, too, is no chance.
func TestFewPausesOfOneRank(t *testing.T) {
	for _, c := range []struct {
		name  string
		ranks int
		steps []int
		want  []what
	}{
		{"four, evenly", 8, []int{0, 16, 32, 48}, []what{{model.ClassHost, 3}}},
		{"four, nearly evenly", 8, []int{1, 16, 32, 47}, []what{{model.ClassHost, 3}}},
		{"four", 8, []int{0, 9, 31, 48}, nil},
		{"three, evenly", 8, []int{0, 16, 32}, nil},
		{"three of many ranks, evenly", 64, []int{0, 16, 32}, []what{{model.ClassHost, 3}}},
		{"five", 8, []int{0, 9, 22, 31, 48}, nil},
		{"six", 8, []int{0, 9, 22, 31, 48, 50}, []what{{model.ClassHost, 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := newTestJob(c.ranks, 1).with(pausingAt(3, 0.5, c.steps...))
			judge := New(Config{MaxFalseAlarm: 0.01}, job.place) // the engine's
			for step := range job.steps {
				judge.Add(job.step(step))
			}
			expect(t, judge.Judge(), c.want...)
		})
	}
}

// Where all ranks pause by the clock, the one that does so most often by chance is not
// named for its even intervals.
func TestEvenPausesOfAll(t *testing.T) {
	job := newTestJob(8, 1).with(pausingAt(3, 0.2, 0, 13, 26, 39, 52))
	for r := range 3 {
		job.with(pausingAt(r, 0.2, 5+r, 35+r))
	}
	expect(t, job.judged(), what{model.ClassJitter, -1})
}

// Where operations are lost, idleness of which no launch says whose it is may be one of them.
func TestIdlenessThatMayBeLostOperations(t *testing.T) {
	told := func(lost float64, hollow bool) *testJob {
		job := newTestJob(8, 1).with(func(_ int, rows []testRow) {
			for r := range rows {
				rows[r].lost, rows[r].hollow = lost, hollow
			}
		})
		for r := range 8 {
			job.with(pausingAt(r, 0.2, 3+r, 19+2*r, 40+r))
		}
		return job
	}
	expect(t, told(0.1, true).judged())
	expect(t, told(0.1, false).judged(), what{model.ClassJitter, -1})
	expect(t, told(0, true).judged(), what{model.ClassJitter, -1})
	one := told(0.1, true)
	expect(t, one.with(pausingAt(3, 0.5, 0, 9, 22, 31, 48, 50)).judged())
	slow := told(0.1, true)
	expect(t, slow.with(slowRank(3, 1.3)).judged(), what{model.ClassCompute, 3})
}

// Long pauses of one rank do not drown among short ones of all.
func TestLongPausesAmongShortOnes(t *testing.T) {
	short := func() *testJob {
		return newTestJob(8, 1).with(func(step int, rows []testRow) {
			for r := range rows {
				pausingRank(r, 13, 0.03)(step, rows)
			}
		})
	}
	got := short().with(func(step int, rows []testRow) {
		if step%16 == 0 {
			rows[3].idle["data_loading"] += 0.5
		}
	}).judged()
	expect(t, got, what{model.ClassHost, 3}, what{model.ClassJitter, -1})
	if a, b := got.Conclusions[0].Op, got.Conclusions[1].Op; a != "data_loading" || b != "garbage_collection" {
		t.Errorf("got long pauses in %q and short ones in %q, want data_loading and garbage_collection", a, b)
	}
	job := short()
	for r := range 4 {
		job.with(pausingAt(r, 0.5, 16*r))
	}
	expect(t, job.judged(), what{model.ClassJitter, -1})
}

func TestConfidenceGrowsWithPauses(t *testing.T) {
	last := 0.0
	for _, every := range []int{16, 10, 6, 3} {
		got := newTestJob(8, 1).with(pausingRank(3, every, 0.5)).judged()
		expect(t, got, what{model.ClassHost, 3})
		if x := got.Conclusions[0].Confidence; x <= last {
			t.Errorf("every %d steps: got confidence %g, want more than %g", every, x, last)
		} else {
			last = x
		}
	}
}

// A pause stands for the steps until the next is due, and only for so much of it as no
// other rank paused, too.
func TestWhatPausesStandFor(t *testing.T) {
	got := newTestJob(8, 1).with(pausingAt(3, 0.5, 10, 14, 18, 22, 26, 30, 34)).with(pausingAt(5, 0.2, 22)).judged()
	expect(t, got, what{model.ClassHost, 3})
	c := got.Conclusions[0]
	if c.First != 10 || c.Last != 37 {
		t.Errorf("got steps %d to %d, want 10 to 37", c.First, c.Last)
	}
	if alone, beside := c.Held[18], c.Held[22]; len(c.Held) != 7 || math.Abs(alone-0.5) > 0.02 || math.Abs(beside-0.3) > 0.02 {
		t.Errorf("got %v, want 0.5 s in seven steps, but 0.3 in step 22", c.Held)
	}
}

// The past of two hosts tells which of them was held up.
func TestPausesOfOneOfTwo(t *testing.T) {
	for rank := range 8 {
		expect(t, pipelined(2, 4, 1, 1).with(pausingRank(rank, 5, 0.1)).judged(), what{model.ClassHost, int64(rank)})
	}
	// One that is idle less now and then holds nobody up, and neither does the other.
	expect(t, pipelined(2, 4, 1, 1).with(func(step int, rows []testRow) {
		for r := range rows {
			if r != 2 || step%5 != 0 {
				rows[r].idle["forward"] += 0.1
			}
		}
	}).judged())
	// Of their devices it tells nothing.
	expect(t, pipelined(2, 4, 1, 1).with(func(step int, rows []testRow) {
		if step%5 == 0 {
			rows[2].slow *= 2
		}
	}).judged())
}

// Evenness is what share of all ways to lay the events between has intervals that differ by
// no more than one frame.
func TestEvenly(t *testing.T) {
	for span := 2; span <= 14; span++ {
		for k := 3; k <= min(6, span+1); k++ {
			even, all := 0, 0
			var found []int
			within(span, k-2, func(middle []int) {
				events := append(append([]int{0}, middle...), span)
				least, most := span, 0
				for i := range k - 1 {
					gap := events[i+1] - events[i]
					least, most = min(least, gap), max(most, gap)
				}
				if all++; most-least <= 1 {
					even, found = even+1, events
				} else if got := evenly(events); got != 1 {
					t.Errorf("%v: got %g, want 1", events, got)
				}
			})
			if got, want := evenly(found), float64(even)/float64(all); math.Abs(got-want) > 1e-12 {
				t.Errorf("%v: got %g, want %g", found, got, want)
			}
		}
	}
	if got := evenly([]int{3, 9}); got != 1 {
		t.Errorf("got %g of two events, want 1", got)
	}
}

// within calls f with all ways to choose n frames between 0 and span.
func within(span, n int, f func([]int)) {
	var choose func(from int, chosen []int)
	choose = func(from int, chosen []int) {
		if len(chosen) == n {
			f(slices.Clone(chosen))
			return
		}
		for i := from; i < span; i++ {
			choose(i+1, append(chosen, i))
		}
	}
	choose(1, nil)
}

// One of eight ranks has all of four pauses by chance once in 8^3 times, whichever it is, and
// they come by the clock in one of choose(47, 2) ways. Both were asked, which are two questions,
// of as many sizes of pauses as there are.
func TestTheChanceOfFewPauses(t *testing.T) {
	tr := &trial{cfg: &Config{MaxFalseAlarm: 0.01}, looks: 1}
	held := func(questions int, events ...int) float64 {
		all := make([]pausing, 8)
		for i := range all {
			all[i].s = &standing{steps: 64}
		}
		all[0].events = events
		_, chances := tr.heldUp(all, questions)
		return chances[0]
	}
	lone := 1.0 / 512
	for _, questions := range []int{1, 3} {
		q := float64(questions)
		if got, want := held(questions, 0, 16, 32, 48), q*2*lone/1081; math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%d questions: got %g by the clock, want %g", questions, got, want)
		}
		if got, want := held(questions, 0, 9, 31, 48), q*lone; math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%d questions: got %g, want %g", questions, got, want)
		}
	}
}

// Pauses that cost less than half of what a rank in excess costs are not worth telling.
func TestPausesThatHardlyMatter(t *testing.T) {
	for s, want := range map[float64][]what{0.01: nil, 0.04: {{model.ClassHost, 3}}} {
		expect(t, newTestJob(8, 1).with(pausingAt(3, s, 2, 12, 22, 32, 42, 52)).judged(), want...)
	}
}
