// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// A rank that others took for dead, and that completes operations afterwards, lives: when another
// hangs later, that one alone is told of.
func TestWhoWasTakenForDeadAndLives(t *testing.T) {
	for _, opens := range []bool{false, true} {
		p := newPlant(t, 4, 100*time.Millisecond)
		p.opens = opens
		p.run(30 * time.Second)
		p.w.AddAbsence(&p.ranks[1].rank, model.Absence{Rank: 1, Reason: model.AbsentDead, Detail: "RAS considers it dead"}, p.now)
		p.run(30 * time.Second)
		assert.False(t, p.w.jobs[jobKey{"job", "life"}].ranks[1].gone)
		p.ranks[2].stuck = true
		p.run(2 * time.Minute)
		require.Len(t, p.w.Standing(), 1)
		assert.Equal(t, model.Some(int64(2)), p.w.Standing()[0].Rank)
	}
}

// A source that does not know the life of a job reports on the latest one, however long the job's name is.
func TestWatch_JobOfALongNameWithoutLife_IsItsLatest(t *testing.T) {
	w, now := New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
	for _, incarnation := range []string{"life", ""} {
		s := still(0, now.UnixNano(), true)
		s.Rank.JobID, s.Rank.Incarnation = strings.Repeat("j", 2000), incarnation
		w.AddState(s, now)
	}
	assert.Len(t, w.jobs, 1)
}

// jumped is a state of a rank whose clock was set forward since it enqueued its operation.
func (p *plant) jumped(r *worker, by time.Duration) {
	s := model.RankState{
		Rank: r.rank, Time: p.now.Add(by).UnixNano(), Source: model.StateRankEvents, Name: "ring", Process: r.process, LastEnqueue: r.enqueued.UnixNano(),
	}
	c := model.CommState{
		Comm: model.Comm{ID: "0xabc", Name: "world"}, Backend: "nccl", Scope: model.ScopeCommFunc, Members: []int64{0, 1, 2, 3},
		Frontiers: []model.Frontier{{Func: model.AllReduce, Completed: model.Some(r.seq - 1), Enqueued: model.Some(r.seq - 1)}},
	}
	if r.inOp {
		c.Frontiers[0].Enqueued = model.Some(r.seq)
		s.Ops = []model.StateOp{{Kind: model.KindCollective, Name: model.AllReduce, Seq: r.seq, Created: r.enqueued.UnixNano(), Bytes: model.Some(r.bytes)}}
	}
	s.Comms = []model.CommState{c}
	p.w.AddState(&s, p.now)
}

// A clock that is set forward by an hour makes nothing an hour old: who was heard to complete
// something seconds ago has not stood for longer.
func TestAClockThatIsSetForward(t *testing.T) {
	p := newPlant(t, 4, 1500*time.Millisecond)
	p.run(20 * time.Minute)
	require.Empty(t, p.findings)
	p.ranks[1].busy = p.now.Add(time.Hour)
	for !p.ranks[0].inOp || !p.ranks[2].inOp || !p.ranks[3].inOp {
		p.run(tickEvery)
	}
	for _, r := range p.ranks {
		r.reported = true // its own states are replaced by those of the new clock
	}
	for range 3 {
		p.run(2 * time.Second)
		for _, r := range p.ranks {
			p.jumped(r, time.Hour)
		}
	}
	p.run(time.Second)
	assert.Empty(t, p.findings, "seven seconds of a pause")
}

// Nor has an operation stood for longer than since one before it was heard to end.
func TestAnOperationAfterTheClockWasSet(t *testing.T) {
	now := time.Unix(1_760_000_000, 0)
	r := rank{comms: map[string]*progress{"c": {came: now.Add(-3 * time.Second)}}}
	s := still(0, now.Add(time.Hour).UnixNano(), true)
	s.Ops[0].Created = now.UnixNano()
	require.True(t, r.take(s, now))
	assert.Equal(t, 3*time.Second, r.states[s.Source].standing("c", now))
}

// A late word of a life that is over ends nothing of the one that goes on, and hangs.
func TestAWordOfAFormerLife(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.ranks[2].stuck = true
	p.run(20 * time.Second)
	require.Len(t, p.w.Standing(), 1)
	p.w.AddState(&model.RankState{Rank: model.Rank{JobID: "job", Incarnation: "former", Rank: 0}, Time: 1, Source: model.StateRankEvents}, p.now)
	p.run(15 * time.Minute)
	assert.Len(t, p.w.Standing(), 1, "it hangs still")
}

// A job that is started anew and tells no other incarnation hangs no more.
func TestARestartThatTellsNoLife(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	for _, r := range p.ranks {
		r.rank.Incarnation = ""
	}
	p.run(30 * time.Second)
	p.ranks[2].stuck = true
	p.run(20 * time.Second)
	require.Len(t, p.w.Standing(), 1)
	for _, r := range p.ranks {
		r.mute = true
	}
	p.run(15 * time.Second) // the job is killed, and its agents with it
	for i, r := range p.ranks {
		r.mute, r.stuck, r.inOp, r.seq, r.told = false, false, false, 0, false
		r.rank.PID = model.Some(int64(5000 + i))
	}
	p.run(2 * time.Minute)
	assert.Empty(t, p.w.Standing())
}

// What is open of a job is one number, however many lives of it are known.
func TestHangsOfAJobOfTwoLives(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(40 * time.Second)
	for _, r := range p.ranks {
		r.rank.Incarnation, r.rank.PID = "second", model.Some(2000+r.rank.Rank)
	}
	p.run(30 * time.Second)
	p.ranks[2].stuck = true
	p.run(20 * time.Second)
	require.Len(t, p.w.Standing(), 1)
	hangs := p.w.Hangs()
	require.Len(t, hangs, 1)
	assert.Equal(t, 1, hangs[0].Findings)

	most := 0
	for _, j := range p.w.jobs {
		j.replaced = false // both go on
		most = max(most, j.rhythm.phases[model.PhaseTrain].Len())
	}
	limits := p.w.Limits()
	require.Len(t, limits, 1)
	assert.Equal(t, most, limits[0].Gaps)
}

// Two things that are wrong with one rank at once are two findings, each told once.
func TestTwoRootsOfOneRank(t *testing.T) {
	root := func(class, op string) desync.Root {
		return desync.Root{Finding: model.Finding{Class: class, Rank: model.Some(int64(1)), Op: op, CommID: "c", Waiting: []int64{0}, Start: 1_760_000_000_000_000_000}}
	}
	w := newWatch(NewDefaultConfig(), func(*Evidence) *desync.Report {
		return &desync.Report{Roots: []desync.Root{root(model.ClassMismatchSize, "a 1"), root(model.ClassMismatchOp, "b 2")}}
	})
	now, told := time.Unix(1_760_000_000, 0), 0
	began := now.UnixNano()
	for range 1600 {
		now = now.Add(500 * time.Millisecond)
		for r := range int64(2) {
			s := still(r, now.UnixNano(), true)
			s.Ops[0].Created = began
			w.AddState(s, now)
		}
		told += len(w.Tick(now))
	}
	assert.Equal(t, 2, told)
	assert.Len(t, w.Standing(), 2)
}
