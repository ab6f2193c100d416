// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// requireObservers walks all registers, and compares whose they are with what is counted.
func requireObservers(t *testing.T, e *Engine) {
	t.Helper()
	all := make([]int32, len(e.names))
	for id, j := range e.jobs {
		of := map[int32]int32{}
		for _, g := range j.generations {
			for _, s := range g.saves {
				s.each(func(_ int32, c *cell) {
					of[c.observer]++
					all[c.observer]++
				})
			}
		}
		if !maps.Equal(of, j.observers) {
			t.Fatalf("count observers of %q: got %v; want %v", id, j.observers, of)
		}
	}
	if !slices.Equal(all, e.held) {
		t.Fatalf("count registers of observers: got %v; want %v", e.held, all)
	}
}

// by returns what an observer reports on a job.
func by(job, observer string) *model.EpochObservation {
	o := hostile(1, observer, observer)
	o.JobID = job
	return &o
}

// Jobs that share their observers leave until one is free, and not the job that holds more bytes.
func TestEngine_ObserversAreShort_JobsThatHoldThemLeave(t *testing.T) {
	e := New(Config{Observers: 8})
	for i := range 2 {
		o := by("wordy", long(i))
		o.Generation = long(0)
		e.Observe(o)
	}
	for _, job := range []string{"decoy", "hostile"} { // the observers report the decoy first
		for i := range 6 {
			e.Observe(by(job, strconv.Itoa(i)))
		}
	}
	requireObservers(t, e)
	require.Greater(t, e.jobs["wordy"].share.Bytes(), e.jobs["hostile"].share.Bytes())
	e.Observe(by("new", "a"))
	assert.Equal(t, []string{"new", "wordy"}, e.Jobs())
	assert.Zero(t, e.Stats().Overflowed)
	requireObservers(t, e)
}

// Jobs of which none has many observers make room as well.
func TestEngine_ObserversOfManyJobs_MakeRoom(t *testing.T) {
	e := New(Config{Observers: 16})
	e.Observe(by("quiet", "quiet"))
	for job := range 5 {
		for i := range 3 {
			e.Observe(by(fmt.Sprint("job ", job), fmt.Sprint(job, " ", i)))
		}
	}
	e.Observe(by("new", "a"))
	assert.Equal(t, []string{"job 0", "job 1", "job 2", "job 3", "new", "quiet"}, e.Jobs())
	assert.Zero(t, e.Stats().Overflowed)
}

// A job that has most observers itself finds no room for one more.
func TestEngine_ObserversOfOneJob_LeaveOthers(t *testing.T) {
	e := New(Config{Observers: 9})
	for i := range 5 {
		e.Observe(by("quiet", fmt.Sprint("quiet ", i)))
	}
	for i := range 20 {
		e.Observe(by("hostile", strconv.Itoa(i)))
	}
	assert.Equal(t, []string{"hostile", "quiet"}, e.Jobs(), "it would hold as many as the other")
	assert.EqualValues(t, 16, e.Stats().Overflowed)
	requireObservers(t, e)
}

// A job that leaves frees no observer that other jobs share with it: it stays where the job that asks finds no
// room in the end.
func TestEngine_SharedObservers_RefusalDropsNoJob(t *testing.T) {
	e := New(Config{Observers: 8})
	for _, job := range []struct{ name, observers string }{{"d", "123"}, {"e", "45"}, {"a", "12345"}, {"b", "678"}} {
		for _, name := range job.observers {
			e.Observe(by(job.name, string(name)))
		}
	}
	for i := range int64(3) {
		e.Observe(by("b", fmt.Sprint("new ", i)))
		assert.Equal(t, []string{"a", "b", "d", "e"}, e.Jobs())
		assert.Equal(t, Stats{Observations: 14 + i, Overflowed: 1 + i, Registers: 13, Bytes: recount(e)}, e.Stats())
	}
	requireObservers(t, e)
}

// A job whose observers all report other jobs too stays where another job frees one.
func TestEngine_SharedObservers_OnlyJobsOfTheFreedOneLeave(t *testing.T) {
	e := New(Config{Observers: 5})
	for _, job := range []struct{ name, observers string }{{"d", "12"}, {"e", "3"}, {"alone", "45"}, {"shared", "123"}} {
		for _, name := range job.observers {
			e.Observe(by(job.name, string(name)))
		}
	}
	e.Observe(by("new", "a"))
	assert.Equal(t, []string{"d", "e", "new", "shared"}, e.Jobs())
	assert.Zero(t, e.Stats().Overflowed)
	requireObservers(t, e)
}

// Of the observers that would be free, the one that fewest jobs hold is taken.
func TestEngine_SharedObservers_JobOfOthersStays(t *testing.T) {
	e := New(Config{Observers: 4})
	for _, job := range []struct{ name, observers string }{{"large", "1234"}, {"shared", "123"}} {
		for _, name := range job.observers {
			e.Observe(by(job.name, string(name)))
		}
	}
	e.Observe(by("new", "a"))
	assert.Equal(t, []string{"new", "shared"}, e.Jobs())
	requireObservers(t, e)
}

// A job that found no room asks in vain, at no cost, until the observers of jobs have changed.
func TestEngine_RefusedObservers_AreNotLookedForAgain(t *testing.T) {
	e := New(Config{Observers: 4})
	for _, job := range []struct{ name, observers string }{{"old", "1234"}, {"shared", "123"}} {
		for _, name := range job.observers {
			e.Observe(by(job.name, string(name)))
		}
	}
	refuse := func(name string) {
		e.Observe(by("old", name))
		require.Equal(t, []string{"old", "shared"}, e.Jobs())
	}
	refuse("a")
	old := e.jobs["old"]
	before := old.refused
	assert.Zero(t, testing.AllocsPerRun(10, func() { e.freeObserver(old) }))
	assert.Equal(t, -1, e.freeObserver(old))
	assert.Equal(t, before, old.refused)
	e.Observe(by("shared", "4"))
	refuse("b")
	assert.Greater(t, old.refused, before, "it looked again")
}

// An observer whose saves have left is none of the job's any more.
func TestEngine_ObserverWithoutRegisters_CountsNoMore(t *testing.T) {
	e := New(Config{Saves: 1})
	for save := range int64(3) {
		o := hostile(save, "d", fmt.Sprint("of save ", save))
		e.Observe(&o)
	}
	assert.Len(t, e.jobs["hostile"].observers, 1)
	requireObservers(t, e)
	e.Forget("of save 2")
	e.sweep()
	assert.Empty(t, e.jobs["hostile"].observers)
	assert.Equal(t, recount(e), e.Stats().Bytes)
}

// New jobs of few registers do not push out the saves of one that has many.
func TestEngine_RegistersOfManyNewJobs_LeaveThoseOfALargeOne(t *testing.T) {
	e := New(Config{Registers: 17})
	for d := range 9 {
		observe(e, tell(100, d, 1, model.DomainCommitted, 100))
	}
	for i := range 30 {
		e.Observe(by(fmt.Sprint("new ", i), "a"))
	}
	assert.Equal(t, Converged, e.Judge(testJob, testGen, 100).Verdict)
	assert.Equal(t, 9, e.find(testJob, testGen).registers)
	assert.Equal(t, 17, e.Stats().Registers)
	requireObservers(t, e)
}

// Saves leave of the job that holds most registers, and not of one that holds more bytes.
func TestEngine_RegistersAreShort_JobThatHoldsThemMakesRoom(t *testing.T) {
	e := New(Config{Registers: 8})
	for i := range 2 {
		e.Observe(by("wordy", long(i)))
	}
	for save := range int64(3) {
		for d := range 2 {
			o := hostile(save, strconv.Itoa(d), "o")
			e.Observe(&o)
		}
	}
	require.Greater(t, e.jobs["wordy"].share.Bytes(), e.jobs["hostile"].share.Bytes())
	e.Observe(by("new", "a"))
	assert.Equal(t, []int64{1}, e.Saves("wordy", "g"))
	assert.Equal(t, []int64{1, 2}, e.Saves("hostile", "g"))
	assert.Equal(t, Converged, e.Judge("new", "g", 1).Verdict)
}
