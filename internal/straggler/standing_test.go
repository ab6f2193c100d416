// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// episodes runs steps of four ranks in which rank 2 is slow from step 4 to 15 and from 40 on, and
// returns the ids in the order of opening.
func episodes(w *world, from, to int64) (ids []string) {
	for n := from; n < to; n++ {
		slow := map[int]program{}
		if n >= 4 && n < 16 || n >= 40 {
			slow[2] = "c40 *"
		}
		w.step(n, each(4, "c20 *", slow)...)
		for _, v := range w.e.Verdicts() {
			if !slices.Contains(ids, v.Finding.ID) {
				ids = append(ids, v.Finding.ID)
			}
		}
	}
	return ids
}

// inBatches adds many steps at once, rank by rank. The function that it returns adds the rest and returns the verdicts.
func inBatches(w *world, steps int) func() []Verdict {
	held := map[int64][][]model.Op{}
	bring := func() {
		for _, rank := range slices.Sorted(maps.Keys(held)) {
			w.e.Add(w.rank(rank), slices.Concat(held[rank]...))
		}
		clear(held)
	}
	w.sink = func(rank int64, ops []model.Op) {
		if rank == 0 && len(held[rank]) == steps {
			bring()
		}
		held[rank] = append(held[rank], slices.Clone(ops))
	}
	return func() []Verdict {
		bring()
		return w.e.Verdicts()
	}
}

func brief(c *Config) { c.Window, c.CleanSteps = 6, 8 }

func TestEngine_FindingID_DependsOnTheDataAlone(t *testing.T) {
	want := episodes(newWorld(t, 4, brief), 0, 50)
	require.Len(t, want, 2)
	assert.NotEqual(t, want[0], want[1])

	assert.Equal(t, want, episodes(newWorld(t, 4, brief), 0, 50), "the same input")

	late := newWorld(t, 4, brief)
	for r := range int64(4) {
		late.at[r] = 24 * 3600 * 1000
	}
	assert.Equal(t, want, episodes(late, 0, 50), "all times shifted by a day")

	for _, size := range []int{3, 7, 50} {
		w := newWorld(t, 4, brief, func(c *Config) { c.JudgeEvery = 1 })
		bring := inBatches(w, size)
		got := episodes(w, 0, 50)
		for _, v := range bring() {
			got = append(got, v.Finding.ID)
		}
		slices.Sort(got)
		assert.Equal(t, slices.Sorted(slices.Values(want)), slices.Compact(got), "batches of %d steps of a rank", size)
	}

	for _, size := range []int{1, 2} {
		pieces := newWorld(t, 4, brief)
		pieces.sink = func(rank int64, ops []model.Op) {
			for piece := range slices.Chunk(ops, size) {
				pieces.e.Add(pieces.rank(rank), piece)
			}
		}
		assert.Equal(t, want, episodes(pieces, 0, 50), "batches of %d operations", size)
	}

	assert.Equal(t, want[1:], episodes(newWorld(t, 4, brief), 30, 50), "an engine that began after the first episode")
}

// node is the conclusion that the host of ranks 2 and 3 is slow.
func node() judge.Conclusion {
	return judge.Conclusion{Class: model.ClassNode, Host: "n0", Rank: -1, Peer: -1, Stage: -1, Ranks: []int64{2, 3}, Last: 7, Excess: 0.01, Mean: 0.01}
}

func TestEngine_FoundAgain_GoesOnUnderItsID(t *testing.T) {
	w := newWorld(t, 4)
	stepsOf(w, 8, each(4, "c20:gemm *", map[int]program{3: "c40:gemm *"})...)
	opened := concluded(w, accusation(model.ClassCompute, 3, 8))
	require.Len(t, opened, 1)
	assert.Equal(t, int64(1), opened[0].Finding.Revision)
	var closed model.Finding
	for range explainedLooks {
		for _, v := range concluded(w, node()) {
			if v.Finding.Status == model.StatusClosed {
				closed = v.Finding
			}
		}
	}
	require.Equal(t, opened[0].Finding.ID, closed.ID)
	again := concluded(w, accusation(model.ClassCompute, 3, 8))
	require.Len(t, again, 1)
	assert.Equal(t, closed.ID, again[0].Finding.ID)
	assert.Equal(t, closed.Revision+1, again[0].Finding.Revision)
	assert.Equal(t, model.StatusUpdated, again[0].Finding.Status)
	named := 0
	for _, v := range w.e.Jobs()[0].Verdicts {
		if v.Finding.ID == closed.ID {
			named++
		}
	}
	assert.Equal(t, 1, named, "a report names it once")
}

func TestEngine_JobEvicted_ItsFindingsAreDropped(t *testing.T) {
	w := newWorld(t, 4, func(c *Config) { c.MaxJobs = 1 })
	episodes(w, 0, 14)
	require.Len(t, w.e.Standing(), 1)
	other := w.rank(0)
	other.Incarnation = "another life"
	w.now = w.now.Add(longIdle + time.Second)
	w.e.Add(other, nil)
	assert.Equal(t, int64(1), w.e.Stats().JobsEvicted)
	assert.Empty(t, w.e.Standing())
	assert.Empty(t, w.e.Verdicts(), "nobody knows that it ended")
}

func TestEngine_NoRoom_CountsAFindingOnce(t *testing.T) {
	w := newWorld(t, 4, func(c *Config) { c.CleanSteps = 1000 })
	for i := range maxOpenOfJob {
		p := finding.Place{Job: "job", Incarnation: "life", Name: fmt.Sprint("rank/", 100+i)}
		require.NotNil(t, w.e.book.Open(p, 0, &model.Finding{Kind: model.FindingStraggler}, w.now))
	}
	w.e.Verdicts()
	for n := range int64(8) {
		w.step(n, each(4, "c20 *", map[int]program{2: "c40 *"})...)
		assert.Empty(t, w.e.Verdicts())
	}
	assert.Equal(t, int64(1), w.e.Stats().FindingsWithheld)
	assert.Len(t, w.e.Standing(), maxOpenOfJob)
}

// restart gives the world another engine, which has what the first kept.
func (w *world) restart() {
	w.t.Helper()
	data, err := w.e.Snapshot()
	require.NoError(w.t, err)
	w.e = New(w.e.cfg, func() time.Time { return w.now })
	require.NoError(w.t, w.e.Restore(data, w.now))
}

func TestEngine_Restart_FindingGoesOnAndCloses(t *testing.T) {
	w := newWorld(t, 4, brief)
	ids := episodes(w, 0, 14)
	require.Len(t, ids, 1)
	before := w.e.Standing()
	w.restart()
	assert.Equal(t, ids[0], w.e.Standing()[0].ID)
	assert.Equal(t, before[0].Revision, w.e.Standing()[0].Revision)
	assert.Empty(t, w.e.Verdicts(), "nothing is news")

	slow := each(4, "c20 *", map[int]program{2: "c40 *"})
	for n := int64(14); n < 22; n++ {
		w.step(n, slow...)
		for _, v := range w.e.Verdicts() {
			assert.Equal(t, ids[0], v.Finding.ID)
			assert.Equal(t, model.StatusUpdated, v.Finding.Status, "it is not opened again")
		}
	}
	now := w.e.Standing()
	require.Len(t, now, 1)
	assert.Equal(t, before[0].StepFirst, now[0].StepFirst)
	assert.Equal(t, before[0].Start, now[0].Start)
	assert.Equal(t, model.Some(int64(21)), now[0].StepLast)

	var closed []Verdict
	for n := int64(22); n < 40 && len(closed) == 0; n++ {
		w.step(n, each(4, "c20 *", nil)...)
		closed = w.e.Verdicts()
	}
	require.Len(t, closed, 1)
	assert.Equal(t, ids[0], closed[0].Finding.ID)
	assert.Equal(t, model.StatusClosed, closed[0].Finding.Status)
	assert.Greater(t, closed[0].Finding.Revision, before[0].Revision)
	assert.Empty(t, w.e.Standing())
}

func TestEngine_Restart_RankHasRecovered_ClosesAfterCleanSteps(t *testing.T) {
	w := newWorld(t, 4, brief)
	require.Len(t, episodes(w, 0, 14), 1)
	w.restart()
	for n := int64(14); n < 21; n++ {
		w.step(n, each(4, "c20 *", nil)...)
		require.Empty(t, w.e.Verdicts(), "step %d", n)
	}
	w.step(21, each(4, "c20 *", nil)...)
	closed := w.e.Verdicts()
	require.Len(t, closed, 1)
	assert.Equal(t, model.StatusClosed, closed[0].Finding.Status)
	require.Len(t, w.e.Jobs()[0].Verdicts, 1, "the report of the job has it")
}

func TestEngine_Restart_JobDoesNotAppear_ClosesAfterTenMinutes(t *testing.T) {
	w := newWorld(t, 4, brief)
	require.Len(t, episodes(w, 0, 14), 1)
	before := w.e.Standing()[0]
	w.restart()
	w.now = w.now.Add(longIdle - time.Second)
	require.Empty(t, w.e.Verdicts())
	w.now = w.now.Add(time.Second)
	closed := w.e.Verdicts()
	require.Len(t, closed, 1)
	before.Status, before.Revision = model.StatusClosed, before.Revision+1
	closed[0].Finding.Evidence, before.Evidence = nil, nil
	assert.Equal(t, before, closed[0].Finding)
	assert.Empty(t, w.e.Standing())
}

// The process may have been killed before it sent what it had kept as closed.
func TestEngine_Restart_RepeatsWhatWasClosedLast(t *testing.T) {
	w := newWorld(t, 4, brief)
	ids := episodes(w, 0, 30)
	require.Len(t, ids, 1)
	require.Empty(t, w.e.Standing())
	w.restart()
	closed := w.e.Verdicts()
	require.Len(t, closed, 1)
	assert.Equal(t, ids[0], closed[0].Finding.ID)
	assert.Equal(t, model.StatusClosed, closed[0].Finding.Status)
	assert.Empty(t, w.e.Verdicts())
}

func TestEngine_Restore_Damaged_StartsWithout(t *testing.T) {
	w := newWorld(t, 4)
	require.ErrorContains(t, w.e.Restore([]byte("{"), w.now), "restore stragglers: read findings")
	assert.Empty(t, w.e.Standing())
}

// A finding that ends and begins again within one batch is reported in the order of its revisions.
func TestVerdicts_EndsAndBeginsAgainInABatch_InOrder(t *testing.T) {
	for clean := 1; clean <= 3; clean++ {
		for turn := int64(4); turn <= 12; turn++ {
			w := newWorld(t, 4, func(c *Config) { c.JudgeEvery, c.Window, c.CleanSteps = 1, 40, clean })
			bring := inBatches(w, 1000)
			for n := range int64(60) {
				slow := map[int]program{}
				if n/turn%2 == 0 {
					slow[2] = "c40 *"
				}
				w.step(n, each(4, "c20 *", slow)...)
			}
			last := map[string]int64{}
			for _, v := range bring() {
				f := &v.Finding
				assert.Greater(t, f.Revision, last[f.ID], "clean %d, turn %d, finding %s", clean, turn, f.ID)
				last[f.ID] = f.Revision
			}
		}
	}
}

// After a restart the first steps are too few to name a rank. They do not close its finding, and open no other
// when the window has grown.
func TestEngine_Restart_NamedLate_GoesOnUnderItsID(t *testing.T) {
	for _, clean := range []int{5, NewDefaultConfig().CleanSteps} {
		for slow := int64(1); slow <= 8; slow++ {
			w := newWorld(t, 4, func(c *Config) { c.JudgeEvery, c.CleanSteps = 1, clean })
			stepsOf(w, 40, each(4, "c20 *", map[int]program{2: "c40 *"})...)
			opened := w.e.Verdicts()
			require.Len(t, opened, 1)
			w.restart()
			var status []string
			for n := int64(40); n < 180; n++ {
				slower := map[int]program{}
				if n < 40+slow {
					slower[2] = "c40 *"
				}
				w.step(n, each(4, "c20 *", slower)...)
				for _, v := range w.e.Verdicts() {
					assert.Equal(t, opened[0].Finding.ID, v.Finding.ID, "%d slow steps, step %d", slow, n)
					status = append(status, v.Finding.Status)
				}
			}
			require.NotEmpty(t, status)
			assert.Equal(t, model.StatusClosed, status[len(status)-1], "it ends")
		}
	}
}
