// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ticks has so many waits pass, and returns what time it is.
func ticks(t *testing.T, l *Ledger, now time.Time, waits int) time.Time {
	t.Helper()
	for range waits {
		now = now.Add(limits.Wait)
		require.NoError(t, l.Tick(now))
	}
	return now
}

// A batch waits in the pipeline, as for a step trace that is tried again, and later ones overtake it.
func TestLedger_CallUnderWay_IsNoGap(t *testing.T) {
	l := newTestLedger(t, newMemory(), start, nil)
	pass(t, l, some("a", 6, 0, 9), start)
	slow := some("a", 7, 10, 19)
	l.Expect(slow)
	pass(t, l, some("a", 8, 20, 29), start)
	now := ticks(t, l, start, 3)
	require.NoError(t, l.Arrive(slow, now))
	ticks(t, l, now, 3)
	assert.Equal(t, Totals{Arrived: 30}, l.Totals())
	assert.Empty(t, l.Losses())
	assert.Empty(t, l.calls)
}

func TestLedger_CallRefusedAndNotTriedAgain_IsAGap(t *testing.T) {
	l := newTestLedger(t, newMemory(), start, nil)
	pass(t, l, some("a", 6, 0, 9), start)
	slow := some("a", 7, 10, 19)
	l.Expect(slow)
	pass(t, l, some("a", 8, 20, 29), start)
	now := ticks(t, l, start, 3)
	l.Refuse(slow)
	now = ticks(t, l, now, 1)
	assert.Zero(t, l.Totals().Gap, "it may be tried again")
	ticks(t, l, now, 1)
	assert.Equal(t, Totals{Arrived: 20, Gap: 10}, l.Totals())
}

// A stream with too many ranges has its first gap decided at once, unless the gap is under way.
func TestLedger_CallUnderWayOfAStreamWithManyRanges_IsNoGap(t *testing.T) {
	l := newTestLedger(t, nil, start, func(c *Config) { c.MaxRanges = 4 })
	l.Expect(some("a", 7, 1, 1))
	for i := range int64(6) {
		pass(t, l, some("a", 7, 2*i, 2*i), start)
	}
	require.NoError(t, l.Arrive(some("a", 7, 1, 1), start))
	assert.EqualValues(t, 7, l.Totals().Arrived)
}

func TestLedger_FirstCallUnderWay_IsNotElsewhere(t *testing.T) {
	l := newTestLedger(t, nil, start, nil)
	l.Expect(some("a", 7, 0, 4))
	pass(t, l, some("a", 7, 5, 9), start)
	assert.Empty(t, conclude(t, l, of(7)).Incomplete())
}

// The sender's time is over after the analysis has used its batch. Another rank completes the step before the sender
// tries again.
func TestLedger_UsedAfterARestartAndTriedAgain_IsNotLost(t *testing.T) {
	store := newMemory()
	l := newTestLedger(t, store, start, nil)
	all := some("a", 7, 0, 9)
	pass(t, l, all, start)
	l = newTestLedger(t, store, start, nil)
	pass(t, l, all, start)
	pass(t, l, some("b", 7, 0, 9), start)
	assert.Equal(t, Verdict{}, conclude(t, l, of(7)))
	pass(t, l, all, start.Add(5*time.Second))
	assert.Equal(t, Totals{Arrived: 20, Again: 10, Concluded: 20}, l.Totals())
}

// A batch of before a restart is sent twice. The first call is given up, the second one concludes the step.
func TestLedger_TwoCallsOfOneBatch_FirstRefused_IsNotLost(t *testing.T) {
	store := newMemory()
	l := newTestLedger(t, store, start, nil)
	all := some("a", 7, 0, 9)
	pass(t, l, all, start)
	l = newTestLedger(t, store, start, nil)
	l.Expect(all)
	l.Expect(all)
	l.Refuse(all)
	assert.Equal(t, Verdict{}, conclude(t, l, of(7)))
	require.NoError(t, l.Arrive(all, start))
	assert.Equal(t, Totals{Arrived: 10, Again: 10, Concluded: 10}, l.Totals())
	assert.Empty(t, l.calls)
}

func TestLedger_CallUnderWayAsTheWaitEnds_IsLostOnlyIfItIsRefused(t *testing.T) {
	for name, used := range map[string]bool{"used": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			store := newMemory()
			l := newTestLedger(t, store, start, nil)
			pass(t, l, some("a", 7, 0, 9), start)
			l = newTestLedger(t, store, start, nil)
			l.Expect(some("a", 7, 0, 9))
			now := ticks(t, l, start, 2)
			assert.Zero(t, l.Totals().Lost)
			if used {
				require.NoError(t, l.Arrive(some("a", 7, 0, 9), now))
				ticks(t, l, now, 1)
				assert.Equal(t, Totals{Arrived: 10}, l.Totals())
				assert.EqualValues(t, 10, l.Open())
				return
			}
			l.Refuse(some("a", 7, 0, 9))
			ticks(t, l, now, 1)
			assert.Equal(t, Totals{Arrived: 10, Lost: 10}, l.Totals())
		})
	}
}
