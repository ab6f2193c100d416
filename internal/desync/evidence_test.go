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

// What a source cannot have kept proves nothing.
func TestWhatWasNotKept(t *testing.T) {
	check(t, []told{
		{
			"overwritten: whether the rank had come is not known", `
			group W 0-3
			rank 0-2: W ar 42
			rank 3: W=500/?/480`,
			desync.Undecided,
			[]string{"incomplete_evidence ?3: all_reduce 42 of W; 0-2 wait"},
		}, {
			"a torn dump without a word of the communicator's numbers", `
			group W 0-3
			rank 0-2: W ar 42
			rank 3 {partial}: W=?/?`,
			desync.Undecided,
			[]string{"incomplete_evidence ?3: all_reduce 42 of W; 0-2 wait"},
		}, {
			"a torn dump whose frontiers were read: it had not come, and nothing is open", `
			group W 0-3
			rank 0-2: W ar 42
			rank 3 {partial}: W=41/41`,
			desync.Hang,
			[]string{"not_scheduled 3: all_reduce 42 of W; 0-2 wait"},
		}, {
			"only what is open was recorded: what is not open and was enqueued is over", `
			group W 0-3
			rank 0-2 {active}: W ar 42; W ar 43; W=43/41
			rank 3 {active}: W=41/41`,
			desync.Hang,
			[]string{"not_scheduled 3: all_reduce 42 of W; 0-2 wait"},
		}, {
			"only what is open was recorded, and no frontier: through, or not there yet", `
			group W 0-3
			rank 0-2 {active}: W bc 42
			rank 3 {active}: W=?/?`,
			desync.Undecided,
			[]string{"incomplete_evidence ?3: broadcast 42 of W; 0-2 wait"},
		},
	})
}

// Where what is over was not recorded, it may have been of another size: a device that is behind
// by one operation is named, but not for certain alone.
func TestLagWithoutWhatIsOver(t *testing.T) {
	rep := conclude(t, `
		group W 0-3
		rank 0-2 {active}: W ar 43; W=43/42
		rank 3 {active}: W ar 42; W ar 43; W=43/41`)
	assert.Contains(t, named(rep), int64(3))
	assert.Subset(t, []int64{3}, accused(rep))
}

// A torn dump whose frontiers say that something is open there: what the rank waits for may
// be who is at fault.
func TestATornDumpThatHidesWhatItWaitsFor(t *testing.T) {
	const text = `
		group W 0-3
		group P 3,4
		rank 0-2: W ar 42
		rank 3 {partial}: W=41/41; P=7/6
		rank 4: P ar 6 done`
	rep := conclude(t, text)
	assert.NotContains(t, accused(rep), int64(3))
	assert.Contains(t, named(rep), int64(4))
	unmoved(t, text, rep)
}

// A rank whose oldest operations were overwritten stands in the one behind the last that is
// over, not in the oldest that is still recorded.
func TestTheHeadMayBeOverwritten(t *testing.T) {
	const text = `
		group W 0-3
		rank 0-2: W ar 10 done; W ar 11; W ar 12
		rank 3: W=100/10/50; W ar 50; W ar 51`
	rep := conclude(t, text)
	assert.Empty(t, accused(rep))
	for _, r := range rep.Roots {
		assert.NotEqual(t, model.ClassOrderCycle, r.Finding.Class)
	}
	unmoved(t, text, rep)

	// The others are through: it is a device that stands still.
	rep = conclude(t, `
		group W 0-3
		rank 0-2: W ar 11 done; W ar 12
		rank 3: W=100/10/50; W ar 50; W ar 51`)
	assert.Equal(t, []int64{3}, named(rep))

	// Nothing says whether the front of its stream is recorded.
	rep = conclude(t, `
		group W 0-3
		rank 0-2: W ar 50; W ar 51; W=100/49
		rank 3: W=100/?/50; W ar 50; W ar 51`)
	assert.Empty(t, accused(rep))
}

// Frontiers that count messages, too, do not compare with numbers of collectives.
func TestSharedFrontiers(t *testing.T) {
	check(t, []told{
		{
			"a rank that is in the operation, though its frontier is far higher", `
			group W 0-3 shared
			rank 0-3: W ar 194; W=14146/14145`,
			desync.Hang,
			[]string{"stalled_op: all_reduce 194 of W; 0-3 wait"},
		}, {
			"operations tell who has not come", `
			group W 0-3 shared
			rank 0-2: W ar 193 done; W ar 194; W=14146/14145
			rank 3: W ar 193 done; W=14150/14150`,
			desync.Hang,
			[]string{"not_scheduled 3: all_reduce 194 of W; 0-2 wait"},
		},
	})
	sure := conclude(t, "group W 0-3\nrank 0-2: W ar 194\nrank 3: W ar 193 done")
	shared := conclude(t, "group W 0-3 shared\nrank 0-2: W ar 193 done; W ar 194\nrank 3: W ar 193 done")
	require.Len(t, shared.Roots, 1)
	assert.Less(t, shared.Roots[0].Finding.Confidence, sure.Roots[0].Finding.Confidence)
}

func TestUntrackedIsLessSure(t *testing.T) {
	sure := conclude(t, "group W 0-3\nrank 0-2: W ar 42\nrank 3: W ar 41 done")
	rep := conclude(t, "group W 0-3\ngroup G 3,4 untracked\nrank 0-2: W ar 42\nrank 3: W ar 41 done; G=0/0\nrank 4: G=0/0")
	require.NotEmpty(t, rep.Roots)
	assert.Less(t, rep.Roots[0].Finding.Confidence, sure.Roots[0].Finding.Confidence)
	assert.Contains(t, evidence.Encode(rep.Roots[0].Finding.Evidence), "replayed graphs")
}

// Numbers that a process counts for itself never join ranks.
func TestNumbersOfAProcess(t *testing.T) {
	rep := conclude(t, `
		group T 0-3 process
		rank 0-2: T ar 42
		rank 3: T ar 17 done`)
	assert.Empty(t, accused(rep))
	assert.Equal(t, desync.Undecided, rep.Verdict)
	require.Len(t, rep.Roots, 1)
	assert.Equal(t, model.ClassIncompleteEvidence, rep.Roots[0].Finding.Class)
	assert.Contains(t, named(rep), int64(3))
	assert.Contains(t, evidence.Encode(rep.Roots[0].Finding.Evidence), "process")
}

// Where members are not recorded, who recorded something is one; others may be.
func TestInferredMembers(t *testing.T) {
	t.Run("a member that is behind", func(t *testing.T) {
		rep := conclude(t, `
			world 4
			group G 0-3 gloo
			rank 0-2: G ar 41 done; G ar 42
			rank 3: G ar 41 done`)
		assert.Equal(t, []string{"not_scheduled 3: all_reduce 42 of G; 0-2 wait"}, said(rep))
	})
	t.Run("one that never called anything is not left out", func(t *testing.T) {
		rep := conclude(t, `
			world 4
			group G 0-3 gloo
			rank 0-2: G ar 1
			rank 3:`)
		require.NotEmpty(t, rep.Roots)
		assert.NotEqual(t, model.ClassStalledOp, rep.Roots[0].Finding.Class)
		assert.Contains(t, named(rep), int64(3))
		assert.Subset(t, []int64{3}, accused(rep))
	})
	t.Run("one of which nothing is known may be a member", func(t *testing.T) {
		rep := conclude(t, `
			world 4
			group G 0-3 gloo
			rank 0-2: G ar 42
			absent 3 missing`)
		assert.Equal(t, desync.Undecided, rep.Verdict)
		assert.Contains(t, named(rep), int64(3))
		assert.Empty(t, accused(rep))
	})
	t.Run("all of the job are in it", func(t *testing.T) {
		rep := conclude(t, `
			world 4
			group G 0-3 gloo
			rank 0-3: G ar 42`)
		assert.Equal(t, []string{"stalled_op: all_reduce 42 of G; 0-3 wait"}, said(rep))
	})
}

func TestMembersThatContradict(t *testing.T) {
	rep := conclude(t, `
		group W 0-3
		group X 0-4 as=W
		rank 0-2: W ar 42; X=-
		rank 3: X=-; W ar 41 done
		rank 4: W=-; X ar 7 done`)
	assert.NotEmpty(t, rep.Problems, "members that disagree are told")
	assert.Equal(t, []int64{3}, accused(rep), "the others go on")
}
