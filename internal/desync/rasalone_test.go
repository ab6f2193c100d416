// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
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
		answered(a, at, int64(rank), counted{"0xab", members, map[string]int64{model.AllReduce: n}})
	}
}

// counted is what one rank has launched on one communicator.
type counted struct {
	comm    string
	members []int64
	counts  map[string]int64
}

func answered(a *desync.Analyzer, at time.Duration, rank int64, comms ...counted) {
	s := &model.RankState{
		Rank: model.Rank{JobID: "j", Rank: rank, HostName: "n1"}, Time: int64(time.Hour + at), Source: model.StateRAS, Process: model.ProcessRunning,
		Name: fmt.Sprintf("ras.json: process %d on n1, GPU %d", 3000+rank, rank),
	}
	for _, c := range comms {
		to := model.CommState{Comm: model.Comm{ID: c.comm}, Members: c.members, Scope: model.ScopeCommFunc}
		for i, m := range c.members {
			if m == rank {
				to.Comm.Rank = model.Some(int64(i))
			}
		}
		for fn, n := range c.counts {
			if n > 0 {
				to.Frontiers = append(to.Frontiers, model.Frontier{Func: fn, Enqueued: model.Some(n - 1)})
			}
		}
		s.Comms = append(s.Comms, to)
	}
	a.Add(s)
}

// Launches alone name the rank that is behind and the operation, once two answers have shown that
// nothing moves.
func TestCountsAlone_TwoAnswers_NameTheRankBehind(t *testing.T) {
	a := desync.New(desync.Config{})
	poll(a, 0, 17, 17, 16, 17)
	poll(a, 30*time.Second, 17, 17, 16, 17)
	rep := a.Conclude(0)
	assert.Equal(t, desync.Hang, rep.Verdict)
	require.Len(t, rep.Roots, 1)
	f := rep.Roots[0].Finding
	assert.Equal(t, model.ClassNotScheduled, f.Class)
	assert.Equal(t, model.Some(int64(2)), f.Rank)
	assert.Equal(t, "AllReduce 17", f.Op)
	assert.Equal(t, "0xab", f.CommID)
	assert.Equal(t, []int64{0, 1, 3}, f.Waiting)
	assert.Contains(t, evidence.Encode(f.Evidence), "AllReduce: 3 ranks launched 17, rank 2 16")
	assert.InDelta(t, 0.6, f.Confidence, 0.01)
	assert.Contains(t, evidence.Encode(f.Evidence), "process 3002 on n1, GPU 2")

	// A rank that does not answer is a candidate, too.
	a = desync.New(desync.Config{})
	poll(a, 0, 17, 0, 16, 17)
	poll(a, 30*time.Second, 17, 0, 16, 17)
	rep = a.Conclude(0)
	require.Len(t, rep.Roots, 1)
	assert.Equal(t, []int64{1, 2}, rep.Roots[0].Finding.Candidates)
	assert.Equal(t, desync.Undecided, rep.Verdict)
	assert.Equal(t, "AllReduce 17", rep.Roots[0].Finding.Op)
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

// Of saved answers one is judged: it shows who is behind, and not whether the job hangs.
func TestSavedAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		polls   func(a *desync.Analyzer)
		hung    bool
		verdict desync.Verdict
		mayRun  string
		rank    model.Optional[int64]
	}{
		"one answer": {
			func(a *desync.Analyzer) { poll(a, 0, 641, 641, 640, 641) }, false, desync.Undecided, "one moment", model.Some(int64(2)),
		},
		"one answer of a job that hung": {
			func(a *desync.Analyzer) { poll(a, 0, 641, 641, 640, 641) }, true, desync.Hang, "", model.Some(int64(2)),
		},
		"the same moment twice": {
			func(a *desync.Analyzer) { poll(a, 0, 641, 641, 640, 641); poll(a, time.Second, 641, 641, 640, 641) },
			false, desync.Undecided, "one moment", model.Some(int64(2)),
		},
		"nothing moves in 10 s": {
			func(a *desync.Analyzer) { poll(a, 0, 641, 641, 640, 641); poll(a, 10*time.Second, 641, 641, 640, 641) },
			false, desync.Hang, "", model.Some(int64(2)),
		},
		"it moved, and stood then": {
			func(a *desync.Analyzer) {
				poll(a, 0, 600, 600, 600, 600)
				poll(a, 10*time.Second, 641, 641, 640, 641)
				poll(a, 20*time.Second, 641, 641, 640, 641)
			}, false, desync.Hang, "", model.Some(int64(2)),
		},
		"it moves": {
			func(a *desync.Analyzer) { poll(a, 0, 640, 640, 640, 640); poll(a, 10*time.Second, 641, 641, 640, 641) },
			false, desync.Undecided, "went on between two answers", model.Some(int64(2)),
		},
		"it went on, and is even": {
			func(a *desync.Analyzer) { poll(a, 0, 641, 641, 640, 641); poll(a, 10*time.Second, 650, 650, 650, 650) },
			false, desync.Healthy, "",
			model.Optional[int64]{},
		},
		"even": {
			func(a *desync.Analyzer) { poll(a, 0, 641, 641, 641, 641) }, false, desync.Undecided, "does not count what has ended", model.Optional[int64]{},
		},
		"even, of a job that hung": {
			func(a *desync.Analyzer) { poll(a, 0, 641, 641, 641, 641) }, true, desync.Undecided, "does not count what has ended", model.Optional[int64]{},
		},
		"far behind": {
			func(a *desync.Analyzer) { poll(a, 0, 641, 641, 12, 641) }, true, desync.Hang, "", model.Some(int64(2)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := desync.New(desync.Config{})
			a.SetSaved(tc.hung, "these show one moment")
			tc.polls(a)
			rep := a.Conclude(0)
			assert.Equal(t, tc.verdict, rep.Verdict)
			assert.Contains(t, rep.MayRun, tc.mayRun)
			assert.Equal(t, tc.mayRun == "", rep.MayRun == "")
			assert.Equal(t, 4, rep.Ranks)
			assert.Empty(t, rep.Absent)
			if !tc.rank.OK {
				assert.Empty(t, rep.Roots)
				return
			}
			require.Len(t, rep.Roots, 1)
			assert.Equal(t, tc.rank, rep.Roots[0].Finding.Rank)
		})
	}
}

// Communicators are compared together: a rank that is behind in one and ahead in another may wait
// there, and is not the suspect.
func TestSavedAnswers_SeveralCommunicators(t *testing.T) {
	ar, ag := model.AllReduce, "all_gather"
	left, right, across := []int64{0, 1}, []int64{2, 3}, []int64{1, 3}
	one := func(comm string, members []int64, fn string, n int64) counted {
		return counted{comm, members, map[string]int64{fn: n}}
	}
	for name, tc := range map[string]struct {
		counts  [4][]counted
		class   string
		ranks   []int64
		op      string
		commID  string
		notWith []int64
	}{
		"behind in one, even elsewhere": {
			[4][]counted{{one("a", left, ar, 9)}, {one("a", left, ar, 9), one("c", across, ag, 5)}, {one("b", right, ar, 8)}, {one("b", right, ar, 9), one("c", across, ag, 5)}},
			model.ClassNotScheduled,
			[]int64{2},
			"AllReduce 9", "b", nil,
		},
		"behind here because it waits there": {
			// 1 is behind 0 in a, and ahead of 3 in c: 3 is the suspect.
			[4][]counted{{one("a", left, ar, 9)}, {one("a", left, ar, 8), one("c", across, ag, 5)}, {one("b", right, ar, 9)}, {one("b", right, ar, 9), one("c", across, ag, 4)}},
			model.ClassNotScheduled,
			[]int64{3},
			"AllGather 5", "c",
			[]int64{1},
		},
		"a chain of three": {
			[4][]counted{{one("a", left, ar, 9)}, {one("a", left, ar, 8), one("c", across, ag, 5)}, {one("b", right, ar, 2)}, {one("b", right, ar, 3), one("c", across, ag, 4)}},
			model.ClassNotScheduled,
			[]int64{2},
			"AllReduce 3", "b",
			[]int64{1, 3},
		},
		"a round": {
			[4][]counted{{one("a", left, ar, 9), one("d", []int64{0, 1}, ag, 3)}, {one("a", left, ar, 8), one("d", []int64{0, 1}, ag, 4)}, {one("b", right, ar, 9)}, {one("b", right, ar, 9)}},
			model.ClassIncompleteEvidence, nil, "AllReduce 9", "a", nil,
		},
		"another function in its place": {
			[4][]counted{
				{counted{"w", []int64{0, 1, 2, 3}, map[string]int64{ag: 641, ar: 10}}},
				{counted{"w", []int64{0, 1, 2, 3}, map[string]int64{ag: 641, ar: 10}}},
				{counted{"w", []int64{0, 1, 2, 3}, map[string]int64{ag: 640, ar: 11}}},
				{counted{"w", []int64{0, 1, 2, 3}, map[string]int64{ag: 641, ar: 10}}},
			},
			model.ClassMismatchOp,
			[]int64{2},
			"AllGather 641", "w", nil,
		},
		"none launched yet": {
			[4][]counted{
				{one("w", []int64{0, 1, 2, 3}, ar, 1)}, {one("w", []int64{0, 1, 2, 3}, ar, 1)}, {one("w", []int64{0, 1, 2, 3}, ar, 0)}, {one("w", []int64{0, 1, 2, 3}, ar, 1)},
			},
			model.ClassNotScheduled,
			[]int64{2},
			"AllReduce 1", "w", nil,
		},
		"one is ahead alone": {
			[4][]counted{
				{one("w", []int64{0, 1, 2, 3}, ar, 9)}, {one("w", []int64{0, 1, 2, 3}, ar, 9)}, {one("w", []int64{0, 1, 2, 3}, ar, 10)}, {one("w", []int64{0, 1, 2, 3}, ar, 9)},
			},
			model.ClassIncompleteEvidence, nil, "AllReduce 10", "w", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, unnumbered := range []bool{false, true} {
				a := desync.New(desync.Config{})
				a.SetSaved(true, "")
				a.SetJob(desync.Job{ID: "j", Unnumbered: unnumbered})
				for rank, comms := range tc.counts {
					answered(a, 0, int64(rank), comms...)
				}
				rep := a.Conclude(0)
				require.Len(t, rep.Roots, 1)
				f := rep.Roots[0].Finding
				assert.Equal(t, tc.class, f.Class)
				assert.Equal(t, tc.op, f.Op)
				assert.Equal(t, tc.commID, f.CommID)
				if unnumbered {
					assert.Empty(t, f.Ranks)
					assert.False(t, f.Rank.OK, "a number that is no rank is in no finding")
					assert.Empty(t, f.Candidates)
					assert.Empty(t, f.Waiting)
					if len(tc.ranks) == 1 {
						assert.Contains(t, evidence.Encode(f.Evidence), fmt.Sprintf("process %d on n1, GPU %d", 3000+tc.ranks[0], tc.ranks[0]))
						assert.Equal(t, "n1", f.Host)
					}
					continue
				}
				assert.Equal(t, tc.ranks, f.Ranks)
				for _, r := range tc.notWith {
					assert.NotContains(t, blamedIn(rep), r)
				}
			}
		})
	}
}

// That members have called different functions shows in one moment of a job, whatever it does then.
func TestSavedAnswers_OtherFunction_HangsWithoutASecondAnswer(t *testing.T) {
	a := desync.New(desync.Config{})
	a.SetSaved(false, "")
	for rank := range int64(4) {
		n := map[string]int64{"all_gather": 5, model.AllReduce: 7}
		if rank == 1 {
			n = map[string]int64{"all_gather": 6, model.AllReduce: 6}
		}
		answered(a, 0, rank, counted{"w", []int64{0, 1, 2, 3}, n})
	}
	rep := a.Conclude(0)
	assert.Equal(t, desync.Hang, rep.Verdict)
	require.Len(t, rep.Roots, 1)
	assert.Equal(t, model.Some(int64(1)), rep.Roots[0].Finding.Rank)
	assert.Contains(t, evidence.Encode(rep.Roots[0].Finding.Evidence), "AllGather: 3 ranks launched 5, rank 1 6")
}

func blamedIn(rep *desync.Report) (all []int64) {
	for i := range rep.Roots {
		all = append(all, rep.Roots[i].Finding.Ranks...)
	}
	return all
}
