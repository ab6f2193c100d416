// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/desync/statetest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

const late = `
	group W 0-3
	rank 0-2: W ar 42
	rank 3: W ar 41 done`

func TestTwoStatesOfOneRank(t *testing.T) {
	rep := conclude(t, late+`
		rank 3 {t=50}: W ar 42
		rank 3 {t=40}: W ar 40 done`)
	assert.Equal(t, []string{"stalled_op: all_reduce 42 of W; 0-3 wait"}, said(rep), "the newest counts")
	assert.Equal(t, int64(2), rep.Stats.StatesRefused)
	require.NotEmpty(t, rep.Problems)
	assert.Contains(t, rep.Problems[0], "rank 3")
	assert.Equal(t, 4, rep.Ranks)
}

// What NCCL's RAS counts is a second vote for who has not come.
func TestSourcesAgree(t *testing.T) {
	const votes = `
		group W 0-3
		group R 0-3 func
		rank 0-2: W ar 42; R=-
		rank 3: W ar 41 done; R=-
		rank 0-2 {ras}: R ar 17; W=-
		rank 3 {ras}: R ar 16; W=-`
	alone, both := conclude(t, late), conclude(t, votes)
	require.Equal(t, said(alone), said(both))
	assert.Greater(t, both.Roots[0].Finding.Confidence, alone.Roots[0].Finding.Confidence)
	assert.Empty(t, both.Problems, "another source is no twin")
	unmoved(t, votes, both)

	// It counts as many of rank 3 as of the others: that is no second vote.
	differ := conclude(t, strings.Replace(votes, "R ar 16", "R ar 17", 1))
	assert.LessOrEqual(t, differ.Roots[0].Finding.Confidence, alone.Roots[0].Finding.Confidence)
}

// Of many answers of RAS the newest count, whatever order they come in, and the others are
// counted.
func TestManyAnswersOfRAS(t *testing.T) {
	var text strings.Builder
	text.WriteString(`
		group W 0-3
		group R 0-3 func
		rank 0-2: W ar 42; R=-
		rank 3: W ar 41 done; R=-
		rank 0-2 {ras t=50}: R ar 17; W=-
		rank 3 {ras t=50}: R ar 17; W=-`)
	for i := range 6 { // older, when it had not come
		fmt.Fprintf(&text, "\nrank 3 {ras t=%d}: R ar 16; W=-", 10+i)
	}
	rep := conclude(t, text.String())
	assert.Equal(t, int64(3), rep.Stats.VotesDropped)
	unmoved(t, text.String(), rep)
}

// What RAS says alone decides nothing.
func TestOnlyRAS(t *testing.T) {
	rep := conclude(t, `
		group R 0-3 func
		rank 0-2 {ras}: R ar 17
		rank 3 {ras}: R ar 16`)
	assert.Contains(t, []desync.Verdict{desync.NoData, desync.Undecided}, rep.Verdict)
	assert.Empty(t, accused(rep))
}

func TestAStateCountsMoreThanAnAbsence(t *testing.T) {
	rep := conclude(t, late+`
		absent 3 missing`)
	assert.Equal(t, []string{"not_scheduled 3: all_reduce 42 of W; 0-2 wait"}, said(rep))
	// But for the dead: they were seen.
	rep = conclude(t, late+`
		absent 3 dead`)
	assert.Equal(t, []string{"process_dead 3: all_reduce 42 of W; 0-2 wait"}, said(rep))
	// Of two reasons the better known counts.
	rep = conclude(t, "group W 0-3\nrank 0-2: W ar 42\nabsent 3 missing\nabsent 3 dead")
	assert.Equal(t, []string{"process_dead 3: all_reduce 42 of W; 0-2 wait"}, said(rep))
	require.Len(t, rep.Absent, 1)
	assert.Equal(t, model.AbsentDead, rep.Absent[0].Reason)
}

func TestYoungOperationsAreNoHang(t *testing.T) {
	const text = `
		group W 0-3
		rank 0-2 {t=100}: W ar 41 at=90 done; W ar 42 at=%s
		rank 3 {t=100}: W ar 41 at=90 done`
	young := conclude(t, fmt.Sprintf(text, "99.5"))
	assert.Equal(t, desync.Healthy, young.Verdict)
	old := conclude(t, fmt.Sprintf(text, "90"))
	assert.Equal(t, desync.Hang, old.Verdict)
	assert.Equal(t, statetest.Epoch+90e9, old.Roots[0].Finding.Start)
	assert.Equal(t, statetest.Epoch+90e9, old.Since)

	c := statetest.Read(t, fmt.Sprintf(text, "99.5"))
	later := judge(c, desync.NewDefaultConfig(), statetest.Epoch+130e9)
	assert.Equal(t, desync.Hang, later.Verdict, "as of half a minute later")
	cfg := desync.NewDefaultConfig()
	cfg.StallAfter = time.Minute
	assert.Equal(t, desync.Healthy, judge(c, cfg, statetest.Epoch+130e9).Verdict)
}

// What is concluded to be open, and is not recorded any more, has no age. Where all else is young it
// does not show that the job stands still: nor that it runs.
func TestYoungOperationsBesideOnesThatWereOverwritten(t *testing.T) {
	const text = `
		group W 0-3
		group V 0,1
		rank 0-1 {t=100}: W ar 41 at=90 done; W ar 42 at=%[1]s; V ar 7 at=%[1]s; V=7/4/7
		rank 2 {t=100}: W ar 41 at=90 done; W ar 42 at=%[1]s
		rank 3 {t=100}: W ar 41 at=90 done`
	young := conclude(t, fmt.Sprintf(text, "99.5"))
	assert.Equal(t, desync.Undecided, young.Verdict)
	assert.Contains(t, young.MayRun, "of 2 of 4 ranks operations are counted as open that are not recorded")
	assert.Empty(t, young.Roots)
	assert.Equal(t, desync.Hang, conclude(t, fmt.Sprintf(text, "90")).Verdict)
}

// The counts of a running process are a moment older than its operations. Where only what is active was
// recorded, and that is nothing, they show no hang.
func TestCountsThatAreOlderThanTheOperations(t *testing.T) {
	for name, text := range map[string]string{
		"all ranks":   "group W 0-3\nrank 0-3 {active}: W=42/41",
		"one of them": "group W 0-3\nrank 0-2 {active}: W=42/42\nrank 3 {active}: W=42/40",
		"two groups":  "group W 0-3\ngroup V 0,1\nrank 0-1 {active}: W=42/42; V=7/5\nrank 2-3 {active}: W=42/42",
	} {
		rep := conclude(t, text)
		assert.Equal(t, desync.Undecided, rep.Verdict, name)
		assert.Contains(t, rep.MayRun, "counted as open that are not recorded", name)
		assert.Empty(t, rep.Roots, name)
	}
}

// Nobody is through an all-reduce before all have entered it: a rank that had not, in its own
// state, was seen earlier.
func TestStatesOfDifferentTimes(t *testing.T) {
	t.Run("a dump of before the incident", func(t *testing.T) {
		rep := conclude(t, `
			group W 0-3
			rank 0-2: W ar 500 at=7000 done; W ar 501 at=7001
			rank 3: W ar 10 at=100 done`)
		assert.Equal(t, []string{"dump_missing ?3: all_reduce 501 of W; 0-2 wait"}, said(rep))
		require.Len(t, rep.Absent, 1)
		assert.Equal(t, model.AbsentStale, rep.Absent[0].Reason)
		assert.NotEmpty(t, rep.Problems)
	})
	t.Run("the job goes on while it is looked at", func(t *testing.T) {
		rep := conclude(t, `
			group W 0-3
			rank 0-2: W ar 500 at=7000 done; W ar 501 at=7001
			rank 3: W ar 498 at=6999 done`)
		assert.Empty(t, accused(rep))
	})
	t.Run("a broadcast is left before all have come", func(t *testing.T) {
		rep := conclude(t, `
			group W 0-3
			rank 0: W bc 500 root=0 at=7000 done; W bc 501 root=0 at=7001 done; W ar 502 at=7001
			rank 1-2: W bc 500 root=0 at=7000 done; W bc 501 root=0 at=7001 done; W ar 502 at=7002
			rank 3: W bc 500 root=0 at=7000 done`)
		assert.Equal(t, []string{"not_scheduled 3: broadcast 501 of W, 3 more through them"}, said(rep))
	})
}

func TestLimits(t *testing.T) {
	c := statetest.Read(t, late)
	limited := func(set func(*desync.Config)) *desync.Report {
		cfg := desync.NewDefaultConfig()
		set(&cfg)
		return judge(c, cfg, 0)
	}
	t.Run("ranks", func(t *testing.T) {
		rep := limited(func(c *desync.Config) { c.MaxRanks = 2 })
		assert.Equal(t, 2, rep.Ranks)
		assert.Equal(t, int64(2), rep.Stats.StatesRefused)
	})
	t.Run("communicators", func(t *testing.T) {
		c = statetest.Read(t, "group W 0-2\ngroup X 0-2\nrank 0-1: W ar 42; X ar 1\nrank 2: W ar 41 done")
		rep := limited(func(c *desync.Config) { c.MaxGroups = 1 })
		assert.Positive(t, rep.Stats.GroupsDropped)
		assert.Empty(t, accused(rep), "a rank may wait in what found no room")
	})
	t.Run("open operations", func(t *testing.T) {
		c = statetest.Read(t, "group W 0-1\nrank 0-1: W ar 1; W ar 2; W ar 3; W ar 4")
		assert.Equal(t, int64(4), limited(func(c *desync.Config) { c.MaxOpen = 2 }).Stats.OpsDropped)
	})
	t.Run("roots", func(t *testing.T) {
		c = statetest.Read(t, "group A 0,1\ngroup B 2,3\ngroup C 4,5\n"+
			"rank 0: A ar 2\nrank 1: A ar 1 done\nrank 2: B ar 2\nrank 3: B ar 1 done\nrank 4: C ar 2\nrank 5: C ar 1 done")
		rep := limited(func(c *desync.Config) { c.MaxRoots = 2 })
		assert.Len(t, rep.Roots, 2)
		assert.Equal(t, int64(1), rep.Stats.RootsOmitted)
	})
	t.Run("ranks of a finding", func(t *testing.T) {
		rep := conclude(t, "group W 0-199\nrank 0-149: W ar 42\nrank 150-199: W ar 41 done")
		require.Len(t, rep.Roots, 1)
		f := rep.Roots[0].Finding
		assert.Len(t, f.Waiting, 64)
		assert.Equal(t, model.Some(int64(150)), f.WaitingCount)
		assert.Equal(t, model.Some(int64(50)), f.RanksCount)
		assert.Len(t, rep.Roots[0].Members, desync.MaxMembers)
		assert.Equal(t, 200-desync.MaxMembers, rep.Roots[0].MembersOmitted)
		assert.Equal(t, int64(150), rep.Roots[0].Members[0].Rank, "the odd ones come first")
	})
}

func TestHostileNumbers(t *testing.T) {
	far := int64(1) << 62
	some := model.Some[int64]
	s := model.RankState{
		Rank: model.Rank{Rank: 1}, Source: model.StateFlightRecorder,
		Comms: []model.CommState{
			{Comm: model.Comm{ID: "W"}, Members: []int64{1, far, -far, 1}, Frontiers: []model.Frontier{{Enqueued: some(-far), Completed: some(far), FirstKept: some(-1)}}},
			{Comm: model.Comm{ID: "W"}},
		},
		Ops: []model.StateOp{
			{Comm: -1, Seq: far},
			{Comm: 99},
			{Comm: 0, Seq: -far, Stack: 1 << 30},
			{Comm: 1, Seq: far, Kind: "?", Peer: some(-far)},
			{Comm: 0, Kind: model.KindRecv, Peer: some(1)},
			{Comm: 0, Kind: model.KindSend},
		},
	}
	a := desync.New(desync.Config{})
	a.Add(&s)
	s.Rank.Rank = -1
	a.Add(&s)
	a.AddAbsence(model.Absence{Rank: -5})
	a.AddAbsence(model.Absence{Rank: far, Reason: "?"})
	a.SetJob(desync.Job{WorldSize: some(far)})
	rep := a.Conclude(-far)
	assert.Equal(t, int64(2), rep.Stats.StatesRefused)
	assert.Equal(t, int64(2), rep.Stats.OpsDropped)
}

func TestGroupsAreListed(t *testing.T) {
	rep := conclude(t, `
		world 4
		group W 0-3
		group P 0,1
		rank 0: W ar 41 done; W ar 42; P ar 7 done
		rank 1: W ar 41 done; W ar 42; P ar 7 done
		rank 2: W ar 40 done
		absent 3 late`)
	require.Len(t, rep.Groups, 2)
	g := rep.Groups[0]
	assert.Equal(t, "W", g.Comm.ID, "what is open comes first")
	assert.Equal(t, 4, g.Members)
	assert.Equal(t, 3, g.Seen)
	assert.True(t, g.HasHead)
	assert.Equal(t, int64(42), g.Head.Seq)
	assert.Equal(t, []int64{2, 3}, g.Absent)
	assert.Equal(t, 2, g.Open)
	assert.Equal(t, model.Some(int64(40)), g.EnqueuedMin)
	assert.Equal(t, model.Some(int64(42)), g.EnqueuedMax)
	assert.False(t, rep.Groups[1].HasHead)
}

func TestPathFromAFarVictim(t *testing.T) {
	rep := conclude(t, `
		group A 0,1
		group B 1,2
		group C 2,3
		rank 0: A ar 5
		rank 1: A ar 4 done; B ar 6
		rank 2: B ar 5 done; C ar 7
		rank 3: C ar 6 done`)
	require.Equal(t, []string{"not_scheduled 3: all_reduce 7 of C; 2 wait, 2 more through them"}, said(rep))
	var way []string
	for _, h := range rep.Roots[0].Path {
		way = append(way, fmt.Sprintf("%d in %s of %s for %d", h.Rank, h.Op.Name, h.Op.Comm.Name, h.For))
	}
	assert.Equal(t, []string{"0 in all_reduce of A for 1", "1 in all_reduce of B for 2", "2 in all_reduce of C for 3"}, way)
	assert.Equal(t, 3, rep.Victims)
}
