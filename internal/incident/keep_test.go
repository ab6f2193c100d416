// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// restarted returns an engine that takes the place of another.
func restarted(t *testing.T, e *Engine, now time.Time) *Engine {
	t.Helper()
	data, err := e.Snapshot()
	require.NoError(t, err)
	again := NewEngine(e.cfg)
	require.NoError(t, again.Restore(data, now))
	assert.Equal(t, recount(again), again.Bytes())
	for _, ev := range again.Tick(now) { // once more, since it may not have been delivered
		assert.False(t, ev.New || ev.Closed)
		assert.Equal(t, model.StatusUpdated, ev.Finding.Status)
		assert.Equal(t, known(e)[key{ev.Finding.JobID, ev.Finding.ID}].Finding.Revision, ev.Finding.Revision)
	}
	return again
}

func TestRestart_KnownFindings_AreNotNewAgain(t *testing.T) {
	e := engine(nil)
	e.Add(received("a", 5, 1, 0, 10), t0)
	e.Add(shut(received("b", 2, 2, 20, 30)), t0)
	e = restarted(t, e, t0.Add(time.Minute))
	assert.Equal(t, 1, e.Open())
	assert.Empty(t, e.Add(received("a", 5, 1, 0, 11), t0.Add(2*time.Minute)), "repeated")
	assert.Empty(t, e.Add(shut(received("b", 2, 2, 20, 30)), t0), "repeated")
	assert.Equal(t, []string{"a 6 updated"}, said(e.Add(received("a", 6, 1, 0, 12), t0)))
	assert.Equal(t, []string{"a 7 closed."}, said(e.Add(shut(received("a", 7, 1, 0, 12)), t0)))
	assert.Equal(t, Stats{Received: 4, Duplicates: 2}, e.Stats())
}

// The span of a finding that stays open over a stop is written once.
func TestSpans_OpenAtAStop_AreDueOnce(t *testing.T) {
	e := engine(nil)
	e.Add(received("a", 1, 1, 0, 10), t0)
	require.Len(t, e.Spans(), 1)
	assert.Empty(t, e.Spans())
	e = restarted(t, e, t0)
	assert.Empty(t, e.Spans())
	assert.Equal(t, []string{"a 2 closed"}, said(e.Add(shut(received("a", 2, 1, 0, 12)), t0)))
}

func TestRestart_Incidents_GoOn(t *testing.T) {
	e := engine(nil)
	first := e.Add(received("a", 1, 1, 0, 10), t0)[0].Finding.IncidentID
	e.Add(shut(received("b", 1, 1, 5, 15)), t0)
	other := e.Add(received("c", 1, 2, 0, 10), t0)[0].Finding.IncidentID
	require.NotEqual(t, first, other)
	e = restarted(t, e, t0)
	joined := e.Add(received("d", 1, 1, 12, 20), t0)
	require.Len(t, joined, 1)
	assert.Equal(t, first, joined[0].Finding.IncidentID, "by a finding that had ended")
	connects := received("e", 1, 1, 0, 20)
	connects.Ranks = []int64{1, 2}
	events := e.Add(connects, t0)
	require.Equal(t, []string{"c 2 updated", "e 1 open+"}, said(events), "the older incident takes in the younger")
	assert.Equal(t, first, events[0].Finding.IncidentID)
}

// A gateway that is away for longer than CloseAfter does not know what ended meanwhile: its sources
// report again.
func TestRestart_LongAway_ClosesOnlyAfterSilence(t *testing.T) {
	e := engine(func(c *Config) { c.CloseAfter = time.Minute })
	e.Add(received("a", 1, 1, 0, 10), t0)
	e = restarted(t, e, t0.Add(time.Hour))
	assert.Empty(t, e.Tick(t0.Add(time.Hour+59*time.Second)))
	assert.Equal(t, []string{"a 2 closed."}, said(e.Tick(t0.Add(time.Hour+time.Minute))))
}

func TestRestart_LessRoom_KnowsTheRestAgain(t *testing.T) {
	e := engine(func(c *Config) { c.MaxOpen = 4 })
	for _, id := range []string{"a", "b", "c", "d"} {
		e.Add(received(id, 1, 1, 0, 10), t0)
	}
	e.cfg.MaxOpen = 2
	e = restarted(t, e, t0)
	assert.Equal(t, 2, e.Open())
	assert.Empty(t, e.Add(received("d", 1, 1, 0, 10), t0), "it is known")
}
