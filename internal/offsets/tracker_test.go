// SPDX-License-Identifier: Apache-2.0

package offsets

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	config = Config{Steps: 3, Time: 10 * time.Second, Idle: time.Minute, MaxSteps: 100, MaxJobs: 4, MaxAll: 1000}
	start  = time.Unix(1_700_000_000, 0)
	train  = Job{"train", "a"}
)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func stepsOf(j Job, steps ...int64) (out []Step) {
	for _, s := range steps {
		out = append(out, Step{j, s})
	}
	return out
}

func TestFloor_NothingHeld_IsTheNextRecord(t *testing.T) {
	tr := New(config, 7, Marks{})
	assert.EqualValues(t, 7, tr.Floor(at(0)))
	tr.Add(9, nil, false, at(0))
	assert.EqualValues(t, 10, tr.Floor(at(0)))
	assert.EqualValues(t, 10, tr.Next())
}

// The last three steps are needed whatever their age, and older ones until ten seconds after their last record.
func TestFloor_StepsAndTime_BothHold(t *testing.T) {
	tr := New(config, 0, Marks{})
	for s := range int64(6) {
		tr.Add(10*s, stepsOf(train, s), false, at(int(s)))
	}
	assert.EqualValues(t, 0, tr.Floor(at(9)), "step 0 came 9 s ago")
	assert.EqualValues(t, 10, tr.Floor(at(10)), "step 0 came 10 s ago")
	assert.EqualValues(t, 30, tr.Floor(at(40)), "steps 3, 4 and 5 are the window")
	tr.Add(60, stepsOf(train, 3), false, at(41)) // late
	tr.Add(70, stepsOf(train, 6), false, at(42))
	assert.EqualValues(t, 30, tr.Floor(at(50)), "a late record of step 3 keeps it")
	assert.EqualValues(t, 40, tr.Floor(at(51)))
	assert.EqualValues(t, 71, tr.Floor(at(42+60)), "an idle job holds nothing")
	assert.Equal(t, []string{"train"}, tr.Jobs(), "an analysis may still know it")
}

func TestFloor_SeveralJobs_IsThatOfTheSlowest(t *testing.T) {
	tr := New(config, 0, Marks{})
	other := Job{"train", "b"}
	tr.Add(0, stepsOf(other, 5), false, at(0))
	for s := range int64(20) {
		tr.Add(1+s, stepsOf(train, s), false, at(int(s)))
	}
	assert.EqualValues(t, 0, tr.Floor(at(30)))
	tr.Saw("hung")
	assert.Equal(t, []string{"hung", "train"}, tr.Jobs())
	assert.EqualValues(t, 18, tr.Floor(at(60)), "steps 17, 18 and 19")
}

// One absurd step number counts as one step: it neither releases the window nor keeps it.
func TestFloor_AbsurdStep_CountsAsOne(t *testing.T) {
	tr := New(config, 0, Marks{})
	for s, step := range []int64{1, 2, 1 << 62, 3, -1 << 62, 4} {
		tr.Add(int64(s), stepsOf(train, step), false, at(s))
	}
	assert.EqualValues(t, 3, tr.Floor(at(50)))
}

func TestFloor_RecordsWithoutSteps_AreHeldByTime(t *testing.T) {
	tr := New(config, 0, Marks{})
	for s := range 30 {
		tr.Add(int64(s), nil, true, at(s))
	}
	assert.EqualValues(t, 20, tr.Floor(at(29)))
	assert.EqualValues(t, 30, tr.Floor(at(39)))
}

func TestTracker_Limits_AreKeptAndCounted(t *testing.T) {
	tr := New(config, 0, Marks{})
	for s := range int64(1000) {
		tr.Add(s, stepsOf(train, s), false, at(0))
	}
	assert.Len(t, tr.jobs[train].steps, config.MaxSteps)
	assert.EqualValues(t, 900, tr.Dropped())
	for i := range 10 {
		tr.Add(int64(1000+i), stepsOf(Job{fmt.Sprint(i), ""}, 1), false, at(i))
	}
	assert.Len(t, tr.jobs, config.MaxJobs)
}

// Whatever comes, the floor is the first record of the oldest step that is needed, and it never falls.
func TestFloor_RandomLogs_IsTheOldestNeededStep(t *testing.T) {
	for seed := range uint64(tier.N(t, 50, 1000)) {
		random := rand.New(rand.NewPCG(seed, 0))
		tr := New(config, 0, Marks{})
		type seen struct {
			first int64
			last  int
		}
		steps, released, order, now, former := map[int64]*seen{}, map[int64]bool{}, []int64{}, 0, int64(0)
		for offset := range int64(300) {
			now += random.IntN(3)
			s := max(0, offset/10-int64(random.IntN(4)))
			tr.Add(offset, stepsOf(train, s), false, at(now))
			if steps[s] == nil && !released[s] {
				steps[s] = &seen{first: offset}
				order = append(order, s)
			}
			if !released[s] {
				steps[s].last = now
			}
			floor := tr.Floor(at(now))
			require.GreaterOrEqual(t, floor, former)
			former = floor
			for len(order) > config.Steps && now-steps[order[0]].last >= 10 {
				delete(steps, order[0])
				released[order[0]] = true
				order = order[1:]
			}
			require.Equal(t, steps[order[0]].first, floor, "seed %d", seed)
		}
	}
}

func TestMarks_Text_IsReadBack(t *testing.T) {
	tr := New(config, 0, Marks{})
	tr.Add(0, stepsOf(train, 7, 5, 9, 8), false, at(0))
	other := Job{"other", ""}
	tr.Add(1, stepsOf(other, -3), false, at(0))
	m := tr.Marks("me")
	text, left := m.Text()
	assert.Zero(t, left)
	assert.JSONEq(t, fmt.Sprintf(`{"v":1,"by":"me","next":2,"held":{%q:"-3",%q:"5,7..9"}}`, other.hash(), train.hash()), text)
	read, err := ParseMarks(text)
	require.NoError(t, err)
	assert.Equal(t, m, read)
	for step, concluded := range map[int64]bool{4: true, 5: false, 6: true, 7: false, 8: false, 9: false, 10: true} {
		assert.Equal(t, concluded, m.Concluded(Step{train, step}, 1), "step %d", step)
		assert.False(t, m.Concluded(Step{train, step}, 2), "not read yet")
	}
	assert.True(t, m.Concluded(Step{Job{"idle", ""}, 0}, 1), "nothing is held of it")
	var none Marks
	assert.False(t, none.Concluded(Step{train, 4}, 0))
}

// Where not all jobs have room, none is taken for concluded that may be held.
func TestMarks_ManyJobs_LoseNothing(t *testing.T) {
	cfg := config
	cfg.MaxJobs, cfg.MaxAll = 1000, 2000
	tr := New(cfg, 0, Marks{})
	for i := range 1000 {
		tr.Add(int64(i), stepsOf(Job{ID: strings.Repeat("x", 4000) + fmt.Sprint(i)}, 1, 3), false, at(0))
	}
	m := tr.Marks("me")
	text, left := m.Text()
	assert.LessOrEqual(t, len(text), MaxMarksBytes)
	assert.Greater(t, len(text), MaxMarksBytes-150, "as many as have room")
	assert.Positive(t, left)
	read, err := ParseMarks(text)
	require.NoError(t, err)
	assert.Len(t, read.held, 1000-left)
	for i := range 1000 {
		job := Job{ID: strings.Repeat("x", 4000) + fmt.Sprint(i)}
		assert.False(t, read.Concluded(Step{job, 1}, 1))
		assert.False(t, read.Concluded(Step{job, 3}, 1))
	}
}

func TestMarks_ManyGaps_HoldWhatIsBetween(t *testing.T) {
	tr := New(config, 0, Marks{})
	for s := range int64(50) {
		tr.Add(s, stepsOf(train, 10*s), false, at(0))
	}
	m := tr.Marks("")
	text, _ := m.Text()
	assert.Less(t, len(text), 300)
	read, err := ParseMarks(text)
	require.NoError(t, err)
	for s := range int64(50) {
		assert.False(t, read.Concluded(Step{train, 10 * s}, 0))
	}
	assert.True(t, read.Concluded(Step{train, 5}, 0))
	assert.True(t, read.Concluded(Step{train, 500}, 0))
}

// Processes are killed one after the other at any moment, and the next begins at what was committed, also in the midst
// of what is read again: each step that the last one is given, it is given whole, unless the rest was read before.
func TestTracker_KilledAtAnyMoments_StepsAreWholeOrConcluded(t *testing.T) {
	for seed := range uint64(tier.N(t, 300, 9000)) {
		random := rand.New(rand.NewPCG(seed, 1))
		log := randomLog(random)
		var floor, read int64         // as committed
		concluded := map[Step]int64{} // up to which offset
		var text string
		for range 1 + random.IntN(4) {
			marks, err := ParseMarks(text)
			require.NoError(t, err)
			tr := New(config, floor, marks)
			killed := floor + random.Int64N(int64(len(log))-floor)
			for o := floor; o < killed; o++ {
				tr.Add(o, notConcluded(marks, log[o].steps, o), false, at(log[o].at))
				if random.IntN(20) > 0 {
					continue
				}
				floor = tr.Floor(at(log[o].at))
				m := tr.Marks("one")
				text, _ = m.Text()
				read = max(read, o+1)
				for _, r := range log[:read] {
					for _, s := range r.steps {
						if !m.held[s.hash()].has(s.Step) {
							concluded[s] = read
						}
					}
				}
			}
		}
		marks, err := ParseMarks(text)
		require.NoError(t, err)
		given, open := map[Step]int{}, map[Step]int{}
		for o, r := range log {
			for _, s := range r.steps {
				if int64(o) >= concluded[s] {
					open[s]++
				}
			}
			if int64(o) >= floor {
				for _, s := range notConcluded(marks, r.steps, int64(o)) {
					given[s]++
				}
			}
		}
		for s, n := range open {
			if concluded[s] == 0 {
				require.Equal(t, n, given[s], "seed %d: step %v is given whole", seed, s)
			} else { // what comes late of a concluded step, with what is read again beside it
				require.GreaterOrEqual(t, given[s], n, "seed %d: step %v", seed, s)
			}
		}
		for s := range given {
			require.Positive(t, open[s], "seed %d: step %v was concluded, and nothing of it comes late", seed, s)
		}
	}
}

type logRecord struct {
	steps []Step
	at    int
}

// randomLog returns records of three jobs whose steps overlap, of which one ends, with some that come late.
func randomLog(random *rand.Rand) (log []logRecord) {
	jobs, now := []Job{train, {"other", ""}, {"ended", "x"}}, 0
	for offset := range 200 {
		now += random.IntN(2)
		r := logRecord{at: now}
		for range 1 + random.IntN(2) {
			j := jobs[random.IntN(len(jobs))]
			if j.ID == "ended" && offset > 60 {
				continue
			}
			r.steps = append(r.steps, Step{j, max(0, int64(offset/10)-int64(random.IntN(3)))})
		}
		if random.IntN(50) == 0 {
			r.steps = append(r.steps, Step{train, int64(offset/10) - 15}) // late
		}
		log = append(log, r)
	}
	return log
}

func notConcluded(m Marks, steps []Step, offset int64) (out []Step) {
	for _, s := range steps {
		if !m.Concluded(s, offset) {
			out = append(out, s)
		}
	}
	return out
}

// While the analysis stood still, nothing that it has open becomes old.
func TestFloor_AfterAPause_TimesBeginAnew(t *testing.T) {
	cfg := config
	cfg.Pause = 5 * time.Second
	for name, pause := range map[string]func(*Tracker, time.Time){
		"it learns":      (*Tracker).Touch,
		"it finds out":   func(*Tracker, time.Time) {},
		"a record comes": func(tr *Tracker, now time.Time) { tr.Add(10, nil, false, now) },
	} {
		t.Run(name, func(t *testing.T) {
			tr := New(cfg, 0, Marks{})
			for s := range int64(5) {
				tr.Add(s, stepsOf(train, s), true, at(0))
			}
			assert.Zero(t, tr.Floor(at(1)))
			pause(tr, at(1000))
			assert.Zero(t, tr.Floor(at(1000)), "it was open for 1 s")
			for second := 1001; second < 1010; second++ {
				assert.Zero(t, tr.Floor(at(second)))
			}
			assert.EqualValues(t, 2, tr.Floor(at(1010)), "the last three steps are the window")
		})
	}
}

// The second record of a second is held as long as the first.
func TestFloor_RecordsWithoutStepsInOneSecond_AreHeldFromTheLast(t *testing.T) {
	tr := New(config, 0, Marks{})
	tr.Add(0, nil, true, at(0))
	tr.Add(1, nil, true, at(0).Add(900*time.Millisecond))
	assert.EqualValues(t, 0, tr.Floor(at(10).Add(800*time.Millisecond)))
	assert.EqualValues(t, 2, tr.Floor(at(11)))
}

// Of many steps, the job with most gives its oldest.
func TestTracker_StepsOfAllJobs_AreBounded(t *testing.T) {
	cfg := config
	cfg.MaxAll = 50
	tr := New(cfg, 0, Marks{})
	other := Job{"other", ""}
	for s := range int64(100) {
		tr.Add(2*s, stepsOf(train, s), false, at(0))
		if s < 10 {
			tr.Add(2*s+1, stepsOf(other, s), false, at(0))
		}
	}
	assert.Len(t, tr.jobs[train].steps, 40)
	assert.Len(t, tr.jobs[other].steps, 10)
	assert.EqualValues(t, 60, tr.Dropped())
	tr.Floor(at(60))
	assert.Zero(t, tr.held, "idle")
}

// One job with long numbers does not take the room of those after it.
func TestMarks_OneLongJob_LeavesRoom(t *testing.T) {
	cfg := config
	cfg.MaxJobs = 1000
	tr := New(cfg, 0, Marks{})
	for j := range 150 {
		tr.Add(int64(j), stepsOf(Job{fmt.Sprint(j), ""}, 1), false, at(0))
	}
	for k := range 12 {
		for s := range int64(16) {
			tr.Add(1000, stepsOf(Job{"long" + fmt.Sprint(k), ""}, s*1e17), false, at(0))
		}
	}
	m := tr.Marks("x")
	text, left := m.Text()
	assert.Greater(t, len(text), MaxMarksBytes-300, "a long job needs 300 bytes")
	assert.Less(t, left, 13, "the short ones have room")
}

func TestParseMarks_WhatOthersWrote_IsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"sarama":                             "want JSON of job_kafka",
		`{"v":2}`:                            "got version 2; want 1",
		`{"v":1,"held":{"a":"1..x"}}`:        "want numbers such as 408..487,490",
		strings.Repeat(" ", MaxMarksBytes+1): "want at most 4096",
	} {
		_, err := ParseMarks(text)
		assert.ErrorContains(t, err, want)
	}
	m, err := ParseMarks("")
	require.NoError(t, err)
	assert.Empty(t, m)
}

func FuzzParseMarks(f *testing.F) {
	f.Add(`{"v":1,"by":"me","next":7,"held":{"a":"5..9,11"},"some":true}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMarks(text)
		if err != nil {
			return
		}
		again, left := m.Text()
		if left > 0 || len(again) > MaxMarksBytes {
			return // escapes of JSON take more room
		}
		back, err := ParseMarks(again)
		require.NoError(t, err)
		require.Len(t, back.held, len(m.held))
	})
}

// A job gives its place to others while it has open steps. After a kill, what comes of them is given.
func TestMarks_JobWasDropped_ItsStepsAreNotConcluded(t *testing.T) {
	tr := New(config, 0, Marks{})
	for i := range config.MaxJobs + 1 {
		tr.Add(int64(i), stepsOf(Job{fmt.Sprint(i), ""}, 1), false, at(i))
	}
	tr.Floor(at(5))
	m := tr.Marks("me")
	assert.False(t, m.Concluded(Step{Job{"0", ""}, 1}, 1))
	for i := range config.MaxJobs {
		tr.Add(int64(10+i), nil, false, at(70))
	}
	assert.EqualValues(t, 14, tr.Floor(at(70)), "all are idle")
	m = tr.Marks("me")
	assert.True(t, m.Concluded(Step{Job{"0", ""}, 1}, 1), "nothing is behind the floor")
}
