// SPDX-License-Identifier: Apache-2.0

package stepless

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// A rank is reported only where no batch has a step of it.
func TestRanks_ManyBatches_OnlyRanksWithoutAnyStep(t *testing.T) {
	var s Ranks
	inStep, outside := model.Op{Kind: model.KindCompute, Step: model.Some(int64(3))}, model.Op{Kind: model.KindCompute}
	for _, b := range []model.RankOps{
		{Rank: model.Rank{Rank: 0}, Ops: []model.Op{outside}},
		{Rank: model.Rank{Rank: 1}, Ops: []model.Op{outside}},
		{Rank: model.Rank{Rank: 0}, Ops: []model.Op{inStep}},
		{Rank: model.Rank{Rank: 1}, Ops: []model.Op{outside}},
	} {
		s.Add([]model.RankOps{b})
	}
	problems := s.Problems()
	require.Len(t, problems, 1)
	assert.Contains(t, problems[0].What, "compare rank 1: got no lockstep.step on any of 2 operations")
	assert.Equal(t, int64(1), *problems[0].Rank)
}

func TestRanks_NoRankHasSteps_IsNoProblem(t *testing.T) {
	var s Ranks
	s.Add([]model.RankOps{{Rank: model.Rank{Rank: 1}, Ops: []model.Op{{Kind: model.KindCompute}}}})
	assert.Empty(t, s.Problems())
}
