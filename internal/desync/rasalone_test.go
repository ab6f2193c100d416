// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// poll is one answer of RAS: how many all-reduces each rank of one communicator has launched;
// 0 is a rank that does not answer.
func poll(a *desync.Analyzer, at time.Duration, launched ...int64) {
	members := make([]int64, len(launched))
	for i := range members {
		members[i] = int64(i)
	}
	for rank, n := range launched {
		if n == 0 {
			continue
		}
		a.Add(&model.RankState{
			Rank: model.Rank{JobID: "j", Rank: int64(rank)}, Time: int64(time.Hour + at), Source: model.StateRAS, Process: model.ProcessRunning,
			Comms: []model.CommState{{
				Comm: model.Comm{ID: "0xab"}, Members: members, Scope: model.ScopeCommFunc,
				Frontiers: []model.Frontier{{Func: model.AllReduce, Enqueued: model.Some(n - 1)}},
			}},
		})
	}
}

// Launches alone name candidates, once two answers have shown that nobody moves.
func TestCountsAloneNameCandidates(t *testing.T) {
	a := desync.New(desync.Config{})
	poll(a, 0, 17, 17, 16, 17)
	poll(a, 30*time.Second, 17, 17, 16, 17)
	rep := a.Conclude(0)
	assert.Equal(t, desync.Undecided, rep.Verdict)
	require.Len(t, rep.Roots, 1)
	f := rep.Roots[0].Finding
	assert.Equal(t, model.ClassIncompleteEvidence, f.Class)
	assert.False(t, f.Rank.OK)
	assert.Empty(t, f.Ranks)
	assert.Equal(t, []int64{2}, f.Candidates)
	assert.Equal(t, []int64{0, 1, 3}, f.Waiting)

	// Who does not answer is a candidate, too.
	a = desync.New(desync.Config{})
	poll(a, 0, 17, 0, 16, 17)
	poll(a, 30*time.Second, 17, 0, 16, 17)
	rep = a.Conclude(0)
	require.Len(t, rep.Roots, 1)
	assert.Equal(t, []int64{1, 2}, rep.Roots[0].Finding.Candidates)
}

// Counts differ in a job that runs, too: one answer, answers at once, one rank that moves, or
// equal counts say nothing.
func TestCountsOfAJobThatMayRunSayNothing(t *testing.T) {
	for name, polls := range map[string]func(a *desync.Analyzer){
		"one answer": func(a *desync.Analyzer) { poll(a, 0, 17, 17, 16, 17) },
		"at once": func(a *desync.Analyzer) {
			poll(a, 0, 17, 17, 16, 17)
			poll(a, time.Second, 17, 17, 16, 17)
		},
		"it moves": func(a *desync.Analyzer) {
			poll(a, 0, 17, 17, 16, 17)
			poll(a, 30*time.Second, 17, 17, 17, 17)
		},
		"another moves": func(a *desync.Analyzer) {
			poll(a, 0, 17, 17, 16, 17)
			poll(a, 30*time.Second, 18, 17, 16, 17)
		},
		"even": func(a *desync.Analyzer) {
			poll(a, 0, 17, 17, 17, 17)
			poll(a, 30*time.Second, 17, 17, 17, 17)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := desync.New(desync.Config{})
			polls(a)
			rep := a.Conclude(0)
			assert.Equal(t, desync.NoData, rep.Verdict)
			assert.Empty(t, rep.Roots)
		})
	}
}

// A peer that RAS considers dead is one, unless the others go on without it.
func TestCountsAndADeadPeer(t *testing.T) {
	dead := model.Absence{Rank: 2, Reason: model.AbsentDead, Detail: "NCCL's RAS considers it dead"}
	a := desync.New(desync.Config{})
	poll(a, 0, 17, 17, 0, 16)
	a.AddAbsence(dead)
	rep := a.Conclude(0)
	assert.Equal(t, desync.Hang, rep.Verdict)
	require.Len(t, rep.Roots, 1)
	f := rep.Roots[0].Finding
	assert.Equal(t, model.ClassProcessDead, f.Class)
	assert.Equal(t, model.Some(int64(2)), f.Rank)
	assert.Equal(t, []int64{0, 1, 3}, f.Waiting)

	a = desync.New(desync.Config{})
	poll(a, 0, 17, 17, 0, 16)
	poll(a, 30*time.Second, 20, 20, 0, 20)
	a.AddAbsence(dead)
	assert.Equal(t, desync.NoData, a.Conclude(0).Verdict)
}
