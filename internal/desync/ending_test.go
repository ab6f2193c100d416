// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/desync"
)

// One rank's dump is a little older than those of the others, who are done.
const ending = `
	group W 0-4
	rank 0-3 {t=10}: W ar 41 done; W ar 42 done
	rank 4 {t=7}: W ar 41 at=3; W ar 42 at=4`

func TestAJobThatEnds(t *testing.T) {
	rep := conclude(t, ending)
	assert.Equal(t, desync.Undecided, rep.Verdict)
	assert.Empty(t, accused(rep))
	assert.Contains(t, named(rep), int64(4))

	// What has stood for a minute does not end.
	stood := strings.NewReplacer("t=10", "t=100", "t=7", "t=97").Replace(ending)
	assert.Equal(t, []int64{4}, accused(conclude(t, stood)))

	// Recorders tell what is so now.
	live := strings.NewReplacer("{t=10}", "{ring t=10}", "{t=7}", "{ring t=10}").Replace(ending)
	assert.Equal(t, []int64{4}, accused(conclude(t, live)))

	// Most wait.
	assert.Equal(t, []int64{4}, accused(conclude(t, `
		group W 0-4
		rank 0-3 {t=10}: W ar 41 done; W ar 42 done; W ar 43 at=4
		rank 4 {t=7}: W ar 41 at=3; W ar 42 at=4; W ar 43 at=5`)))
}

// Nobody waits for the device that is late, in a job of two.
func TestALateDeviceThatHoldsUpNobody(t *testing.T) {
	const text = `
		group W 0,1
		rank 0 {t=10}: W ar 41 done; W ar 42 done
		rank 1 {t=7}: W ar 41 at=3; W ar 42 at=4`
	assert.Empty(t, accused(conclude(t, text)))
	held := strings.Replace(text, "W ar 42 done", "W ar 42 done; W ar 43 at=5", 1)
	held = strings.Replace(held, "W ar 42 at=4", "W ar 42 at=4; W ar 43 at=5", 1)
	assert.Equal(t, []int64{1}, accused(conclude(t, held)))
}

// What one rank enqueued minutes after the operation that it still waits in shows how long that
// has stood, where no dump says when it was taken.
func TestWhatWasCalledLaterTellsTheAge(t *testing.T) {
	const text = `
		group T 0,1
		group H 0,2
		group W 0-6
		rank 0: T ar 42 at=10; H ar 4 done at=LATER
		rank 1: T ar 41 done
		rank 2-6: W ar 1 done`
	assert.Equal(t, []int64{1}, accused(conclude(t, strings.Replace(text, "LATER", "700", 1))))
	assert.Empty(t, accused(conclude(t, strings.Replace(text, "LATER", "12", 1))))
}

// The root of a broadcast is through alone: that its record was overwritten makes it no proof
// that the others had come.
func TestAnOverwrittenBroadcastIsNoProof(t *testing.T) {
	rep := conclude(t, `
		group T 0,1
		rank 0: T=182/157/158; T ag 158; T rs 159
		rank 1: T=156/156/132; T ag 155 done; T rs 156 done`)
	assert.Equal(t, desync.Hang, rep.Verdict)
	assert.Equal(t, []int64{1}, accused(rep))
}

// Of members that are inferred from what was recorded, there may be more.
func TestInferredMembersAreNoMajority(t *testing.T) {
	rep := conclude(t, `
		world 8
		group W 0-7 gloo
		rank 0-1: W ag 3
		rank 6: W ar 3
		absent 2-5 missing
		absent 7 missing`)
	assert.Empty(t, accused(rep))
	assert.Contains(t, named(rep), int64(0))
	assert.Contains(t, named(rep), int64(6))
}

// Several messages contradict several states: which is left out does not change from run to run.
func TestContradictionsInOneOrder(t *testing.T) {
	const text = `
		group P 0-3 shared
		rank 0: P send>1 1 nth=1 at=0
		rank 1: P recv<0 5 nth=5 at=200 done; P send>2 6 nth=1 at=200
		rank 2: P recv<1 9 nth=9 at=400 done; P send>3 9 nth=1 at=401
		rank 3: P recv<2 10 nth=1 at=402`
	want := conclude(t, text)
	for range 60 {
		got := conclude(t, text)
		assert.Equal(t, want.Absent, got.Absent)
		assert.Equal(t, want.Problems, got.Problems)
	}
}
