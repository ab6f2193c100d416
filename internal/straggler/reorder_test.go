// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// partOf is what one rank sends of one step of a job of four, of which rank 2 computes longer from the tenth step on.
func partOf(rank, step int64) (model.Rank, []model.Op) {
	const collectives = 6
	r := model.Rank{JobName: "job", JobID: "job", Incarnation: "life", Rank: rank, WorldSize: model.Some(int64(4)), HostName: "h", ClockID: "c"}
	begin := time.Unix(1000, 0).UnixNano() + step*int64(100*ms)
	var ops []model.Op
	for i := range int64(collectives) {
		at := begin + i*int64(15*ms)
		enter := at + int64(8*ms)
		if rank == 2 && step >= 10 {
			enter += int64(4 * ms)
		}
		ops = append(
			ops, model.Op{Kind: model.KindCompute, Name: "gemm", Seq: i, Start: at, End: enter, Step: model.Some(step), Stream: model.Some(int64(7))},
			model.Op{
				Kind: model.KindCollective, Name: "all_reduce", Seq: i, Start: enter, End: at + int64(13*ms), Step: model.Some(step), Stream: model.Some(int64(20)),
				Comm: model.Comm{ID: "w", Size: model.Some(int64(4))}, Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(step*collectives + i), SeqScope: model.ScopeComm},
			},
		)
	}
	return r, append(ops, model.Op{Kind: model.KindStep, Name: "step", Start: begin, End: begin + int64(95*ms), Step: model.Some(step), StepOps: model.Some(int64(len(ops)))})
}

// sent is one rank's part of one step.
type sent struct{ rank, step int64 }

// judged gives parts to an engine, some milliseconds apart, and returns the steps in the order in which they were
// concluded, over how many ranks each, and the findings by id.
func judged(parts []sent, reorder time.Duration) (order []int64, ranks map[int64]int, ids map[string]bool) {
	now := time.Unix(2000, 0)
	cfg := NewDefaultConfig()
	cfg.JudgeEvery, cfg.Reorder = 1, reorder
	e := New(cfg, func() time.Time { return now })
	ranks, ids = map[int64]int{}, map[string]bool{}
	note := func(reports []*StepReport) {
		for _, r := range reports {
			order = append(order, r.Step)
			ranks[r.Step] = len(r.Ranks)
		}
		for _, v := range e.Verdicts() {
			ids[v.Finding.ID] = true
		}
	}
	for _, p := range parts {
		now = now.Add(10 * time.Millisecond)
		r, ops := partOf(p.rank, p.step)
		note(e.Add(r, ops))
	}
	for range 40 { // with reorder, the last of a gap waits
		now = now.Add(time.Second)
		note(e.Expire())
	}
	note(e.Flush())
	return order, ranks, ids
}

// Steps that become complete in another order are judged in their own, and give the findings of an undisturbed run.
func TestReorder_DisorderWithinTheWait_ChangesNothing(t *testing.T) {
	const steps = 60
	var inOrder []sent
	for s := range int64(steps) {
		for r := range int64(4) {
			inOrder = append(inOrder, sent{r, s})
		}
	}
	wantOrder, wantRanks, want := judged(inOrder, 0)
	require.Len(t, want, 1)
	for seed := range uint64(tier.N(t, 10, 200)) {
		random := rand.New(rand.NewPCG(seed, 0))
		parts := append([]sent(nil), inOrder...)
		random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] }) // 2.4 s in all
		for range 30 {
			parts = append(parts, parts[random.IntN(len(parts))]) // twice
		}
		order, ranks, ids := judged(parts, 10*time.Second)
		require.Equal(t, wantOrder, order, "seed %d", seed)
		require.Equal(t, wantRanks, ranks, "seed %d", seed)
		require.Equal(t, want, ids, "seed %d", seed)
	}
}

// A step that never comes holds up the next ones for the wait, once.
func TestReorder_MissingStep_HoldsUpOnce(t *testing.T) {
	now := time.Unix(2000, 0)
	cfg := NewDefaultConfig()
	cfg.Reorder = 10 * time.Second
	e := New(cfg, func() time.Time { return now })
	var got []int64
	add := func(step int64) {
		for r := range int64(4) {
			rank, ops := partOf(r, step)
			for _, rep := range e.Add(rank, ops) {
				got = append(got, rep.Step)
			}
		}
	}
	add(0)
	add(2)
	add(3)
	assert.Equal(t, []int64{0}, got, "1 may come")
	now = now.Add(10 * time.Second)
	for _, rep := range e.Expire() {
		got = append(got, rep.Step)
	}
	assert.Equal(t, []int64{0, 2, 3}, got)
	add(4)
	assert.Equal(t, []int64{0, 2, 3, 4}, got, "at once")
	add(1)
	assert.Equal(t, []int64{0, 2, 3, 4, 1}, got, "late, and not lost")
}

func TestReorder_BeyondTheDeadline_IsRefused(t *testing.T) {
	cfg := NewDefaultConfig()
	cfg.Reorder = cfg.Deadline
	assert.EqualError(t, cfg.Validate(), "check reorder: got 30s; want 0 to less than the deadline, 30s")
}

// A job that another engine gets leaves nothing here: neither its open steps nor its findings are reported.
func TestForget_JobWithAFinding_ReportsNothingMore(t *testing.T) {
	now := time.Unix(2000, 0)
	cfg := NewDefaultConfig()
	cfg.JudgeEvery = 1
	e := New(cfg, func() time.Time { return now })
	for s := range int64(40) {
		for r := range int64(4) {
			rank, ops := partOf(r, s)
			e.Add(rank, ops)
		}
	}
	require.NotEmpty(t, e.Verdicts())
	rank, ops := partOf(0, 40)
	e.Add(rank, ops)
	e.Forget([]string{"other", "job"})
	assert.Empty(t, e.Flush())
	assert.Empty(t, e.Verdicts())
	assert.Empty(t, e.Standing())
	assert.Zero(t, e.Bytes())
	assert.Zero(t, e.Stats().JobsEvicted, "it is no loss")
}

// What comes twice does not hold a complete step any longer.
func TestReorder_Duplicates_HoldNoLonger(t *testing.T) {
	now := time.Unix(2000, 0)
	cfg := NewDefaultConfig()
	cfg.Reorder = 20 * time.Second
	e := New(cfg, func() time.Time { return now })
	for r := range int64(4) {
		rank, ops := partOf(r, 7)
		require.Empty(t, e.Add(rank, ops))
	}
	now = now.Add(15 * time.Second)
	rank, ops := partOf(0, 7)
	require.Empty(t, e.Add(rank, ops))
	now = now.Add(5 * time.Second)
	assert.Len(t, e.Expire(), 1)
}

// Where there is no room, complete steps that wait for their turn go first: an incomplete one keeps its deadline.
func TestReorder_NoRoom_ClosesCompleteSteps(t *testing.T) {
	now := time.Unix(2000, 0)
	cfg := NewDefaultConfig()
	cfg.Reorder, cfg.MaxOpenSteps = 20*time.Second, 3
	e := New(cfg, func() time.Time { return now })
	whole := map[int64]int{}
	add := func(rank, step int64) {
		r, ops := partOf(rank, step)
		for _, rep := range e.Add(r, ops) {
			whole[rep.Step] = len(rep.Ranks)
		}
	}
	for r := range int64(3) {
		add(r, 1) // rank 3 is late
	}
	for s := range int64(5) {
		for r := range int64(4) {
			add(r, 2+s)
		}
	}
	assert.NotContains(t, whole, int64(1))
	add(3, 1)
	now = now.Add(cfg.Reorder)
	for _, rep := range e.Expire() {
		whole[rep.Step] = len(rep.Ranks)
	}
	assert.Equal(t, 4, whole[1])
	assert.Zero(t, e.Stats().StepsEvicted)
}

// So it is where the bytes are short.
func TestReorder_NoMemory_ClosesCompleteSteps(t *testing.T) {
	cfg := NewDefaultConfig()
	cfg.Reorder = 20 * time.Second
	e := New(cfg, func() time.Time { return time.Unix(2000, 0) })
	var concluded []int64
	add := func(rank, step int64) {
		r, ops := partOf(rank, step)
		for _, rep := range e.Add(r, ops) {
			require.Len(t, rep.Ranks, 4, "step %d", rep.Step)
			concluded = append(concluded, rep.Step)
		}
	}
	const late = 10 // is the step of which rank 3 is late
	for s := range int64(60) {
		for r := range int64(4) {
			if s != late || r != 3 {
				add(r, s)
			}
		}
	}
	require.Len(t, concluded, late)
	e.cfg.MaxMemory = e.Bytes()
	for r := range int64(4) {
		add(r, 60)
	}
	require.Greater(t, len(concluded), late)
	assert.EqualValues(t, late+1, concluded[late], "the first that is complete")
	add(3, late)
	assert.Contains(t, concluded, int64(late), "whole")
	assert.Zero(t, e.Stats().StepsEvicted)
}

// After its source was cut off, a step waits for its ranks as if it had just begun.
func TestTouch_SourceWasCutOff_DeadlinesBeginAnew(t *testing.T) {
	now := time.Unix(2000, 0)
	cfg := NewDefaultConfig()
	e := New(cfg, func() time.Time { return now })
	rank, ops := partOf(0, 1)
	e.Add(rank, ops)
	now = now.Add(cfg.Deadline)
	e.Touch()
	assert.Empty(t, e.Expire())
	now = now.Add(cfg.Deadline)
	assert.Len(t, e.Expire(), 1)
}

// Findings of before a restart go with their job, also where nothing has come of it since.
func TestForget_FindingOfBeforeARestart_Goes(t *testing.T) {
	now := time.Unix(2000, 0)
	cfg := NewDefaultConfig()
	cfg.JudgeEvery = 1
	e := New(cfg, func() time.Time { return now })
	for s := range int64(40) {
		for r := range int64(4) {
			rank, ops := partOf(r, s)
			e.Add(rank, ops)
		}
	}
	require.NotEmpty(t, e.Verdicts())
	kept, err := e.Snapshot()
	require.NoError(t, err)
	e = New(cfg, func() time.Time { return now })
	require.NoError(t, e.Restore(kept, now))
	require.NotEmpty(t, e.Standing())
	e.Forget([]string{"job"})
	assert.Empty(t, e.Standing())
	now = now.Add(time.Hour)
	e.Expire()
	assert.Empty(t, e.Verdicts(), "it is not reported as closed")
}

// Steps that are read again after a restart revise no finding that knew later ones.
func TestRestore_StepsAreReadAgain_NoRevisionIsOlder(t *testing.T) {
	now := time.Unix(2000, 0)
	cfg := NewDefaultConfig()
	cfg.JudgeEvery = 1
	e := New(cfg, func() time.Time { return now })
	var last model.Finding
	run := func(from, to int64) {
		for s := from; s < to; s++ {
			for r := range int64(4) {
				rank, ops := partOf(r, s)
				e.Add(rank, ops)
			}
			for _, v := range e.Verdicts() {
				assert.GreaterOrEqual(t, v.Finding.StepLast.V, last.StepLast.V)
				last = v.Finding
			}
		}
	}
	run(0, 60)
	e.Flush()
	for _, v := range e.Verdicts() {
		last = v.Finding
	}
	require.EqualValues(t, 59, last.StepLast.V)
	kept, err := e.Snapshot()
	require.NoError(t, err)
	e = New(cfg, func() time.Time { return now })
	require.NoError(t, e.Restore(kept, now))
	run(20, 90)
	e.Flush()
	changed := e.Verdicts()
	require.Len(t, changed, 1)
	assert.Equal(t, last.ID, changed[0].Finding.ID)
	assert.EqualValues(t, 89, changed[0].Finding.StepLast.V)
}
