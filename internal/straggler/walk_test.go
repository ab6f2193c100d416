// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

func onlyJob(t *testing.T, e *Engine) *job {
	t.Helper()
	require.Len(t, e.jobs, 1)
	return e.sorted()[0]
}

func TestPathGoesToWhoIsLate(t *testing.T) {
	w := newWorld(t, 4)
	for n := range int64(6) {
		w.step(n, each(4, "h1:data c30:gemm * c5:norm *", map[int]program{2: "h21:data c30:gemm * c5:norm *", 1: "h1:data c30:gemm * c12:norm *"})...)
	}
	for _, rep := range w.reports {
		require.NotEmpty(t, rep.Path)
		require.Len(t, rep.PathMeetings, 2)
		assert.Equal(t, int64(1), rep.Meetings[rep.PathMeetings[0]].LastRank)
		assert.Equal(t, int64(2), rep.Meetings[rep.PathMeetings[1]].LastRank)
		var ranks []int64
		for i, s := range rep.Path {
			if i > 0 {
				assert.LessOrEqual(t, s.End, rep.Path[i-1].Start, "the latest first")
			}
			if s.Class != model.ClassLink {
				ranks = append(ranks, s.Rank)
			}
		}
		assert.Equal(t, []int64{1, 2}, ranks)
		first := rep.Path[len(rep.Path)-1]
		assert.Equal(t, model.ClassHost, first.Class)
		assert.Equal(t, "data", first.Op)
		assert.InDelta(t, 20, first.Excess.Seconds()*1e3, 0.01)
	}
	j := onlyJob(t, w.e)
	share, op := j.blamed(2)
	assert.InDelta(t, 20.0/65, share, 0.01, "of 51 + 1 + 12 + 1 ms")
	assert.Equal(t, "data", op)
	share, op = j.blamed(1)
	assert.InDelta(t, 7.0/65, share, 0.01)
	assert.Equal(t, "norm", op)
	share, _ = j.blamed(0)
	assert.Zero(t, share)
	saved, ok := j.walkSaved(2)
	assert.True(t, ok)
	assert.InDelta(t, 0.020, saved, 1e-4)
}

// The spans that a path names are those that receivers gave the operations.
func TestPathNamesSpans(t *testing.T) {
	w := newWorld(t, 4)
	for n := range int64(3) {
		w.step(n, each(4, "c30:gemm *", map[int]program{2: "c50:gemm *"})...)
	}
	rank := w.rank(2)
	want := rank.Ref(&model.Op{Kind: model.KindCompute, Name: "gemm", Step: model.Some(int64(0)), Stream: model.Some(int64(7))})
	var got []model.SpanRef
	for _, s := range w.reports[0].Path {
		if s.Rank == 2 && s.Class == model.ClassCompute {
			got = append(got, s.Span)
		}
	}
	assert.Equal(t, []model.SpanRef{want}, got)
}

// Large steps are walked now and then, too large ones never, and both are bounded.
func TestWalksAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	e := New(NewDefaultConfig(), func() time.Time { return now })
	walked := 0
	const steps, ranks = 40, 64 // of 22,592 operations each step
	for n := range int64(steps) {
		for r := range int64(ranks) {
			for _, rep := range e.Add(model.Rank{JobID: "job", Incarnation: "life", Rank: r, WorldSize: model.Some[int64](ranks), ClockID: "one"}, benchStep(r, n, ranks, 32, 10)) {
				if len(rep.Path) > 0 {
					walked++
				}
			}
		}
	}
	assert.Positive(t, walked)
	assert.LessOrEqual(t, walked, (walkBudget+steps*walkBudget/walkSteps)/(ranks*353)+1)
	assert.Less(t, walked, steps)
	j := onlyJob(t, e)
	assert.LessOrEqual(t, len(j.walks.steps), maxWalked)
}

// Of a step with more operations than may be walked, the ranks on its path are.
func TestLargeStepsAreWalkedInPart(t *testing.T) {
	spec := training.Spec{
		Name: "large", Layout: training.Layout{DP: 1600}, Noise: training.DefaultNoise(), Steps: 1,
		Faults: []training.Fault{{Family: training.HostDataLoader, Severity: 0.05, Ranks: []int64{700}}},
	}
	j, _ := simulated(t, spec, 1)
	require.Equal(t, int64(1), j.e.stats.StepsTooLargeToWalk)
	size := 0
	for i := range j.walks.graph.Ranks {
		size += len(j.walks.graph.Ranks[i].Ops)
	}
	assert.LessOrEqual(t, size, walkBudget)
	share, op := j.blamed(700)
	assert.Greater(t, share, 0.3)
	assert.Contains(t, op, "DataLoader")
	_, ok := j.walkSaved(700)
	assert.False(t, ok, "what the others did is not in the graph")
}
