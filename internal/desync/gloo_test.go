// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/desync/statetest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Where somebody may be missing of whom nothing is known, an operation of Gloo that is over may
// have failed. What is told is still the one that others wait in.
func TestWhatIsOverIsNotSaidToHang(t *testing.T) {
	rep := conclude(t, "group D 0-1 gloo\ngroup W 0-1 gloo\nrank 0: W ar 5 done; D ar 7 done; D ar 8\nrank 1: D ar 7 done; W ar 5 done")
	require.Len(t, rep.Roots, 1)
	f := &rep.Roots[0].Finding
	assert.Equal(t, model.ClassIncompleteEvidence, f.Class)
	assert.Equal(t, []int64{1}, f.Candidates)
	assert.Equal(t, "all_reduce 8", f.Op)
	assert.True(t, rep.Unlisted)
	assert.True(t, rep.Untimed, "whether it is over, too, rests on the job having stood still")
	for _, g := range rep.Groups {
		assert.Equal(t, g.Comm.ID == "D", g.HasHead, g.Comm.ID)
		assert.Equal(t, g.Comm.ID == "D", g.Open > 0, g.Comm.ID)
	}
	// With the size of the job it is known that nobody else is missing.
	rep = conclude(t, "world 2\ngroup D 0-1 gloo\ngroup W 0-1 gloo\nrank 0: W ar 5 done; D ar 7 done; D ar 8\nrank 1: D ar 7 done; W ar 5 done")
	require.Len(t, rep.Roots, 1)
	assert.Equal(t, model.Some[int64](1), rep.Roots[0].Finding.Rank)
}

// A communicator of which the size is known, and of which as many were seen, has no others.
func TestASizeThatIsReached(t *testing.T) {
	c := statetest.Read(t, "group W 0-1 gloo\nrank 0-1: W ar 5")
	rep := judge(c, desync.NewDefaultConfig(), 0)
	assert.True(t, rep.Unlisted)
	require.Len(t, rep.Roots, 1)
	assert.Equal(t, model.ClassIncompleteEvidence, rep.Roots[0].Finding.Class)
	for i := range c.States {
		c.States[i].Comms[0].Comm.Size = model.Some[int64](2)
	}
	rep = judge(c, desync.NewDefaultConfig(), 0)
	assert.False(t, rep.Unlisted)
	require.Len(t, rep.Roots, 1)
	assert.Equal(t, model.ClassStalledOp, rep.Roots[0].Finding.Class)
	for i := range c.States {
		c.States[i].Comms[0].Comm.Size = model.Some[int64](3)
	}
	assert.True(t, judge(c, desync.NewDefaultConfig(), 0).Unlisted)
}

// Where one rank lists the members, it is known who they are.
func TestOneRankListsTheMembers(t *testing.T) {
	rep := conclude(t, "group W 0-1\ngroup X 0-1 gloo as=W\nrank 0: W ar 5 done\nrank 1: X ar 5 done")
	assert.False(t, rep.Unlisted)
	assert.Equal(t, desync.Healthy, rep.Verdict)
	assert.Empty(t, rep.MayRun)
}

// Those of whom nothing is known could turn a majority, and who alone is known to be missing need
// not be the only one.
func TestWhoeverElseThereIs(t *testing.T) {
	sizes := "group W 0-2 gloo\nrank 0-1: W ar 5 n=4\nrank 2: W ar 5 n=8"
	missing := "group W 0-9 gloo\nrank 0-9: W ar 5\nabsent 10 missing"
	for _, c := range []struct{ text, class string }{
		{"world 11\n" + missing, model.ClassDumpMissing},
		{missing, model.ClassIncompleteEvidence},
	} {
		rep := conclude(t, c.text)
		require.Len(t, rep.Roots, 1)
		assert.Equal(t, c.class, rep.Roots[0].Finding.Class)
		assert.Equal(t, []int64{10}, rep.Roots[0].Finding.Candidates)
	}
	known, unknown := conclude(t, "world 3\n"+sizes), conclude(t, sizes)
	assert.Equal(t, model.Some[int64](2), known.Roots[0].Finding.Rank)
	assert.False(t, unknown.Roots[0].Finding.Rank.OK)
	assert.Equal(t, []int64{2, 0, 1}, unknown.Roots[0].Finding.Candidates, "who differs from most first")
}

// Who came out of its newest operation, which another had not entered, may have done so by its
// failure: neither that the job went on nor that it hangs is certain.
func TestTheJobWentOnOrAnOperationFailed(t *testing.T) {
	rep := conclude(t, "world 4\ngroup W 0-3 gloo\nrank 0-2: W ar 9 done; W ar 10 done\nrank 3: W ar 9 done")
	assert.Equal(t, desync.Undecided, rep.Verdict)
	assert.Contains(t, rep.MayRun, "the job went on while its states were taken, or that operation failed")
	for _, r := range rep.Roots {
		assert.Empty(t, r.Finding.Ranks)
		assert.Contains(t, r.Finding.Candidates, int64(3))
	}
	// What came after it shows that it did not fail.
	rep = doubted(t, "world 4\ngroup W 0-3 gloo\nrank 0-2: W ar 9 done; W ar 10 done; W ar 11\nrank 3: W ar 9 done", desync.Doubt{InRhythm: true})
	assert.Equal(t, desync.Healthy, rep.Verdict)
}

// That some went on says nothing of those that were not seen.
func TestSomeWentOnAndSomeWereNotSeen(t *testing.T) {
	const text = "group W 0-7\nrank 0-3: W ar 9 done; W ar 10\nrank 4: W ar 9 done; W ar 10 done; W ar 11\nrank 5-6: W ar 8 done\n"
	moving := desync.Doubt{InRhythm: true}
	assert.Equal(t, desync.Healthy, doubted(t, text+"rank 7: W ar 8 done", moving).Verdict)
	rep := doubted(t, "world 8\n"+text, moving)
	assert.Equal(t, desync.Undecided, rep.Verdict)
	assert.Contains(t, rep.MayRun, "of 1 of 8 ranks there is no state")
}

// Gloo marks an operation retired that its host came out of, be it by an error: that members
// called it with other sizes or types is in plain sight.
func TestRetiredCallsOfGloo_Differ(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"another size":      {"rank 0-2: W ar 5 n=8 done\nrank 3: W ar 5 n=9 done", "mismatch_size 3: all_reduce 5 of W; 0-2 wait"},
		"another type":      {"rank 1-3: W ar 5 done\nrank 0: W ar 5 type=bfloat16 done", "mismatch_dtype 0: all_reduce 5 of W; 1-3 wait"},
		"of a broadcast":    {"rank 0-2: W ar 4 done; W bc 5 n=8 done\nrank 3: W ar 4 done; W bc 5 n=16 done", "mismatch_size 3: broadcast 5 of W; 0-2 wait"},
		"of what comes out": {"rank 0-2: W ag 5 in=4 out=16 done\nrank 3: W ag 5 in=4 out=12 done", "mismatch_size 3: all_gather 5 of W; 0-2 wait"},
		"another call":      {"rank 0-2: W ar 5 done\nrank 3: W ag 5 done", "mismatch_op 3: all_reduce 5 of W; 0-2 wait"},
		"one is in it":      {"rank 0-1: W ar 5 n=8 done\nrank 2: W ar 5 n=8\nrank 3: W ar 5 n=9 done", "mismatch_size 3: all_reduce 5 of W; 0-2 wait"},
		"two and two":       {"rank 0-1: W ar 5 n=8 done\nrank 2-3: W ar 5 n=9 done", "mismatch_size 0-3: all_reduce 5 of W"},
	} {
		t.Run(name, func(t *testing.T) {
			rep := conclude(t, "world 4\ngroup W 0-3 gloo\n"+c.text)
			assert.Equal(t, desync.Hang, rep.Verdict)
			assert.Equal(t, []string{c.want}, said(rep))
		})
	}
	for name, text := range map[string]string{
		"alike":                        "rank 0-3: W ar 5 n=8 done",
		"all went on":                  "rank 0-2: W ar 5 n=8 done; W ar 6 done\nrank 3: W ar 5 n=9 done; W ar 6 done",
		"a gather: the root gets more": "rank 0: W ga 5 in=8 out=32 done\nrank 1-3: W ga 5 in=8 out=0 done",
		"uneven splits":                "rank 0-1: W a2a 5 in=10 out=4 done\nrank 2-3: W a2a 5 in=4 out=10 done",
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, desync.Healthy, conclude(t, "world 4\ngroup W 0-3 gloo\n"+text).Verdict)
		})
	}
}
