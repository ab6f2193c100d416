// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/desync"
)

// What comes out must agree, too, where every member gets as much of one type.
func TestOutputsDiffer(t *testing.T) {
	check(t, []told{
		{
			"a gathered tensor of another size", `
			group W 0-3
			rank 0-2: W ag 42 in=8 out=32
			rank 3: W ag 42 in=8 out=24`,
			desync.Hang,
			[]string{"mismatch_size 3: all_gather 42 of W; 0-2 wait"},
		}, {
			"what is scattered", `
			group W 0-3
			rank 1-3: W rs 42 in=32 out=8
			rank 0: W rs 42 in=40 out=8`,
			desync.Hang,
			[]string{"mismatch_size 0: reduce_scatter 42 of W; 1-3 wait"},
		}, {
			"a reduction out of place", `
			group W 0-3
			rank 0,2-3: W ar 42 in=8 out=8
			rank 1: W ar 42 in=8 out=9`,
			desync.Hang,
			[]string{"mismatch_size 1: all_reduce 42 of W; 0,2-3 wait"},
		}, {
			"a broadcast's", `
			group W 0-3
			rank 0: W bc 42 in=8 out=8 done; W ar 43
			rank 1-2: W bc 42 in=8 out=8
			rank 3: W bc 42 in=8 out=4`,
			desync.Hang,
			[]string{"mismatch_size 3: broadcast 42 of W; 1-2 wait, 1 more through them"},
		}, {
			"another type", `
			group W 0-3
			rank 0-2: W ag 42
			rank 3: W ag 42 outtype=bfloat16`,
			desync.Hang,
			[]string{"mismatch_dtype 3: all_gather 42 of W; 0-2 wait"},
		}, {
			"another type of what an all_to_all brings", `
			group W 0-3
			rank 0-2: W a2a 42 in=4 out=9
			rank 3: W a2a 42 in=27 out=12 outtype=float16`,
			desync.Hang,
			[]string{"mismatch_dtype 3: all_to_all 42 of W; 0-2 wait"},
		}, {
			"of two ranks neither is more right", `
			group W 0,1
			rank 0: W ag 42 in=8 out=16
			rank 1: W ag 42 in=8 out=24`,
			desync.Hang,
			[]string{"mismatch_size 0-1: all_gather 42 of W"},
		},
	})
}

// What each has of these operations is its own.
func TestSizesThatMayDiffer(t *testing.T) {
	for name, text := range map[string]string{
		"uneven, even in all":               "rank 0-1: W a2a 42 in=10 out=4\nrank 2-3: W a2a 42 in=4 out=10",
		"a gather: the root gets all":       "rank 0: W ga 42 in=8 out=32\nrank 1-3: W ga 42 in=8 out=0",
		"a gather: the root's alone a type": "rank 0: W ga 42 in=8 out=32 outtype=float32\nrank 1-3: W ga 42 in=8 out=0 outtype=float16",
		"a scatter: the root hands all in":  "rank 0: W sc 42 in=32 out=8\nrank 1-3: W sc 42 in=0 out=8",
		"a scatter: the others no type":     "rank 0: W sc 42 in=32 out=8 intype=bfloat16\nrank 1-3: W sc 42 in=0 out=8",
		"a reduction: the root gets it":     "rank 0: W re 42 in=8 out=8\nrank 1-3: W re 42 in=8 out=0",
		"a broadcast out of place":          "rank 0: W bc 42 in=8 out=8 recorded=nccl:_broadcast_oop\nrank 1-3: W bc 42 in=0 out=8 recorded=nccl:_broadcast_oop",
		"what is over did no harm":          "rank 0-2: W ag 41 in=8 out=32 done; W ar 42\nrank 3: W ag 41 in=8 out=24 done; W ar 42",
	} {
		t.Run(name, func(t *testing.T) {
			rep := conclude(t, "group W 0-3\n"+text)
			assert.Equal(t, desync.Hang, rep.Verdict)
			assert.Empty(t, accused(rep), said(rep))
			for _, line := range said(rep) {
				assert.Contains(t, line, "stalled_op: ")
			}
		})
	}
}
