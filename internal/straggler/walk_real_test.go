// SPDX-License-Identifier: Apache-2.0

package straggler_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// What the folder's README states by inspection: rank 7 arrives last in collectives 0 to
// 4, ranks 5 and 4 in the last three, and the cause is the host.
func TestDLRMPath(t *testing.T) {
	_, reports := run(t, testdata.Shared(t, "dlrm-8xV100"), nil)
	require.Len(t, reports, 1)
	path := reports[0].Path
	require.NotEmpty(t, path)
	var ranks []int64
	for _, s := range path {
		t.Logf("rank %d %-8s %8.3f ms, excess %8.3f ms, %s", s.Rank, s.Class, float64(s.End-s.Start)/1e6, s.Excess.Seconds()*1e3, s.Op)
		if s.Class == model.ClassLink {
			continue
		}
		if len(ranks) == 0 || ranks[len(ranks)-1] != s.Rank {
			ranks = append(ranks, s.Rank)
		}
		if s.Start < s.End {
			assert.Equal(t, model.ClassHost, s.Class, "rank %d", s.Rank)
		}
	}
	assert.Equal(t, []int64{4, 5, 7}, ranks)
	most := path[0]
	for _, s := range path {
		if s.Excess > most.Excess {
			most = s
		}
	}
	assert.Equal(t, int64(7), most.Rank, "its recording began late")
	for _, m := range reports[0].PathMeetings {
		assert.Contains(t, ranks, reports[0].Meetings[m].LastRank)
	}
}
