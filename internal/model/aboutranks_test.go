// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFinding_AboutRanks_LeavesOutRanksThatWait(t *testing.T) {
	f := Finding{Ranks: []int64{1, 2}, Candidates: []int64{5}, Waiting: []int64{7}, Rank: Some(int64(3))}
	assert.Equal(t, []int64{1, 2, 5, 3}, f.AboutRanks())
	assert.Equal(t, []int64{1, 2}, f.Ranks, "the finding keeps its own")
	assert.Empty(t, (&Finding{}).AboutRanks())
}
