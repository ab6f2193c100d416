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

// A dump that tells no time, and can not be of that of the others, speaks for nobody: neither its
// rank is accused by it, nor are operations that its rank seems to be through.
func TestForeignDumps(t *testing.T) {
	for _, c := range []struct{ name, text, why string }{
		{"of later: others had not entered what it is through", `
			group W 0-3
			rank 0: W=42/41; W ar 42 at=5
			rank 1-2: W=41/41; W rs 41 done at=4
			rank 3 {active}: W=60/60`, "rank 3 was through operation 60 of W, while rank 1 had enqueued none after 41"},
		{"of before: others are through what it had not entered", `
			group W 0-3
			rank 0-2: W=42/41; W ar 41 done at=4; W ar 42 at=5
			rank 3 {active}: W=20/20`, "rank 0 was through operation 41 of W, while rank 3 had enqueued none after 20"},
		{"of another job: the group has other members", `
			group W 0-3
			group X 2-3 as=W
			rank 0-1: W=42/41; W ar 42 at=5
			rank 2: W=42/41; X=-; W ar 42 at=5
			rank 3 {active}: W=-; X=42/41`, "communicator X: rank 3 lists 2 members, others list it among 4"},
		{"of another job: it does not know the group", `
			group W 0-3
			group X 3
			rank 0-2: W=42/41; W ar 41 done at=4; W ar 42 at=5
			rank 3 {active}: W=-; X=7/7`, "rank 0 was through operation 41 of W, which rank 3 had not enqueued"},
		{"operations of no known kind, of which no buffer holds so many", `
			group W 0-3
			rank 0-2 {active}: W=2000/1999; W bc 2000 at=5
			rank 3 {active}: W=1000/1000`, "rank 0 was through operation 1999 of W, while rank 3 had enqueued none after 1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := conclude(t, c.text)
			assert.Empty(t, accused(rep))
			require.Len(t, rep.Absent, 1)
			assert.Equal(t, model.Absence{Rank: 3, Reason: model.AbsentStale, Detail: c.why}, rep.Absent[0])
			require.NotEmpty(t, rep.Problems)
			assert.Contains(t, rep.Problems, c.why+"; the state of rank 3 (rank_3), which tells no time, is of another time or another job, and was left out")
		})
	}
}

// What may be of the same time is believed.
func TestDumpsWithoutTimesThatFit(t *testing.T) {
	for name, text := range map[string]string{
		"it stands before what the others wait in": `
			group W 0-3
			rank 0-2: W=42/41; W ar 41 done at=4; W ar 42 at=5
			rank 3 {active}: W=41/41`,
		"others may be through a broadcast before all have entered it": `
			group W 0-3
			rank 0-2: W=42/41; W bc 40 done at=3; W bc 41 done at=4; W ar 42 at=5
			rank 3 {active}: W=39/39`,
		"as many as buffers hold": `
			group W 0-3
			rank 0-2 {active}: W=1513/1512; W bc 1513 at=5
			rank 3 {active}: W=1000/1000`,
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, []int64{3}, accused(conclude(t, text))) })
	}
}

// An operation that not all call alike says nothing of who may be through it: nothing is left out.
func TestWhatNotAllCallAlike(t *testing.T) {
	rep := conclude(t, `
		group W 0-3
		rank 0: W=42/41; W bc 41 done at=4; W ar 42 at=5
		rank 1-2: W=42/41; W ar 41 done at=4; W ar 42 at=5
		rank 3 {active}: W=40/40`)
	assert.Empty(t, rep.Absent)
	assert.Empty(t, accused(rep))
}

// Of two that contradict each other either may be wrong, and so may the many: then nothing is
// decided, and nobody accused.
func TestForeignDumpsThatAreNotFew(t *testing.T) {
	for name, text := range map[string]string{
		"one witness": `
			group W 0-1
			rank 0: W ar 41 done at=4; W ar 42 at=5
			rank 1: W=20/20`,
		"as many as the others": `
			group W 0-3
			rank 0-1: W ar 41 done at=4; W ar 42 at=5
			rank 2-3: W=20/20`,
	} {
		t.Run(name, func(t *testing.T) {
			rep := conclude(t, text)
			assert.Equal(t, desync.Undecided, rep.Verdict)
			assert.Empty(t, named(rep))
			assert.Contains(t, rep.MayRun, "had not enqueued: their states are not of one time, or not of one job")
		})
	}
}

// Where a job goes on while its dumps are taken, they contradict one another, and so do those of
// several runs: nothing hangs only where they are known to be fresh.
func TestDumpsThatContradict(t *testing.T) {
	const text = `
		group W 0-2
		rank 0-1: W ar 41 done; W ar 42
		rank 2: W=40/40`
	rep := conclude(t, text)
	assert.Equal(t, desync.Undecided, rep.Verdict)
	assert.Empty(t, named(rep))
	assert.Empty(t, rep.Absent)
	assert.Contains(t, rep.MayRun, "the job went on while its states were taken, or they are not of one run")
	assert.Equal(t, desync.Healthy, doubted(t, text, desync.Doubt{Why: "they are fresh", Until: time.Second, InRhythm: true}).Verdict)
}

// Who is through more than others had enqueued is of another time, whatever it was: whose device is
// late has enqueued what the others are through.
func TestWhoHadNotEnqueuedIsNotLate(t *testing.T) {
	rep := conclude(t, `
		group W 0-3
		rank 0-2 {active}: W=1000/1000; W ar 1001 at=60
		rank 3 {active}: W=20/10; W ar 11 at=58; W ar 20 at=59`)
	assert.Equal(t, desync.Undecided, rep.Verdict)
	assert.Empty(t, named(rep))
	assert.Contains(t, rep.MayRun, "which rank 3 had not enqueued")
	rep = conclude(t, `
		group W 0-3
		rank 0-2 {active}: W=20/20; W ar 21 at=60
		rank 3 {active}: W=20/10; W ar 11 at=58; W ar 20 at=59`)
	assert.Equal(t, []int64{3}, accused(rep))
}

// A state that is left out is looked at no further.
func TestAStateOfBeforeWithSeveralGroups(t *testing.T) {
	rep := conclude(t, `
		group A 0-3
		group B 0-3
		group C 0-3
		rank 0-2: A ar 41 done at=100; B ar 7 done at=100; C ar 5 done at=100; A ar 42 at=101
		rank 3: A ar 20 done at=5; B ar 3 done at=5; C ar 2 done at=5`)
	require.Len(t, rep.Absent, 1)
	assert.Equal(t, int64(3), rep.Absent[0].Rank)
	assert.Equal(t, model.AbsentStale, rep.Absent[0].Reason)
	assert.Empty(t, accused(rep))
}

// The place of the copies' lost times: what a job that runs shows at most moments decides nothing.
func TestTimesLost(t *testing.T) {
	lost := desync.Doubt{TimesLost: "the files are copies"}
	const stalled = "world 4\ngroup W 0-3\nrank 0-3: W ar 42"
	rep := doubted(t, stalled, lost)
	assert.Equal(t, desync.Undecided, rep.Verdict)
	assert.Equal(t, lost.TimesLost, rep.MayRun)
	assert.Empty(t, accused(rep))
	assert.Equal(t, desync.Hang, doubted(t, stalled, desync.Doubt{}).Verdict)
	assert.Equal(t, desync.Hang, doubted(t, `
		group W 0-3
		rank 0-3: W ar 42 at=1; W ar 43 at=4`, lost).Verdict, "who went on to call something shows that it stood")

	const late = "group W 0-3\nrank 0-2: W ar 42\nrank 3: W ar 41 done"
	assert.Equal(t, []int64{3}, accused(doubted(t, late, lost)), "two pieces of evidence")
	const cycle = `
		group A 0-1
		group B 0-1
		rank 0: A ar 5; B ar 7
		rank 1: B ar 7; A ar 5`
	sure := doubted(t, cycle, desync.Doubt{})
	require.Len(t, sure.Roots, 1)
	less := doubted(t, cycle, lost)
	require.Len(t, less.Roots, 1)
	assert.Equal(t, model.ClassOrderCycle, less.Roots[0].Finding.Class)
	assert.InDelta(t, sure.Roots[0].Finding.Confidence*2/3, less.Roots[0].Finding.Confidence, 1e-9)
	assert.True(t, less.Untimed)
	assert.False(t, sure.Untimed)
}

// Of candidates those are asked for first of which there is nothing.
func TestCandidatesWithoutAState(t *testing.T) {
	rep := conclude(t, `
		group W 0-3
		rank 0-1: W ar 42
		absent 2 missing
		absent 3 missing`)
	require.NotEmpty(t, rep.Roots)
	f := rep.Roots[0].Finding
	require.Equal(t, model.ClassIncompleteEvidence, f.Class)
	require.Equal(t, []int64{2, 3, 0, 1}, f.Candidates, "the likeliest first")
	assert.Contains(t, f.Action, "first of ranks 2, 3, of which there is no state")
}
