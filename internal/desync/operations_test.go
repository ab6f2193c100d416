// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/desync/statetest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestStalledOp(t *testing.T) {
	check(t, []told{
		{
			"all have entered it, and nobody is through", `
			group W 0-3
			rank 0-3: W ar 41 done; W ar 42; W ar 43`,
			desync.Hang,
			[]string{"stalled_op: all_reduce 42 of W; 0-3 wait"},
		}, {
			"both ends of a message", `
			group P 0,1
			rank 0: P send>1
			rank 1: P recv<0`,
			desync.Hang,
			[]string{"stalled_op: message 0 -> 1 of P; 0-1 wait"},
		}, {
			"not where a member is behind on the same communicator", `
			group W 0-3
			rank 0-2: W bc 41 done; W ar 42
			rank 3: W bc 41; W ar 42`,
			desync.Hang,
			[]string{"stalled_op: broadcast 41 of W; 0-3 wait"},
		},
	})
}

func TestCompletionLag(t *testing.T) {
	check(t, []told{
		{
			"a device that is not through what the others are through", `
			group W 0-3
			rank 0-2: W ar 41 done; W ar 42 done; W ar 43
			rank 3: W ar 41 done; W ar 42; W ar 43`,
			desync.Hang,
			[]string{"completion_lag 3: all_reduce 42 of W; 0-2 wait"},
		},
	})
	// A root leaves a broadcast before its leaves.
	rep := conclude(t, `
		group W 0-3
		rank 0: W bc 42 root=0 done; W ar 43
		rank 1-2: W bc 42 root=0; W ar 43
		rank 3: W bc 42 root=0; W ar 43`)
	assert.Empty(t, accused(rep))
	require.NotEmpty(t, rep.Roots)
	assert.NotEqual(t, model.ClassCompletionLag, rep.Roots[0].Finding.Class)
}

// A dump that was taken a little earlier looks as if its device stood still.
func TestSkewOfDumpsIsNoLag(t *testing.T) {
	const text = `
		group W 0-7
		rank 0-5: W ar 100 done; W ar 101
		rank 6: W ar 99 done; W ar 100`
	rep := conclude(t, text+"\nrank 7: W ar 100 done")
	require.Len(t, rep.Roots, 1)
	assert.Equal(t, []int64{7}, named(rep))
	rep = conclude(t, text+"\nabsent 7 missing")
	assert.Empty(t, accused(rep))
	assert.Contains(t, named(rep), int64(7))
}

func TestNetwork(t *testing.T) {
	const text = `
		group W 0-3
		rank 0-1 {host=a}: W ar 42 at=100
		rank 2-3 {host=b}: W ar 42 at=101`
	s := statetest.Epoch
	down := desync.Witness{Kind: "fabric", What: "port mlx5_0 is down", Host: "b", Link: "b mlx5_0", Network: true, From: s + 99e9}
	elsewhere, over, own := down, down, down
	elsewhere.Host = "c"
	over.Until = s + 99.5e9
	own.Network = false

	rep := conclude(t, text, down)
	assert.Equal(t, []string{"network: all_reduce 42 of W; 0-3 wait"}, said(rep))
	assert.Equal(t, "b mlx5_0", rep.Roots[0].Finding.Link)
	for name, w := range map[string]desync.Witness{"elsewhere": elsewhere, "over before": over, "no matter of the network": own} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, []string{"stalled_op: all_reduce 42 of W; 0-3 wait"}, said(conclude(t, text, w)))
		})
	}
	// A rank that has not come is no matter of the network.
	late := "group W 0-2\nrank 0-1 {host=b}: W ar 42\nrank 2: W ar 41 done"
	assert.Equal(t, []int64{2}, accused(conclude(t, late, down)))
	// A proxy that waits for the wire.
	wire := "group W 0-2\nrank 0-1: W ar 42\nrank 2: W ar 42 wire=0"
	assert.Equal(t, []string{"network: all_reduce 42 of W; 0-2 wait"}, said(conclude(t, wire)))
}

func TestMismatches(t *testing.T) {
	check(t, []told{
		{
			"another operation", `
			group W 0-3
			rank 0-2: W ar 42
			rank 3: W ag 42`,
			desync.Hang,
			[]string{"mismatch_op 3: all_reduce 42 of W; 0-2 wait"},
		}, {
			"by the first rank: its place does not matter", `
			group W 0-3
			rank 0: W ag 42
			rank 1-3: W ar 42`,
			desync.Hang,
			[]string{"mismatch_op 0: all_reduce 42 of W; 1-3 wait"},
		}, {
			"an operation left out shifts all that follow: the first divergence counts", `
			group W 0-4
			rank 0-3: W ar 41 done; W ar 42; W ag 43; W ar 44
			rank 4: W ar 41 done; W ag 42; W ar 43`,
			desync.Hang,
			[]string{"mismatch_op 4: all_reduce 42 of W; 0-3 wait"},
		}, {
			"another size", `
			group W 0-3
			rank 0,2-3: W ar 42 n=1024
			rank 1: W ar 42 n=512`,
			desync.Hang,
			[]string{"mismatch_size 1: all_reduce 42 of W; 0,2-3 wait"},
		}, {
			"another type", `
			group W 0-3
			rank 0,2-3: W ar 42 type=bfloat16
			rank 1: W ar 42`,
			desync.Hang,
			[]string{"mismatch_dtype 1: all_reduce 42 of W; 0,2-3 wait"},
		}, {
			"another root", `
			group W 0-3
			rank 0,2-3: W bc 42 root=0
			rank 1: W bc 42 root=2`,
			desync.Hang,
			[]string{"mismatch_root 1: broadcast 42 of W; 0,2-3 wait"},
		}, {
			"sizes of what is over did no harm", `
			group W 0-3
			rank 0-2: W ar 41 n=8 done; W ar 42
			rank 3: W ar 41 n=9 done; W ar 42`,
			desync.Hang,
			[]string{"stalled_op: all_reduce 42 of W; 0-3 wait"},
		}, {
			"a size that is not recorded agrees with all", `
			group W 0-3
			rank 0-2: W ar 42
			rank 3: W ar 42 n=1024`,
			desync.Hang,
			[]string{"stalled_op: all_reduce 42 of W; 0-3 wait"},
		}, {
			"several functions of one communicator, counted each for itself", `
			group W 0-4 func
			rank 0-3 {ring}: W ar 41 done; W ar 42
			rank 4 {ring}: W ar 41 done; W ag 7`,
			desync.Hang,
			[]string{"mismatch_op 4: all_reduce 42 of W; 0-3 wait"},
		},
	})
}

// Where no side is most the fault is told, and all that disagree, as one: nobody is picked.
func TestTiesPickNobody(t *testing.T) {
	for text, class := range map[string]string{
		"group W 0,1\nrank 0: W ag 42\nrank 1: W ar 42":                                        model.ClassMismatchOp,
		"group W 0,1\nrank 0: W ar 42\nrank 1: W ag 42":                                        model.ClassMismatchOp,
		"group W 0-3\nrank 0-1: W ar 42\nrank 2-3: W ag 42":                                    model.ClassMismatchOp,
		"group W 0-4\nrank 0-1: W ar 42\nrank 2-3: W ag 42\nabsent 4 missing":                  model.ClassMismatchOp,
		"group P 0,1\nrank 0: P send>1 n=8\nrank 1: P recv<0 n=9":                              model.ClassMismatchSize,
		"group P 0,1\nrank 0: P send>1 type=bfloat16\nrank 1: P recv<0":                        model.ClassMismatchDType,
		"group W 0,1\nrank 0: W bc 42 root=0\nrank 1: W bc 42 root=1":                          model.ClassMismatchRoot,
		"group W 0-3\ngroup V 0,1\nrank 0: W ar 41 done; V ar 8\nrank 1: W ar 41 done; V ag 8": model.ClassMismatchOp,
	} {
		rep := conclude(t, text)
		require.Len(t, decided(t, rep), 1, text)
		f := rep.Roots[0].Finding
		assert.Equal(t, class, f.Class, text)
		assert.Equal(t, desync.Hang, rep.Verdict)
		assert.Subset(t, named(rep), []int64{0, 1}, text)
		assert.False(t, f.Rank.OK, text)
		assert.NotEqual(t, 1, len(accused(rep)), text)
		unmoved(t, text, rep)
	}
}

func TestSplitImbalance(t *testing.T) {
	check(t, []told{
		{
			"more is expected than sent", `
			group E 0-3
			rank 0-2: E a2a 9 in=10 out=10
			rank 3: E a2a 9 in=10 out=12`,
			desync.Hang,
			[]string{"split_imbalance: all_to_all 9 of E; 0-3 wait"},
		}, {
			"uneven, and even in all: valid", `
			group E 0-3
			rank 0-1: E a2a 9 in=10 out=4
			rank 2-3: E a2a 9 in=4 out=10`,
			desync.Hang,
			[]string{"stalled_op: all_to_all 9 of E; 0-3 wait"},
		}, {
			"a sum without all members says nothing", `
			group E 0-3
			rank 0-1: E a2a 9 in=10 out=12
			rank 2: E a2a 9 in=10 out=10
			absent 3 missing`,
			desync.Undecided,
			[]string{"dump_missing ?3: all_to_all 9 of E; 0-2 wait"},
		},
	})
}
