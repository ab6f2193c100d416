// SPDX-License-Identifier: Apache-2.0

package live

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler"
	"github.com/lockstep-otel/lockstep/internal/straggler/stragglertest"
)

// addStep adds a step in which the given rank, if any, is slow.
func addStep(a *Analysis, step, slow int64) (out Outcome) {
	for r := range int64(4) {
		compute := 10 + r
		if r == slow {
			compute = 30
		}
		out = a.Add(opsOf(r, step, compute))
	}
	return out
}

func opsOf(rank, step, compute int64) []model.RankOps {
	return []model.RankOps{{Rank: stragglertest.Rank(rank), Ops: stragglertest.Ops(step, compute)}}
}

func TestAnalysis_SlowRank_IsFound(t *testing.T) {
	a := NewAnalysis(straggler.NewDefaultConfig(), stragglertest.Now)
	var changed []model.Finding
	for step := range int64(12) {
		out := addStep(a, step, 2)
		require.Len(t, out.Reports, 1)
		assert.Empty(t, out.Standing, "the only finding is among the changed, or nothing changed")
		changed = append(changed, out.Changed...)
	}
	require.NotEmpty(t, changed)
	assert.Equal(t, model.StatusOpen, changed[0].Status)

	standing := a.Standing()
	require.Len(t, standing, 1)
	assert.Equal(t, changed[len(changed)-1].Revision, standing[0].Revision)
	assert.Equal(t, model.Some(int64(11)), standing[0].StepLast, "although nothing was worth a revision")
}

func TestAnalysis_ClosedFinding_IsForgotten(t *testing.T) {
	cfg := straggler.NewDefaultConfig()
	cfg.Window, cfg.CleanSteps = 6, 2
	a := NewAnalysis(cfg, stragglertest.Now)
	for step := range int64(6) {
		addStep(a, step, 2)
	}
	require.Len(t, a.Standing(), 1)
	closed := false
	for step := int64(6); step < 20 && !closed; step++ {
		for _, f := range addStep(a, step, -1).Changed {
			closed = closed || f.Status == model.StatusClosed
		}
	}
	assert.True(t, closed, "the rank recovered")
	assert.Empty(t, a.Standing())
}

// However many steps a batch has, a finding has the same id.
func TestAnalysis_FindingID_DoesNotDependOnBatches(t *testing.T) {
	opened := func(steps int64) (ids []string) {
		cfg := straggler.NewDefaultConfig()
		cfg.CleanSteps = 4
		a := NewAnalysis(cfg, stragglertest.Now)
		var batch []model.RankOps
		for step := range int64(96) {
			for r := range int64(4) {
				compute := int64(10)
				if r == 2 && (step >= 4 && step < 16 || step >= 80) {
					compute = 30
				}
				batch = append(batch, opsOf(r, step, compute)...)
			}
			if step%steps != steps-1 {
				continue
			}
			for _, f := range a.Add(batch).Changed {
				if f.Status == model.StatusOpen {
					ids = append(ids, f.ID)
				}
			}
			batch = nil
		}
		return ids
	}
	want := opened(1)
	require.Len(t, want, 2)
	for _, steps := range []int64{2, 4, 8} {
		assert.Equal(t, want, opened(steps), "%d steps a batch", steps)
	}
}

func TestAnalysis_Restart_FindingIsOpen(t *testing.T) {
	before := NewAnalysis(straggler.NewDefaultConfig(), stragglertest.Now)
	for step := range int64(12) {
		addStep(before, step, 2)
	}
	require.Len(t, before.Standing(), 1)
	kept, err := before.Snapshot()
	require.NoError(t, err)
	a := NewAnalysis(straggler.NewDefaultConfig(), stragglertest.Now)
	require.NoError(t, a.Restore(kept, stragglertest.Now()))
	require.Len(t, a.Standing(), 1)
	want := before.Standing()[0]
	for step := int64(12); step < 24; step++ {
		for _, f := range addStep(a, step, 2).Changed {
			assert.NotEqual(t, model.StatusOpen, f.Status)
		}
	}
	require.Len(t, a.Standing(), 1)
	got := a.Standing()[0]
	assert.Equal(t, want.ID, got.ID)
	assert.Equal(t, want.StepFirst, got.StepFirst)
	assert.Equal(t, model.Some(int64(23)), got.StepLast)
}
