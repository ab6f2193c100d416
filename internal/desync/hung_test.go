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

// habit is a history that says the same of every rank.
func habit(state desync.HabitState) func(int64, []int64) desync.Habit {
	return func(int64, []int64) desync.Habit { return desync.Habit{State: state, Text: "as its history says"} }
}

const oneLateOfGloo = "world 4\ngroup W 0-3 gloo\nrank 0-2: W ar 41 done; W ar 42\nrank 3: W ar 41 done"

// What the history of a job says of a rank that has not come decides, with a person's word that the
// job hung and without it.
func TestHabit(t *testing.T) {
	for _, c := range []struct {
		name    string
		state   desync.HabitState
		hung    bool
		verdict desync.Verdict
		sure    float64
	}{
		{"it was seldom so", desync.HabitRare, true, desync.Hang, 0.6},
		{"it was so at times", desync.HabitSome, true, desync.Hang, 0.5},
		{"little is recorded", desync.HabitUnknown, true, desync.Hang, 0.4},
		{"it was mostly so", desync.HabitUsual, true, desync.Undecided, 0},
		{"it was seldom so, and nobody says that it hung", desync.HabitRare, false, desync.Hang, 0.4},
		{"it was so at times, and nobody says that it hung", desync.HabitSome, false, desync.Hang, 0.4},
		{"little is recorded, and nobody says that it hung", desync.HabitUnknown, false, desync.Undecided, 0},
		{"it was mostly so, and nobody says that it hung", desync.HabitUsual, false, desync.Undecided, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := doubted(t, oneLateOfGloo, desync.Doubt{TimesLost: "the files are copies", Hung: c.hung, Habit: habit(c.state)})
			assert.Equal(t, c.verdict, rep.Verdict)
			assert.Equal(t, c.hung, rep.Hung)
			if c.verdict == desync.Undecided {
				assert.Empty(t, rep.Roots)
				assert.Contains(t, rep.MayRun, "as its history says")
				assert.Contains(t, rep.MayRun, "py-spy dump")
				return
			}
			require.Len(t, rep.Roots, 1)
			f := &rep.Roots[0].Finding
			assert.Equal(t, []int64{3}, f.Ranks)
			assert.Equal(t, model.ClassNotScheduled, f.Class)
			assert.InDelta(t, c.sure, f.Confidence, 1e-9)
			assert.Contains(t, evidence.Encode(f.Evidence), "as its history says")
			assert.Equal(t, !c.hung, rep.Untimed)
			if !c.hung {
				assert.Contains(t, evidence.Encode(f.Evidence), "the files are copies")
			}
		})
	}
}

// Of NCCL two pieces of evidence are enough without a history, as before.
func TestHabitOfNCCL(t *testing.T) {
	const late = "group W 0-3\nrank 0-2: W ar 42\nrank 3: W ar 41 done"
	lost := desync.Doubt{TimesLost: "the files are copies", Habit: habit(desync.HabitUnknown)}
	before := doubted(t, late, desync.Doubt{}).Roots[0].Finding.Confidence
	for _, hung := range []bool{false, true} {
		lost.Hung = hung
		rep := doubted(t, late, lost)
		assert.Equal(t, []int64{3}, accused(rep))
		assert.GreaterOrEqual(t, rep.Roots[0].Finding.Confidence, before)
		assert.LessOrEqual(t, rep.Roots[0].Finding.Confidence, 0.75)
	}
}

// That all have entered an operation is no reason of Gloo's, whose dumps somebody asked for at any
// moment. Those of NCCL are written where something ran out: with a person's word it is one.
func TestAllHaveEnteredIt(t *testing.T) {
	lost := desync.Doubt{TimesLost: "the files are copies", Habit: habit(desync.HabitUnknown)}
	for _, c := range []struct {
		text    string
		hung    bool
		verdict desync.Verdict
	}{
		{"world 4\ngroup W 0-3 gloo\nrank 0-3: W ar 42", false, desync.Undecided},
		{"world 4\ngroup W 0-3 gloo\nrank 0-3: W ar 42", true, desync.Undecided},
		{"world 4\ngroup P 0-1 gloo\ngroup Q 2-3 gloo\nrank 0-1: P ar 42\nrank 2-3: Q ar 42", true, desync.Undecided},
		{"group W 0-3\nrank 0-3: W ar 42", false, desync.Undecided},
		{"group W 0-3\nrank 0-3: W ar 42", true, desync.Hang},
	} {
		lost.Hung = c.hung
		rep := doubted(t, c.text, lost)
		assert.Equal(t, c.verdict, rep.Verdict, c.text)
		assert.Empty(t, accused(rep))
		if c.verdict == desync.Undecided {
			assert.Empty(t, rep.Roots, "nobody is a candidate")
			assert.Contains(t, rep.MayRun, "members have entered all_reduce 42")
		} else {
			assert.Equal(t, model.ClassStalledOp, rep.Roots[0].Finding.Class)
			assert.Empty(t, rep.MayRun)
		}
	}
}

// Who is late where the job shows elsewhere that it runs is late for a moment.
func TestOneThatRunsExcusesTheOther(t *testing.T) {
	const text = "world 4\ngroup P 0-1 gloo\ngroup Q 2-3 gloo\nrank 0: P ar 7 done; P ar 8\nrank 1: P ar 7 done\nrank 2: Q ar 7 done; Q ar 8\nrank 3: Q ar 7 done\n"
	only := func(usual int64) desync.Doubt {
		return desync.Doubt{TimesLost: "the files are copies", Hung: true, Habit: func(rank int64, _ []int64) desync.Habit {
			if rank == usual {
				return desync.Habit{State: desync.HabitUsual, Text: "mostly so"}
			}
			return desync.Habit{State: desync.HabitRare, Text: "seldom so"}
		}}
	}
	assert.Equal(t, []int64{1, 3}, accused(doubted(t, text, only(9))))
	for _, usual := range []int64{1, 3} {
		rep := doubted(t, text, only(usual))
		assert.Empty(t, rep.Roots)
		assert.Contains(t, rep.MayRun, "mostly so")
	}
}

// States that contradict one another show that the job moved, whatever a person says; so does that
// nothing is open for long.
func TestHungThatMoved(t *testing.T) {
	for _, c := range []struct{ name, text, why string }{
		{"of NCCL", "group W 0-2\nrank 0-1: W ar 41 done; W ar 42\nrank 2: W=40/40", "the job went on while its states were taken"},
		{"of Gloo", "world 4\ngroup W 0-3 gloo\nrank 0-1: W ar 9 done; W ar 10 done; W ar 11\nrank 2-3: W ar 9 done", "the job went on while its states were taken"},
		{"nothing is open", "group W 0-1\nrank 0-1: W ar 41 done", "nothing that was seen stands still"},
		{"it is open for a moment", "group W 0-1\nrank 0 {t=10}: W ar 41 at=9\nrank 1 {t=10}: W ar 40 done at=9", "nothing that was seen stands still"},
	} {
		rep := doubted(t, c.text, desync.Doubt{Hung: true, Habit: habit(desync.HabitRare)})
		assert.Equal(t, desync.Undecided, rep.Verdict, c.name)
		assert.Empty(t, rep.Roots, c.name)
		assert.Contains(t, rep.MayRun, c.why, c.name)
	}
}

// A rank without a dump comes first where others wait for it, then who has not come and waits for
// nothing.
func TestLikeliestFirst(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []int64
	}{
		{"of NCCL", "world 4\ngroup W 0-3\nrank 0-1: W ar 42\nabsent 2 missing\nabsent 3 missing", []int64{2, 3, 0, 1}},
		{"of Gloo, its members not known", "world 4\ngroup P 2-3 gloo\ngroup D 0,2 gloo\ngroup E 1,3 gloo\nrank 0: D ar 5 done; D ar 6\nrank 1: E ar 6 done\n" +
			"rank 2: D ar 5 done; P ar 11\nabsent 3 missing", []int64{3, 1, 2}},
		{"who differs by size, last by number", "group W 0-2 gloo\nrank 0-1: W ar 5 n=4\nrank 2: W ar 5 n=8", []int64{2, 0, 1}},
		{"who differs by size, in the middle", "group W 0-2 gloo\nrank 0: W ar 5 n=4\nrank 1: W ar 5 n=8\nrank 2: W ar 5 n=4", []int64{1, 0, 2}},
		{"who has not come before who waits", "group W 0-7\nrank 0: W ar 42\nrank 1-7: W ar 41 done", []int64{1, 2, 3, 4, 5, 6, 7, 0}},
	} {
		rep := conclude(t, c.text)
		require.NotEmpty(t, rep.Roots, c.name)
		assert.Equal(t, c.want, rep.Roots[0].Finding.Candidates, c.name)
	}
}

// Where a person says that the job hung, and somebody without a dump is waited for, the likeliest three
// are listed, and all are counted.
func TestFewCandidates(t *testing.T) {
	const text = "world 8\ngroup P 0-1 gloo\ngroup D 0,2,4,6 gloo\ngroup E 1,3,5,7 gloo\nrank 0: P ar 11\nrank 2: D ar 6\nrank 4: D ar 6\nrank 6: D ar 6\n" +
		"rank 3: E ar 6 done\nrank 5: E ar 6 done\nrank 7: E ar 6 done\nabsent 1 missing"
	for _, hung := range []bool{false, true} {
		rep := doubted(t, text, desync.Doubt{Hung: hung})
		require.Len(t, rep.Roots, 1)
		f := &rep.Roots[0].Finding
		assert.Equal(t, int64(1), f.Candidates[0])
		assert.Greater(t, f.CandidatesCount.V, int64(3))
		if hung {
			assert.Len(t, f.Candidates, 3)
		} else {
			assert.Len(t, f.Candidates, int(f.CandidatesCount.V))
		}
	}
}

// Where all that were seen came out of what failed, who left no dump is a candidate.
func TestOnlyTheUnseenIsLeft(t *testing.T) {
	rep := doubted(t, "world 4\ngroup W 0-3 gloo\nrank 0-2: W ar 9 done; W ar 10 done\nabsent 3 missing", desync.Doubt{Hung: true})
	assert.Equal(t, desync.Undecided, rep.Verdict)
	require.Len(t, rep.Roots, 1)
	f := &rep.Roots[0].Finding
	assert.Equal(t, []int64{3}, f.Candidates)
	assert.Equal(t, model.ClassDumpMissing, f.Class)
	assert.InDelta(t, 0.3, f.Confidence, 1e-9)
	assert.Contains(t, rep.MayRun, "of 1 of 4 ranks there is no state")
}

// Gloo records no messages: who does not come may be in one, and its other end is nobody that waits
// for it in an operation.
func TestOtherEndOfAMessage(t *testing.T) {
	known := desync.Doubt{TimesLost: "the files are copies", Hung: true, Habit: habit(desync.HabitRare)}
	const ring = "world 4\ngroup P 0-1 gloo\ngroup D 0,2 gloo\ngroup E 1,3 gloo\n"
	for _, c := range []struct {
		text string
		want []int64
	}{
		{ring + "rank 0: P ar 10 done; D ar 5 done; P ar 11\nrank 1: P ar 10 done; E ar 5 done\nrank 2: D ar 5 done; D ar 6\nrank 3: E ar 5 done; E ar 6", []int64{1, 2}},
		{oneLateOfGloo, nil}, // all others wait for it in an operation
		{"group W 0-3\nrank 0-2: W ar 42\nrank 3: W ar 41 done", nil},
	} {
		rep := doubted(t, c.text, known)
		require.Len(t, rep.Roots, 1, c.text)
		f := &rep.Roots[0].Finding
		require.Len(t, f.Ranks, 1)
		assert.Equal(t, c.want, f.Candidates, c.text)
		if c.want != nil {
			assert.Equal(t, f.Ranks[0], f.Candidates[0])
			assert.Equal(t, model.Some[int64](2), f.Through, "3 waits in another operation, and a candidate waits all the same")
		}
	}
}
