// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report"
)

// Where devices record when they start, the rank whose device has not started what the others
// have is the reason.
func TestScheduledWhereTheOthersStarted(t *testing.T) {
	check(t, []told{
		{
			"one of four", `
			group W 0-3
			rank 0-2: W ar 41 started done; W ar 42 started
			rank 3: W ar 41 started done; W ar 42`,
			desync.Hang,
			[]string{"completion_lag 3: all_reduce 42 of W; 0-2 wait"},
		}, {
			"the first rank, in a broadcast", `
			group W 0-3
			rank 1-3: W ar 41 started done; W bc 42 started
			rank 0: W ar 41 started done; W bc 42`,
			desync.Hang,
			[]string{"completion_lag 0: broadcast 42 of W; 1-3 wait"},
		}, {
			"one of a pair", `
			group W 0,1
			rank 0: W ar 41 started done; W ar 42 started
			rank 1: W ar 41 started done; W ar 42`,
			desync.Hang,
			[]string{"completion_lag 1: all_reduce 42 of W; 0 wait"},
		}, {
			"two of eight", `
			group W 0-7
			rank 0-5: W ar 41 started done; W ag 42 started; W ar 43
			rank 6-7: W ar 41 started done; W ag 42; W ar 43`,
			desync.Hang,
			[]string{"completion_lag 6-7: all_gather 42 of W; 0-5 wait"},
		}, {
			"hosts ran on to another communicator", `
			group W 0-3
			group V 0-3
			rank 0-2: W ar 41 started done; W ar 42 started; V ar 8
			rank 3: W ar 41 started done; W ar 42; V ar 8`,
			desync.Hang,
			[]string{"completion_lag 3: all_reduce 42 of W; 0-2 wait"},
		},
	})
	for name, text := range map[string]string{
		"nobody records starts": `
			group W 0-3
			rank 0-3: W ar 41 done; W ar 42`,
		"all have started": `
			group W 0-3
			rank 0-3: W ar 41 started done; W ar 42 started`,
		"none has": `
			group W 0-3
			rank 0-3: W ar 41 started done; W ar 42`,
		"the odd one does not record starts": `
			group W 0-3
			rank 0-2: W ar 41 started done; W ar 42 started
			rank 3: W ar 41 done; W ar 42`,
		"most have not": `
			group W 0-3
			rank 0: W ar 41 started done; W ar 42 started
			rank 1-3: W ar 41 started done; W ar 42`,
	} {
		t.Run(name, func(t *testing.T) {
			rep := conclude(t, text)
			assert.Equal(t, []string{"stalled_op: all_reduce 42 of W; 0-3 wait"}, said(rep))
		})
	}
	// Who has not come is at fault, whoever else has not started.
	rep := conclude(t, `
		group W 0-4
		rank 0-2: W ar 41 started done; W ar 42 started
		rank 3: W ar 41 started done; W ar 42
		rank 4: W ar 41 started done`)
	assert.Equal(t, []string{"not_scheduled 4: all_reduce 42 of W; 0-3 wait"}, said(rep))
}

func TestScheduledWhereTheOthersStarted_IsSaid(t *testing.T) {
	rep := conclude(t, `
		group W 0-3
		rank 0-2: W ar 41 started done; W ar 42 started
		rank 3: W ar 41 started done; W ar 42`)
	require.Len(t, rep.Roots, 1)
	f := rep.Roots[0].Finding
	assert.Equal(t, model.Some[int64](3), f.Rank)
	assert.Contains(t, report.Sentence(&f), "its device has not started all_reduce 42 of W, which the others have")
	assert.Contains(t, f.Action, "before it on that stream")
}
