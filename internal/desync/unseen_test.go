// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/desync/statetest"
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
			assert.Contains(t, f.Evidence, "rank 0 is no member of it, and lacks all_reduce 5 of R0")
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
