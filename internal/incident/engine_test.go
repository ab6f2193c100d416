// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

var t0 = time.Unix(1000, 0)

// finding returns revision rev of a finding of rank, judged from start to end.
func received(id string, rev, rank, start, end int64) model.Finding {
	return model.Finding{
		ID: id, Revision: rev, Kind: model.FindingStraggler, JobID: "job", Incarnation: "inc",
		Start: start, Time: end, Rank: model.Some(rank), Status: model.StatusOpen,
	}
}

func engine(change func(*Config)) *Engine {
	cfg := NewDefaultConfig()
	if change != nil {
		change(&cfg)
	}
	return NewEngine(cfg)
}

// said renders events as "id revision status", with a + where new and a . where closed.
func said(events []Event) []string {
	var out []string
	for _, ev := range events {
		s := fmt.Sprintf("%s %d %s", ev.Finding.ID, ev.Finding.Revision, ev.Finding.Status)
		if ev.New {
			s += "+"
		}
		if ev.Closed {
			s += "."
		}
		out = append(out, s)
	}
	return out
}

func TestRevisions(t *testing.T) {
	e := engine(nil)
	tests := []struct {
		rev    int64
		status string
		want   []string
	}{
		{2, model.StatusOpen, []string{"a 2 open+"}},
		{2, model.StatusOpen, nil},
		{1, model.StatusUpdated, nil},
		{4, model.StatusOpen, []string{"a 4 updated"}},
		{3, model.StatusClosed, nil},
		{5, model.StatusClosed, []string{"a 5 closed."}},
		{5, model.StatusClosed, nil},
		{6, model.StatusClosed, []string{"a 6 closed"}},
		{7, model.StatusUpdated, []string{"a 7 updated"}},
		{8, model.StatusClosed, []string{"a 8 closed"}},
	}
	for _, tt := range tests {
		f := received("a", tt.rev, 1, 0, 10)
		f.Status = tt.status
		assert.Equal(t, tt.want, said(e.Add(f, t0)), "revision %d %s", tt.rev, tt.status)
	}
	assert.Equal(t, Stats{Received: 10, Duplicates: 4, Late: 1}, e.Stats())
}

// Findings of two jobs that name one incarnation may have one id.
func TestEngine_OneIDInTwoJobs_IsTwoFindings(t *testing.T) {
	e := engine(nil)
	other := received("a", 5, 1, 0, 10)
	other.JobID = "other"
	assert.Equal(t, []string{"a 5 open+"}, said(e.Add(other, t0)))
	assert.Equal(t, []string{"a 1 open+"}, said(e.Add(received("a", 1, 1, 0, 10), t0)))
	other.Revision, other.Status = 6, model.StatusClosed
	assert.Equal(t, []string{"a 6 closed."}, said(e.Add(other, t0)))
	assert.Equal(t, []string{"a 2 updated"}, said(e.Add(received("a", 2, 1, 0, 10), t0)))
	assert.Zero(t, e.Stats().Duplicates)
}

// Whatever the order and number of deliveries, the last word is the highest
// revision, each finding is new once and closed once.
func TestOrderDoesNotMatter(t *testing.T) {
	orders := [][]int64{{1, 2, 3}, {3, 2, 1}, {2, 2, 1, 3, 3}, {1, 3, 2, 1}}
	for _, order := range orders {
		e := engine(nil)
		var events []Event
		for _, rev := range order {
			f := received("a", rev, 1, 0, 10)
			f.Confidence = float64(rev)
			events = append(events, e.Add(f, t0)...)
		}
		events = append(events, e.Flush()...)
		events = append(events, e.Flush()...)
		var opened, closed int
		for _, ev := range events {
			if ev.New {
				opened++
			}
			if ev.Closed {
				closed++
			}
		}
		last := events[len(events)-1].Finding
		assert.InDelta(t, 3, last.Confidence, 0, "%v", order)
		assert.Equal(t, model.StatusClosed, last.Status)
		assert.Equal(t, []int{1, 1}, []int{opened, closed}, "%v", order)
	}
}

func TestClosedAtFirstSight(t *testing.T) {
	e := engine(nil)
	f := received("a", 1, 1, 0, 10)
	f.Status = model.StatusClosed
	assert.Equal(t, []string{"a 1 closed+."}, said(e.Add(f, t0)))
	assert.Empty(t, e.Flush())
	assert.Zero(t, e.Open())
}

func TestCloseAfterSilence(t *testing.T) {
	e := engine(func(c *Config) { c.CloseAfter = time.Minute })
	e.Add(received("a", 1, 1, 0, 10), t0)
	e.Add(received("b", 1, 2, 0, 10), t0.Add(30*time.Second))
	e.Add(received("a", 2, 1, 0, 10), t0.Add(40*time.Second))
	assert.Empty(t, e.Tick(t0.Add(89*time.Second)))
	assert.Equal(t, []string{"b 2 closed."}, said(e.Tick(t0.Add(90*time.Second))))
	assert.Equal(t, []string{"a 3 closed."}, said(e.Tick(t0.Add(100*time.Second))))
}

// A closing of our own takes a revision; what its source says next must still
// count upwards.
func TestRevisionsStayMonotonicAfterOwnClosing(t *testing.T) {
	e := engine(nil)
	e.Add(received("a", 1, 1, 0, 10), t0)
	require.Equal(t, []string{"a 2 closed."}, said(e.Flush()))
	assert.Equal(t, []string{"a 3 updated"}, said(e.Add(received("a", 2, 1, 0, 10), t0)), "its source says that it is open")
}

func TestCleanSteps(t *testing.T) {
	e := engine(func(c *Config) { c.CleanSteps = 5 })
	at := func(id string, rank, step int64) []string {
		f := received(id, 1, rank, step, step)
		f.StepLast = model.Some(step)
		return said(e.Add(f, t0))
	}
	at("a", 1, 10)
	assert.Equal(t, []string{"b 1 open+"}, at("b", 2, 14))
	assert.Equal(t, []string{"c 1 open+", "a 2 closed."}, at("c", 3, 15))

	kind := received("e", 1, 5, 0, 0)
	kind.Kind, kind.StepLast = "desync", model.Some(int64(1000))
	assert.Equal(t, []string{"e 1 open+"}, said(e.Add(kind, t0)), "nor of another kind")

	other := received("d", 1, 4, 0, 0)
	other.JobID, other.StepLast = "another", model.Some(int64(1000))
	assert.Equal(t, []string{"d 1 open+"}, said(e.Add(other, t0)), "steps of another job do not count")
}

func TestBounds(t *testing.T) {
	e := engine(func(c *Config) { c.MaxOpen = 2 })
	for i := range int64(10) {
		e.Add(received(fmt.Sprint("f", i), 1, i, i, i), t0)
		require.LessOrEqual(t, e.Open(), 2)
		require.LessOrEqual(t, len(known(e)), 4)
	}
	s := e.Stats()
	assert.Equal(t, int64(8), s.Evicted)
	assert.Equal(t, int64(6), s.Forgotten)
	assert.Equal(t, []string{"f8 2 closed.", "f9 2 closed."}, said(e.Flush()))
}

func TestEvictionSparesWhatWasHeardOfLately(t *testing.T) {
	e := engine(func(c *Config) { c.MaxOpen = 2 })
	e.Add(received("a", 1, 1, 0, 0), t0)
	e.Add(received("b", 1, 2, 0, 0), t0)
	e.Add(received("a", 2, 1, 0, 0), t0)
	assert.Equal(t, []string{"c 1 open+"}, said(e.Add(received("c", 1, 3, 0, 0), t0)))
	assert.Equal(t, []string{"a 3 closed.", "c 2 closed."}, said(e.Flush()))
}

// That a finding was given up is not its end: it opens again under its revision when it is repeated.
func TestEvicted_Repeated_IsOpenAgainAndNotNew(t *testing.T) {
	e := engine(func(c *Config) { c.MaxOpen = 2 })
	e.Add(received("a", 3, 1, 0, 0), t0)
	e.Add(received("b", 1, 2, 0, 0), t0)
	assert.Equal(t, []string{"c 1 open+"}, said(e.Add(received("c", 1, 3, 0, 0), t0)))
	open := func() (ids []string) {
		for n := range e.book.All() {
			ids = append(ids, n.Finding.ID)
		}
		return ids
	}
	assert.Empty(t, e.Add(received("a", 2, 1, 0, 0), t0))
	assert.Equal(t, []string{"b", "c"}, open(), "that was an older revision")
	assert.Empty(t, e.Add(received("a", 3, 1, 0, 0), t0))
	assert.Equal(t, []string{"c", "a"}, open())
	assert.Equal(t, []string{"b 2 updated"}, said(e.Add(received("b", 2, 2, 0, 0), t0)))
	assert.Equal(t, []string{"c 2 closed."}, said(e.Add(shut(received("c", 2, 3, 0, 0)), t0)))
	assert.Equal(t, int64(3), e.Stats().Evicted)
}

func shut(f model.Finding) model.Finding {
	f.Status = model.StatusClosed
	return f
}

type key struct{ job, id string }

func known(e *Engine) map[key]*entry {
	all := map[key]*entry{}
	for n := range e.book.All() {
		all[key{n.Finding.JobID, n.Finding.ID}] = n
	}
	for n := range e.book.Ended() {
		all[key{n.Finding.JobID, n.Finding.ID}] = n
	}
	return all
}

func TestWithoutIDIsPassedOn(t *testing.T) {
	e := engine(nil)
	f := received("", 1, 1, 0, 10)
	assert.Equal(t, []string{" 1 open+"}, said(e.Add(f, t0)))
	assert.Equal(t, int64(1), e.Stats().WithoutID)
	assert.Zero(t, e.Open())
}

func TestConfigValidate(t *testing.T) {
	good := NewDefaultConfig()
	require.NoError(t, good.Validate())
	for want, change := range map[string]func(*Config){
		"check max_open_findings: got 0; want at least 1": func(c *Config) { c.MaxOpen = 0 },
		"check clean_steps: got -1; want at least 1":      func(c *Config) { c.CleanSteps = -1 },
		"check close_after: got 0s; want more than 0":     func(c *Config) { c.CloseAfter = 0 },
	} {
		cfg := NewDefaultConfig()
		change(&cfg)
		assert.EqualError(t, cfg.Validate(), want)
	}
}

// A source says that a finding still stands by repeating it.
func TestRepetitionKeepsAFindingOpen(t *testing.T) {
	e := engine(func(c *Config) { c.CloseAfter, c.CleanSteps = time.Minute, 5 })
	at := func(id string, rank, step int64, now time.Time) []string {
		f := received(id, 1, rank, 0, step)
		f.StepLast = model.Some(step)
		return said(e.Add(f, now))
	}
	at("a", 1, 10, t0)
	assert.Empty(t, at("a", 1, 18, t0.Add(50*time.Second)))
	assert.Empty(t, e.Tick(t0.Add(100*time.Second)))
	assert.Equal(t, []string{"b 1 open+"}, at("b", 2, 20, t0.Add(100*time.Second)))
	closed := e.Flush()
	assert.Equal(t, model.Some(int64(18)), closed[0].Finding.StepLast)
	assert.Equal(t, int64(18), closed[0].Finding.Time)
	assert.Empty(t, at("a", 1, 30, t0.Add(110*time.Second)), "what is closed stays closed")
}
