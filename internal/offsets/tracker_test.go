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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	config = Config{Steps: 3, Time: 10 * time.Second, Idle: time.Minute, MaxSteps: 100, MaxJobs: 4}
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
	tr := New(config, 7)
	assert.EqualValues(t, 7, tr.Floor(at(0)))
	tr.Add(9, nil, false, at(0))
	assert.EqualValues(t, 10, tr.Floor(at(0)))
	assert.EqualValues(t, 10, tr.Next())
}

// The last three steps are needed whatever their age, and older ones until ten seconds after their last record.
func TestFloor_StepsAndTime_BothHold(t *testing.T) {
	tr := New(config, 0)
	for s := range int64(6) {
		tr.Add(10*s, stepsOf(train, s), false, at(int(s)))
	}
	assert.EqualValues(t, 0, tr.Floor(at(9)), "step 0 came 9 s ago")
	assert.EqualValues(t, 10, tr.Floor(at(10)), "step 0 came 10 s ago")
	assert.EqualValues(t, 30, tr.Floor(at(40)), "steps 3, 4 and 5 are the window")
	tr.Add(60, stepsOf(train, 3), false, at(41)) // late
	tr.Add(70, stepsOf(train, 6), false, at(42))
	assert.EqualValues(t, 30, tr.Floor(at(50)), "a late record of step 3 holds it")
	assert.EqualValues(t, 40, tr.Floor(at(51)))
	assert.EqualValues(t, 71, tr.Floor(at(42+60)), "an idle job holds nothing")
	assert.Equal(t, []string{"train"}, tr.Jobs(), "an analysis may still know it")
}

func TestFloor_SeveralJobs_IsThatOfTheSlowest(t *testing.T) {
	tr := New(config, 0)
	other := Job{"train", "b"}
	tr.Add(0, stepsOf(other, 5), false, at(0))
	for s := range int64(20) {
		tr.Add(1+s, stepsOf(train, s), false, at(int(s)))
	}
	assert.EqualValues(t, 0, tr.Floor(at(30)))
	tr.Saw("hung")
	tr.Saw("")
	assert.Equal(t, []string{"hung", "train"}, tr.Jobs())
	assert.EqualValues(t, 18, tr.Floor(at(60)), "steps 17, 18 and 19")
}

// One absurd step number counts as one step: it neither releases the window nor keeps it.
func TestFloor_AbsurdStep_CountsAsOne(t *testing.T) {
	tr := New(config, 0)
	for s, step := range []int64{1, 2, 1 << 62, 3, -1 << 62, 4} {
		tr.Add(int64(s), stepsOf(train, step), false, at(s))
	}
	assert.EqualValues(t, 3, tr.Floor(at(50)))
}

func TestFloor_RecordsWithoutSteps_AreHeldByTime(t *testing.T) {
	tr := New(config, 0)
	for s := range 30 {
		tr.Add(int64(s), nil, true, at(s))
	}
	assert.EqualValues(t, 20, tr.Floor(at(29)))
	assert.EqualValues(t, 30, tr.Floor(at(39)))
}

func TestTracker_Limits_AreKeptAndCounted(t *testing.T) {
	tr := New(config, 0)
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
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		tr := New(config, 0)
		type seen struct {
			first int64
			last  int
		}
		steps, order, now, former := map[int64]*seen{}, []int64{}, 0, int64(0)
		for offset := range int64(300) {
			now += random.IntN(3)
			s := max(0, offset/10-int64(random.IntN(4)))
			tr.Add(offset, stepsOf(train, s), false, at(now))
			if steps[s] == nil {
				steps[s] = &seen{first: offset}
				order = append(order, s)
			}
			steps[s].last = now
			floor := tr.Floor(at(now))
			require.GreaterOrEqual(t, floor, former)
			former = floor
			for len(order) > config.Steps && now-steps[order[0]].last >= 10 {
				delete(steps, order[0]) // a late record begins it anew
				order = order[1:]
			}
			require.Equal(t, steps[order[0]].first, floor, "seed %d", seed)
		}
	}
}

func TestMarks_Text_IsReadBack(t *testing.T) {
	tr := New(config, 0)
	tr.Add(0, stepsOf(train, 7, 5, 9), false, at(0))
	tr.Add(1, stepsOf(Job{"other", ""}, -3), false, at(0))
	m := tr.Marks("me")
	text, left := m.Text()
	assert.Zero(t, left)
	assert.JSONEq(t, `{"v":1,"by":"me","next":2,"first":[{"id":"other","step":-3},{"id":"train","inc":"a","step":5}]}`, text)
	read, err := ParseMarks(text)
	require.NoError(t, err)
	assert.Equal(t, m, read)
	assert.True(t, m.Concluded(Step{train, 4}, 1))
	assert.False(t, m.Concluded(Step{train, 5}, 1))
	assert.False(t, m.Concluded(Step{train, 4}, 2), "the job has gone back to an earlier step")
	assert.False(t, m.Concluded(Step{Job{"unknown", ""}, 0}, 1))

	many := Marks{First: map[Job]int64{}}
	for i := range 1000 {
		many.First[Job{ID: fmt.Sprintf("job-%04d", i)}] = 1
	}
	text, left = many.Text()
	assert.LessOrEqual(t, len(text), MaxMarksBytes)
	read, err = ParseMarks(text)
	require.NoError(t, err)
	assert.Len(t, read.First, 1000-left)
	assert.Greater(t, len(text), MaxMarksBytes-50, "as many as have room")
}

func TestParseMarks_WhatOthersWrote_IsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"sarama":                             "want JSON of job_kafka",
		`{"v":2,"first":[]}`:                 "got version 2; want 1",
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
	f.Add(`{"v":1,"by":"me","next":7,"first":[{"id":"train","inc":"a","step":5}]}`)
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
		require.Len(t, back.First, len(m.First))
	})
}
