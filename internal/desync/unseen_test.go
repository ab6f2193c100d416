// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/desync/statetest"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// Of several ranks without a state the operation is the one that comes first, and the candidates that
// lack it come first.
func TestUnseenRanks_InDifferentGroups_FirstOperationAndItsMembers(t *testing.T) {
	const groups = `
group S0 0-3
group S1 4-7
group S2 8-11
group R0 0,4,8
group R1 1,5,9
group R2 2,6,10
group R3 3,7,11
`
	for name, c := range map[string]struct {
		script string
		first  []int64
	}{
		"one lacks its shard's, another its replicas'": {`
rank 1: S0 rs 5 done; R1 ar 5
rank 2: S0 rs 5 done; R2 ar 5
rank 3: S0 rs 5 done; R3 ar 5
rank 4: R0 ar 4 done; S1 rs 5
rank 6: R2 ar 4 done; S1 rs 5
rank 7: R3 ar 4 done; S1 rs 5
rank 8: S2 rs 5 done; R0 ar 5
rank 9: S2 rs 5 done; R1 ar 5
rank 10: S2 rs 5 done; R2 ar 5
rank 11: S2 rs 5 done; R3 ar 5`, []int64{5}},
		"two of the shard, one elsewhere": {`
rank 1: S0 rs 5 done; R1 ar 5
rank 2: S0 rs 5 done; R2 ar 5
rank 3: S0 rs 5 done; R3 ar 5
rank 4: R0 ar 4 done; S1 rs 5
rank 7: R3 ar 4 done; S1 rs 5
rank 8: S2 rs 5 done; R0 ar 5
rank 9: S2 rs 5 done; R1 ar 5
rank 10: S2 rs 5 done; R2 ar 5
rank 11: S2 rs 5 done; R3 ar 5`, []int64{5, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			rep := conclude(t, groups+c.script)
			require.Len(t, rep.Roots, 1)
			f := rep.Roots[0].Finding
			assert.Equal(t, "reduce_scatter 5", f.Op)
			assert.Equal(t, "S1", f.CommName)
			require.Greater(t, len(f.Candidates), len(c.first))
			assert.Equal(t, append(c.first, 0), f.Candidates[:len(c.first)+1])
			assert.Contains(t, evidence.Encode(f.Evidence), "rank 0 is no member of it, and lacks all_reduce 5 of R0")
		})
	}
}

// Where the operations are evicted, the numbers still show the rank that has not enqueued the last one.
func TestEvicted_NumbersDiffer_NameTheRankBehind(t *testing.T) {
	rep := conclude(t, `
group D 0-3
rank 0-1: D=41/40
rank 2: D=40/40
rank 3: D=41/40`)
	require.Len(t, rep.Roots, 1)
	f := rep.Roots[0].Finding
	assert.Equal(t, []int64{2}, f.Candidates)
	assert.Equal(t, "D", f.CommName)
	assert.Contains(t, f.Op, "41")
}

// Also where no fewer are behind than ahead the communicator and the number are named, and nobody.
func TestEvicted_HalfAreBehind_NamesTheOperation(t *testing.T) {
	for name, c := range map[string]struct {
		script, comm, op string
		candidates       []int64
	}{
		"half": {`
group D 0-3
rank 0-1: D=41/40
rank 2-3: D=40/40`, "D", "41", []int64{0, 1, 2, 3}},
		"more than half": {`
group E 0-5
rank 0: E=8/7
rank 1-5: E=7/7`, "E", "8", []int64{0, 1, 2, 3, 4, 5}},
		"half, and all wait for what is over elsewhere": {`
group D 0-5
group T 0-5
rank 0-2: D=12/12; T=31/30
rank 3-5: D=12/12; T=30/30`, "T", "31", []int64{0, 1, 2, 3, 4, 5}},
		"half in one, one in another": {`
group D 0-3
group T 0-3
rank 0: D=41/40; T=6/5
rank 1: D=41/40; T=5/5
rank 2: D=40/40; T=5/5
rank 3: D=41/40; T=6/5`, "D", "41", []int64{2}},
	} {
		t.Run(name, func(t *testing.T) {
			rep := conclude(t, c.script)
			require.Len(t, rep.Roots, 1)
			f := rep.Roots[0].Finding
			assert.Equal(t, c.comm, f.CommName)
			assert.Contains(t, f.Op, c.op)
			assert.Empty(t, f.Ranks)
			assert.Equal(t, c.candidates, f.Candidates)
			assert.Equal(t, desync.Undecided, rep.Verdict)
		})
	}
}

// A rank may list a communicator twice, with its members and without: the two are one.
func TestListedWithAndWithoutMembers_IsOneCommunicator(t *testing.T) {
	for _, first := range []string{"with", "without"} {
		c := statetest.Read(t, `
group D 0-3
rank 0-1: D=41/40
rank 2: D=40/40
rank 3: D=41/40`)
		for i := range c.States {
			comms := c.States[i].Comms
			bare := comms[0]
			bare.Members, bare.Frontiers = nil, nil
			c.States[i].Comms = append(comms, bare)
			if first == "without" {
				slices.Reverse(c.States[i].Comms)
			}
		}
		rep := judge(c, desync.NewDefaultConfig(), 0)
		require.Len(t, rep.Roots, 1, first)
		assert.Equal(t, []int64{2}, rep.Roots[0].Finding.Candidates, first)
	}
}

// Of one dump, or a few, of many: those that wait are no candidates, the others are.
func TestFewDumpsOfMany_WaitersAreNoCandidates(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []int64
	}{
		"one, members not recorded":  {"group W 0-3 gloo\nrank 0: W ar 7 done; W ar 8", nil},
		"one further on":             {"group W 0-3 gloo\nrank 2: W ar 7 done; W ar 8\nabsent 0-1 missing", []int64{0, 1}},
		"two, members not recorded":  {"group W 0-3 gloo\nrank 0-1: W ar 7 done; W ar 8", nil},
		"two in groups of their own": {"group A 0-1 gloo\ngroup B 2-3 gloo\nrank 0: A ar 8\nrank 2: B ar 8\nabsent 1 missing", []int64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			rep := judge(statetest.Read(t, c.text), desync.NewDefaultConfig(), 0)
			assert.Equal(t, desync.Undecided, rep.Verdict)
			require.Len(t, rep.Roots, 1)
			assert.ElementsMatch(t, c.want, rep.Roots[0].Finding.Candidates)
			assert.Empty(t, rep.Roots[0].Finding.Ranks)
			if c.want == nil {
				assert.Contains(t, rep.Roots[0].Finding.Action, "the dumps of all ranks")
			}
		})
	}
}

// Without the size of the job the operation is the first that the rank lacks that has not come, as with it.
func TestSizeNotKnown_FirstOperationThatTheRankLacks(t *testing.T) {
	for name, text := range map[string]string{
		"more wait in the later one": `
group D 0-7 gloo
group T0 4,5 gloo
group T1 0,1 gloo
group T2 2,3 gloo
group T3 6,7 gloo
group S0 0,2,4,6 gloo
group S1 1,3,5,7 gloo
rank 0: D ar 6 done; T1 ar 13 done; S0 ar 7
rank 1: D ar 6 done; T1 ar 13 done; S1 ar 7
rank 2: D ar 6 done; T2 ar 13 done; S0 ar 7
rank 3: D ar 6 done; T2 ar 13 done; S1 ar 7
rank 4: T0 ar 12 done; S0 ar 6 done; D ar 6 done; T0 ar 13
rank 5: T0 ar 12 done; S1 ar 6 done; D ar 6 done
rank 6: D ar 6 done; T3 ar 13 done; S0 ar 7
rank 7: D ar 6 done; T3 ar 13 done; S1 ar 7`,
		"a pair and three": `
group D 0-3 gloo
group T0 2,3 gloo
group T1 0,1 gloo
group O 0,1,3 gloo
rank 0-1: D ar 6 done; T1 ar 13 done; O ar 7
rank 2: D ar 6 done; T0 ar 13
rank 3: T0 ar 12 done; O ar 6 done; D ar 6 done`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, world := range []string{"", "world 8\n"} {
				if name == "a pair and three" && world != "" {
					world = "world 4\n"
				}
				rep := judge(statetest.Read(t, world+text), desync.NewDefaultConfig(), 0)
				require.Len(t, rep.Roots, 1, world)
				assert.Equal(t, "all_reduce 13", rep.Roots[0].Finding.Op, world)
			}
		})
	}
}

// Where the size of the job is not known, one absent rank is not the only candidate.
func TestHungNothingOpen_SizeNotKnown_OneAbsentRankIsNotAlone(t *testing.T) {
	for text, want := range map[string]string{
		"group W 0-3 gloo\nrank 1: W ar 7 done\nabsent 0 missing":          model.ClassIncompleteEvidence,
		"world 2\ngroup W 0-1 gloo\nrank 1: W ar 7 done\nabsent 0 missing": model.ClassDumpMissing,
		"group W 0-1\nrank 1: W ar 7 done\nabsent 0 missing":               model.ClassDumpMissing,
	} {
		c := statetest.Read(t, text)
		a := desync.New(desync.NewDefaultConfig())
		a.SetJob(desync.Job{WorldSize: c.WorldSize})
		a.Add(&c.States[0])
		a.AddAbsence(c.Absent[0])
		a.SetDoubt(desync.Doubt{Hung: true})
		rep := a.Conclude(0)
		require.Len(t, rep.Roots, 1, text)
		assert.Equal(t, want, rep.Roots[0].Finding.Class, text)
		assert.Equal(t, []int64{0}, rep.Roots[0].Finding.Candidates, text)
	}
}
