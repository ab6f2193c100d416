// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

func TestNotScheduled(t *testing.T) {
	check(t, []told{
		{
			"a rank that has not come and waits for nothing", `
			group W 0-3
			rank 0-2: W ar 41 done; W ar 42
			rank 3: W ar 41 done`,
			desync.Hang,
			[]string{"not_scheduled 3: all_reduce 42 of W; 0-2 wait"},
		}, {
			"who has not come because it waits itself is a victim", `
			group W 0-3
			group P 3,4
			rank 0-2: W ar 41 done; W ar 42
			rank 3: W ar 41 done; P ar 7
			rank 4: P ar 6 done`,
			desync.Hang,
			[]string{"not_scheduled 4: all_reduce 7 of P; 3 wait, 3 more through them"},
		}, {
			"the fault is told over tensor, pipeline and data parallel groups", `
			group T0 0,1
			group T1 2,3
			group T2 4,5
			group T3 6,7
			group D0 0,2,4,6
			group D1 1,3,5,7
			rank 0,2,4: T0=9/9; D0 ar 3 done; D0 ar 4
			rank 1,3,5: D1 ar 3 done; D1 ar 4
			rank 6: D0 ar 3 done; T3 ar 9
			rank 7: D1 ar 3 done; T3 ar 8 done`,
			// 6 waits in its tensor group, 1, 3 and 5 in their data parallel one; 0, 2 and 4 wait for 6.
			desync.Hang,
			[]string{"not_scheduled 7: all_reduce 9 of T3; 6 wait, 6 more through them"},
		}, {
			"all waits at once are one rank's: each of two faults is told, the larger first", `
			group A 0-3
			group B 4-6
			rank 0-2: A ar 42
			rank 3: A ar 41 done
			rank 4-5: B ar 5
			rank 6: B ar 4 done`,
			desync.Hang,
			[]string{
				"not_scheduled 3: all_reduce 42 of A; 0-2 wait",
				"not_scheduled 6: all_reduce 5 of B; 4-5 wait",
			},
		}, {
			"the sender of a message that somebody waits for", `
			group P 0,1
			rank 0: P ar 3 done
			rank 1: P ar 3 done; P recv<0`,
			desync.Hang,
			[]string{"not_scheduled 0: recv 0 -> 1 of P; 1 wait"},
		}, {
			"most have not come: who is in it may be who went wrong", `
			group W 0-7
			rank 0: W ar 41 done; W ar 42
			rank 1-7: W ar 41 done`,
			desync.Undecided,
			[]string{"incomplete_evidence ?1-7,0: all_reduce 42 of W"},
		},
	})
}

// In one finding or in two.
func TestTwoRanksThatMissOneOperation(t *testing.T) {
	const text = `
		group W 0-7
		rank 0-5: W ar 42
		rank 6-7: W ar 41 done`
	rep := conclude(t, text)
	assert.Equal(t, []int64{6, 7}, accused(rep))
	for _, r := range rep.Roots {
		assert.Equal(t, model.ClassNotScheduled, r.Finding.Class)
		assert.Equal(t, []int64{0, 1, 2, 3, 4, 5}, r.Finding.Waiting)
	}
	unmoved(t, text, rep)
}

func TestNobodyWaits(t *testing.T) {
	for name, text := range map[string]string{
		"all is over":          "group W 0-3\nrank 0-3: W ar 41 done; W ar 42 done",
		"some are further":     "group W 0-3\nrank 0-2: W bc 41 done; W bc 42 done\nrank 3: W bc 41 done",
		"nothing was called":   "group W 0-3\nrank 0-3: W=-1/-1",
		"all of Gloo's ranks":  "world 4\ngroup W 0-3 gloo\nrank 0-3: W ar 42 done",
		"a process is stopped": "group W 0-3\nrank 0-3 {stopped}: W ar 42 done",
	} {
		t.Run(name, func(t *testing.T) {
			rep := conclude(t, text)
			assert.Equal(t, desync.Healthy, rep.Verdict)
			assert.Empty(t, rep.Roots)
		})
	}
	assert.Equal(t, desync.NoData, conclude(t, "world 4\nabsent 0-3 missing").Verdict)
}

// Who holds others up has often nothing open itself: where not everybody was seen, that nothing
// is open tells nothing of the job.
func TestNobodyWhoWasSeenWaits(t *testing.T) {
	for name, c := range map[string]struct{ text, why string }{
		"a dump is missing":              {"group W 0-3\nrank 0-2: W ar 42 done\nabsent 3 missing", "of 1 of 4 ranks there is no state"},
		"the culprit's alone":            {"group W 0-15\nrank 9: W ar 42 done", "of 15 of 16 ranks there is no state"},
		"a rank is dead":                 {"group W 0-3\nrank 0-2: W ar 42 done\nabsent 3 dead", "of 1 of 4 ranks there is no state"},
		"a dump is torn":                 {"group W 0-3\nrank 0-2: W ar 42 done\nrank 3 {partial}: W ar 42 done", "of 1 of 4 ranks the state is not whole"},
		"who else there is is not known": {"group W 0-3 gloo\nrank 0-3: W ar 42 done", "how many ranks the job has is recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			rep := conclude(t, c.text)
			assert.Equal(t, desync.Undecided, rep.Verdict)
			assert.Contains(t, rep.MayRun, c.why)
			assert.Empty(t, rep.Roots)
		})
	}
}

func TestProcessDead(t *testing.T) {
	check(t, []told{
		{
			"a member that is gone", `
			group W 0-3
			rank 0-2: W ar 42
			absent 3 dead the pod is gone`,
			desync.Hang,
			[]string{"process_dead 3: all_reduce 42 of W; 0-2 wait"},
		}, {
			"a member that was gone before it came, though its state is known", `
			group W 0-3
			rank 0-2: W ar 42
			rank 3 {dead}: W ar 41 done`,
			desync.Hang,
			[]string{"process_dead 3: all_reduce 42 of W; 0-2 wait"},
		}, {
			"killed within the operation that all have entered", `
			group W 0-7
			rank 0-6 {ring}: W ar 42
			rank 7 {ring dead}: W ar 42`,
			desync.Hang,
			[]string{"process_dead 7: all_reduce 42 of W; 0-6 wait"},
		}, {
			"ended in order while the others go on", `
			group W 0-3
			rank 0-2 {ring}: W ar 42
			rank 3 {ring ended}: W ar 41 done`,
			desync.Hang,
			[]string{"process_dead 3: all_reduce 42 of W; 0-2 wait"},
		},
	})
}

// Libraries kill processes whose operations time out: those are victims.
func TestKilledByTheTimeoutIsAVictim(t *testing.T) {
	t.Run("beside the rank that has not come", func(t *testing.T) {
		rep := conclude(t, `
			group W 0-3
			rank 0-2 {dead}: W ar 42
			rank 3: W ar 41 done`)
		assert.Equal(t, []int64{3}, accused(rep))
	})
	t.Run("all of them", func(t *testing.T) {
		rep := conclude(t, `
			group W 0-3
			rank 0-3 {dead}: W ar 42`)
		assert.Empty(t, accused(rep))
		require.NotEmpty(t, rep.Roots)
		assert.NotEqual(t, model.ClassProcessDead, rep.Roots[0].Finding.Class)
	})
}

func TestDumpMissing(t *testing.T) {
	check(t, []told{
		{
			"all others are in the operation", `
			group W 0-3
			rank 0-2: W ar 42
			absent 3 missing`,
			desync.Undecided,
			[]string{"dump_missing ?3: all_reduce 42 of W; 0-2 wait"},
		}, {
			"one that is missing without a word, by the members alone", `
			group W 0-3
			rank 0-2: W ar 42`,
			desync.Undecided,
			[]string{"dump_missing ?3: all_reduce 42 of W; 0-2 wait"},
		}, {
			"a missing dump of a rank that nobody waits for hides nothing", `
			world 5
			group A 0-3
			group B 4,5
			rank 0-2: A ar 42
			rank 3: A ar 41 done
			rank 5: B ar 9 done
			absent 4 missing`,
			desync.Hang,
			[]string{"not_scheduled 3: all_reduce 42 of A; 0-2 wait"},
		}, {
			"the missing rank may wait for one that is idle", `
			group W 0-3
			group P 3,4
			rank 0-2: W ar 42
			rank 4: P ar 7 done
			absent 3 missing`,
			desync.Undecided,
			[]string{"incomplete_evidence ?3-4: all_reduce 42 of W; 0-2 wait"},
		}, {
			"the missing rank may wait for another missing one", `
			group W 0-3
			group P 3,4
			rank 0-2: W ar 42
			absent 3-4 missing`,
			desync.Undecided,
			[]string{"incomplete_evidence ?3-4: all_reduce 42 of W; 0-2 wait"},
		}, {
			"two of one operation are missing", `
			group W 0-7
			rank 0-5: W ar 42
			absent 6-7 late`,
			desync.Undecided,
			[]string{"incomplete_evidence ?6-7: all_reduce 42 of W; 0-5 wait"},
		},
	})
}

// A dump that is missing must not keep what the others prove from being told.
func TestAMissingDumpDoesNotHideWhatOthersProve(t *testing.T) {
	check(t, []told{
		{
			"a member that has not come, beside one that is missing", `
			group W 0-7
			rank 0-5: W ar 42
			rank 6: W ar 41 done
			absent 7 missing`,
			desync.Hang,
			[]string{"not_scheduled 6: all_reduce 42 of W; 0-5 wait"},
		}, {
			"operations that differ, beside one that is missing", `
			group W 0-7
			rank 0-5: W ar 42
			rank 6: W ag 42
			absent 7 missing`,
			desync.Hang,
			[]string{"mismatch_op 6: all_reduce 42 of W; 0-5 wait"},
		},
	})
}

func TestHeldProcesses(t *testing.T) {
	for state, text := range map[string]string{"stopped": "stopped", "traced": "traced", "frozen": "frozen"} {
		rep := conclude(t, `
			group W 0-3
			rank 0-2: W ar 42
			rank 3 {`+text+`}: W ar 41 done`)
		require.Equal(t, []string{"process_stopped 3: all_reduce 42 of W; 0-2 wait"}, said(rep))
		assert.Contains(t, evidence.Encode(rep.Roots[0].Finding.Evidence), state)
	}
}

// Running, but in something: scopes are named as lockstep_scope names them.
func TestCauseIsWhatTheHostIsIn(t *testing.T) {
	for scope, cause := range map[string]string{
		"data_loading": "dataloader", "garbage_collection": "gc", "compile": "compile",
		"checkpoint_save": "checkpoint", "checkpoint_load": "checkpoint", "forward": "unknown",
	} {
		rep := conclude(t, `
			group W 0-3
			rank 0-2: W ar 42
			rank 3 {scope=`+scope+` host=n7}: W ar 41 done stack=train.py:10`)
		require.Len(t, rep.Roots, 1)
		f := rep.Roots[0].Finding
		assert.Equal(t, cause, f.Cause, scope)
		assert.Equal(t, "n7", f.Host)
		assert.Equal(t, "train.py:10", f.Stack)
		assert.Equal(t, model.SeverityError, f.Severity)
	}
}

func TestInitIncomplete(t *testing.T) {
	check(t, []told{
		{
			"a member without the communicator, in its first operation", `
			group W 0-3
			group N 0-3
			rank 0-2: W ar 41 done; N ar 1
			rank 3: W ar 41 done; N=-`,
			desync.Hang,
			[]string{"init_incomplete 3: all_reduce 1 of N; 0-2 wait"},
		}, {
			"a member that knows it, and has not come", `
			group W 0-3
			group N 0-3
			rank 0-2: W ar 41 done; N ar 1
			rank 3: W ar 41 done; N=0/0`,
			desync.Hang,
			[]string{"not_scheduled 3: all_reduce 1 of N; 0-2 wait"},
		},
	})
}
