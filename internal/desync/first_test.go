// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// The operation that a rank lacks is told of, not one further on in which more ranks wait.
func TestFirstOperationThatARankLacks(t *testing.T) {
	check(t, []told{
		{
			"a shard's operation before that of all: the other shards are through theirs", `
			group S0 0-3
			group S1 4-7
			group W 0-7
			rank 0-3: S0 rs 16 done; W ar 16
			rank 4-5,7: W ar 15 done; S1 rs 16
			rank 6: S1 rs 15 done; W ar 15 done`,
			desync.Hang,
			[]string{"not_scheduled 6: reduce_scatter 16 of S1; 4-5,7 wait, 4 more through them"},
		}, {
			"two groups with one name", `
			group A 0-3 as=mesh
			group B 4-7 as=mesh
			group W 0-7
			rank 0-3: A rs 13 done; W ar 11
			rank 4-6: W ar 10 done; B rs 13
			rank 7: B rs 12 done; W ar 10 done`,
			desync.Hang,
			[]string{"not_scheduled 7: reduce_scatter 13 of B; 4-6 wait, 4 more through them"},
		}, {
			"the operation of all comes first, though hosts ran on to that of the shard", `
			group S0 0-3
			group S1 4-7
			group W 0-7
			rank 0-3: W ar 16; S0 rs 16
			rank 4-5,7: W ar 16; S1 rs 16
			rank 6: S1 rs 15 done; W ar 15 done`,
			desync.Hang,
			[]string{"not_scheduled 6: all_reduce 16 of W; 0-5,7 wait"},
		}, {
			"replicas of shards: no rank is in both of the rank's groups", `
			group S0 0-1
			group S1 2-3
			group R0 0,2
			group R1 1,3
			rank 0: S0 rs 5 done; R0 ar 5
			rank 1: S0 rs 5 done; R1 ar 5
			rank 2: R0 ar 4 done; S1 rs 5
			rank 3: S1 rs 4 done; R1 ar 4 done`,
			desync.Hang,
			[]string{"not_scheduled 3: reduce_scatter 5 of S1; 2 wait, 2 more through them"},
		}, {
			"the same the other way round", `
			group S0 0-1
			group S1 2-3
			group R0 0,2
			group R1 1,3
			rank 0: R0 ar 5 done; S0 rs 5
			rank 1: S0 rs 4 done; R1 ar 5
			rank 2: R0 ar 5 done; S1 rs 5
			rank 3: S1 rs 4 done; R1 ar 4 done`,
			desync.Hang,
			[]string{"not_scheduled 3: all_reduce 5 of R1; 1 wait, 2 more through them"},
		}, {
			"a gather to which one did not send: its root waits, the others went on", `
			group W 0-7
			rank 0: W ar 40 done; W ga 41
			rank 1-4,6-7: W ar 40 done; W ga 41 done; W ar 42
			rank 5: W ar 40 done`,
			desync.Hang,
			[]string{"not_scheduled 5: gather 41 of W; 0 wait, 6 more through them"},
		}, {
			"a reduction, whose leaves are several ahead", `
			group W 0-3
			rank 0: W ar 40 done; W re 41
			rank 1-2: W ar 40 done; W re 41 done; W re 42 done; W re 43 done; W ar 44
			rank 3: W ar 40 done`,
			desync.Hang,
			[]string{"not_scheduled 3: reduce 41 of W; 0 wait, 2 more through them"},
		}, {
			"a broadcast that all others are through: none waits in it", `
			group W 0-3
			rank 0-2: W ar 40 done; W bc 41 done; W ar 42
			rank 3: W ar 40 done`,
			desync.Hang,
			[]string{"not_scheduled 3: broadcast 41 of W, 3 more through them"},
		}, {
			"a broadcast of another communicator, which all others are through", `
			group T 2-3
			group W 0-3
			rank 0-1: W ar 6 done; W ar 7
			rank 2: T bc 8 done; W ar 6 done; T bc 9 done; W ar 7
			rank 3: T bc 8 done; W ar 6 done`,
			desync.Hang,
			[]string{"not_scheduled 3: broadcast 9 of T, 3 more through them"},
		}, {
			"each of two ranks by its own", `
			group S0 0-3
			group S1 4-7
			group W 0-7
			rank 0-2: S0 rs 16
			rank 3: S0 rs 15 done
			rank 4-5,7: S1 rs 16 done; W ar 3
			rank 6: S1 rs 16 done; W ar 2 done`,
			desync.Hang,
			[]string{
				"not_scheduled 3: reduce_scatter 16 of S0; 0-2 wait, 3 more through them",
				"not_scheduled 6: all_reduce 3 of W; 4-5,7 wait",
			},
		}, {
			"times alone: no rank is in both, and no other communicator is of their kinds", `
			group A 0-2
			group B 2-6
			rank 0-1: A ar 3 at=107
			rank 3-6: B ag 9 at=110
			rank 2: A ar 2 at=90 done; B ag 8 at=91 done`,
			desync.Hang,
			[]string{"not_scheduled 2: all_reduce 3 of A; 0-1 wait, 4 more through them"},
		}, {
			"a rank without a dump", `
			group S0 0-3
			group S1 4-7
			group W 0-11
			rank 0-3: S0 rs 16 done; W ar 16
			rank 4-5,7: W ar 15 done; S1 rs 16
			rank 8-11: W ar 16
			absent 6 missing`,
			desync.Undecided,
			[]string{"dump_missing ?6: reduce_scatter 16 of S1; 4-5,7 wait, 8 more through them"},
		}, {
			"a process that is gone", `
			group S0 0-3
			group S1 4-7
			group W 0-7
			rank 0-3: S0 rs 16 done; W ar 16
			rank 4-5,7: W ar 15 done; S1 rs 16
			rank 6 {dead}: S1 rs 15 done; W ar 15 done`,
			desync.Hang,
			[]string{"process_dead 6: reduce_scatter 16 of S1; 4-5,7 wait, 4 more through them"},
		},
	})
}

func TestFirstOperation_MessagesOfAPipelineComeBeforeTheReductionOfItsStage(t *testing.T) {
	const text = `
		group P0 0,2
		group P1 1,3
		group D0 0,1
		group D1 2,3
		rank 0: P0 send>2 7 done; D0 ar 4
		rank 1: P1 send>3 6 done; D0 ar 3 done
		rank 2: P0 recv<0 7 done; D1 ar 4
		rank 3: P1 recv<1 6 done; D1 ar 3 done; P1 recv<1 7`
	assert.Equal(t, []string{"not_scheduled 1: recv 1 -> 3 of P1; 3 wait, 2 more through them"}, said(conclude(t, text)))
	// Where the other stage is through its message after the reduction, that comes first.
	turned := strings.Replace(text, "P0 send>2 7 done; D0 ar 4", "P0 send>2 6 done; D0 ar 4; P0 send>2 7", 1)
	rep := conclude(t, turned)
	require.NotEmpty(t, rep.Roots)
	assert.Equal(t, "not_scheduled 1: all_reduce 4 of D0; 0 wait, 2 more through them", said(rep)[0])
}

// Name, number and members are of one operation, that in which members disagree.
func TestDisagreementIsNamedByItsOwnOperation(t *testing.T) {
	check(t, []told{
		{
			"the root is through", `
			group W 0-3
			rank 0: W bc 19 n=240 done; W bc 20 n=240 done; W ar 21
			rank 1-2: W bc 19 n=240
			rank 3: W bc 19 n=64`,
			desync.Hang,
			[]string{"mismatch_size 3: broadcast 19 of W; 1-2 wait, 1 more through them"},
		}, {
			"the root is five ahead", `
			group W 0-7
			rank 0: W bc 41 n=240 done; W bc 42 done; W bc 43 done; W bc 44 done; W bc 45 done; W ar 46
			rank 1-2,4-7: W bc 41 n=240
			rank 3: W bc 41 n=64`,
			desync.Hang,
			[]string{"mismatch_size 3: broadcast 41 of W; 1-2,4-7 wait, 1 more through them"},
		}, {
			"leaves of a reduction are through", `
			group W 0-4
			rank 0: W re 8 n=10
			rank 1-3: W re 8 n=10 done; W re 9 done; W ar 10
			rank 4: W re 8 n=11`,
			desync.Hang,
			[]string{"mismatch_size 4: reduce 8 of W; 0 wait, 3 more through them"},
		}, {
			"another type in a gather that most left", `
			group W 0-3
			rank 0: W ga 8
			rank 1-2: W ga 8 done; W ar 9
			rank 3: W ga 8 type=float16`,
			desync.Hang,
			[]string{"mismatch_dtype 3: gather 8 of W; 0 wait, 2 more through them"},
		}, {
			"one called another operation, and most are further on", `
			group W 0-4
			rank 0: W bc 7 done; W bc 8 done; W ar 9
			rank 1-3: W bc 7; W bc 8; W ar 9
			rank 4: W ag 7`,
			desync.Hang,
			[]string{"mismatch_op 4: broadcast 7 of W; 1-3 wait, 1 more through them"},
		},
	})
}

// What is told beside the sentence is of the same operation.
func TestFirstOperation_MembersAndWay(t *testing.T) {
	rep := conclude(t, `
		group S0 0-3
		group S1 4-7
		group W 0-7
		rank 0-3: S0 rs 16 done; W ar 16
		rank 4-5,7: W ar 15 done; S1 rs 16
		rank 6: S1 rs 15 done; W ar 15 done`)
	require.Len(t, rep.Roots, 1)
	r := rep.Roots[0]
	assert.Equal(t, "S1", r.Op.Comm.Name)
	assert.Equal(t, int64(16), r.Op.Seq)
	states := map[string]int{}
	for _, m := range r.Members {
		states[m.State]++
	}
	assert.Equal(t, map[string]int{"not enqueued": 1, "waits in it": 3}, states)
	require.Len(t, r.Path, 2)
	assert.Equal(t, "W", r.Path[0].Op.Comm.Name)
	assert.Equal(t, "S1", r.Path[1].Op.Comm.Name)
	assert.Equal(t, int64(6), r.Path[1].For)
	e, ok := evidence.As[evidence.Hang](r.Finding.Evidence)
	require.True(t, ok)
	assert.Equal(t, 3, e.Joined)
	assert.Equal(t, 1, e.Missing)
}

// Many ranks, each of which lacks the operation of its own pair first, lack that of all together.
func TestFirstOperation_OfManyRanksIsTheirCommonOne(t *testing.T) {
	var text strings.Builder
	text.WriteString("group W 0-59\n")
	for i := 0; i < 60; i += 2 {
		fmt.Fprintf(&text, "group T%d %d,%d\n", i, i, i+1)
	}
	for i := 0; i < 60; i += 2 {
		if i < 24 {
			fmt.Fprintf(&text, "rank %d: T%d ar 3; W ar 7\nrank %d: W ar 6 done; T%d ar 2 done\n", i, i, i+1, i)
		} else {
			fmt.Fprintf(&text, "rank %d-%d: T%d ar 3 done; W ar 7\n", i, i+1, i)
		}
	}
	rep := conclude(t, text.String())
	require.Len(t, rep.Roots, 1)
	f := rep.Roots[0].Finding
	assert.Len(t, f.Ranks, 12)
	assert.Equal(t, "all_reduce 7", f.Op)
}
