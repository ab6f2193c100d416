// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const runSteps = 100

// run has a stream bring some steps of ten spans each, which are concluded, and returns how many of them accuse no rank.
func run(t *testing.T, l *Ledger, source string, number, first, last int64, now time.Time) (flagged int) {
	t.Helper()
	for step := first; step <= last; step++ {
		pass(t, l, some(source, step, number, number+9), now)
		if number += 10; conclude(t, l, of(step)).Incomplete() != "" {
			flagged++
		}
	}
	return flagged
}

// A source that knows no attempt gives each run of a job the same incarnation.
func TestLedger_JobRunsAgainAfterTheStreamLimit_IsJudged(t *testing.T) {
	store := newMemory()
	l := newTestLedger(t, store, start, nil)
	require.Zero(t, run(t, l, "a", 0, 0, runSteps-1, start))
	week := start.Add(7 * 24 * time.Hour)
	t.Run("gateway restarted", func(t *testing.T) {
		l := newTestLedger(t, store, week, nil)
		assert.Zero(t, run(t, l, "b", 0, 0, runSteps-1, week))
	})
	t.Run("gateway lives", func(t *testing.T) {
		require.NoError(t, l.Tick(week))
		assert.Zero(t, l.jobs.Len())
		assert.NotContains(t, store.values, of(0).job().key())
		assert.Zero(t, run(t, l, "b", 0, 20, runSteps-1, week), "from any step")
	})
}

func TestLedger_JobRunsAgainAfterTheWait_IsJudged(t *testing.T) {
	for name, begin := range map[string]struct {
		source string
		number int64
		later  time.Time
	}{
		"agent was restarted": {"b", 0, start.Add(longPause * limits.Wait)},
		"agent lives":         {"a", 10 * runSteps, start.Add(limits.Wait)},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTestLedger(t, newMemory(), start, nil)
			require.Zero(t, run(t, l, "a", 0, 0, runSteps-1, start))
			assert.Zero(t, run(t, l, begin.source, begin.number, 0, runSteps-1, begin.later))
			assert.Equal(t, Totals{Arrived: 20 * runSteps, Concluded: 20 * runSteps}, l.Totals())
			// Another node's spans of the first step are late now: the step was concluded in this run.
			pass(t, l, some("c", 0, 0, 9), begin.later.Add(time.Second))
			assert.Equal(t, IncompleteBefore, conclude(t, l, of(0)).Incomplete())
		})
	}
}

// Requests of a stream overtake each other.
func TestLedger_JobRunsAgainWithItsSecondStepFirst_IsJudged(t *testing.T) {
	l := newTestLedger(t, nil, start, nil)
	require.Zero(t, run(t, l, "a", 0, 0, runSteps-1, start))
	later := start.Add(longPause * limits.Wait)
	pass(t, l, some("b", 1, 10, 19), later)
	pass(t, l, some("c", 0, 0, 9), later.Add(time.Second))
	assert.Empty(t, conclude(t, l, of(0)).Incomplete())
	assert.Zero(t, run(t, l, "c", 10, 1, runSteps-1, later.Add(time.Second)))
}

// What may be the rest of a step that was concluded accuses no rank.
func TestLedger_LateSpansOfAJob_AreNoNewRun(t *testing.T) {
	later := start.Add(limits.Wait)
	for name, late := range map[string]struct {
		all     []Arrival
		at      time.Time
		restart bool
	}{
		"while the job runs":                    {some("b", 0, 0, 9), later.Add(-1), false},
		"of an agent that was cut off":          {some("b", 0, 0, 9), start.Add(longPause*limits.Wait - 1), false},
		"of a step in the middle":               {some("b", 50, 0, 9), later, false},
		"of a stream that began elsewhere":      {some("b", 0, 5, 9), later, false},
		"of numbers before those that arrived":  {some("a", 0, 900, 904), later, false},
		"from a queue, after the gateway's end": {some("b", 0, 0, 9), later.Add(limits.Wait - 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			store := newMemory()
			l := newTestLedger(t, store, start, nil)
			require.Zero(t, run(t, l, "a", 0, 0, 89, start))
			require.Zero(t, run(t, l, "a", 910, 90, runSteps-1, start))
			if late.restart {
				l = newTestLedger(t, store, later, nil)
			}
			pass(t, l, late.all, late.at)
			for step := range late.all[0].Steps {
				assert.Equal(t, IncompleteBefore, conclude(t, l, step).Incomplete())
			}
		})
	}
}

// A job makes a step in each wait. An agent was cut off from the start, and its queue comes now: its first step was
// concluded without it.
func TestLedger_SlowStepsAndALateAgent_AreNoNewRun(t *testing.T) {
	l := newTestLedger(t, newMemory(), start, nil)
	now, number := start, int64(0)
	for step := range int64(5) {
		require.Zero(t, run(t, l, "a", number, step, step, now))
		number += 10
		now = now.Add(limits.Wait)
	}
	pass(t, l, some("c", 0, 0, 9), now)
	assert.Equal(t, IncompleteBefore, conclude(t, l, of(0)).Incomplete(), "it was concluded before, without c")
}
