// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// fullDump is what a rank of a training job writes with the default settings: a full
// buffer of 2,000 operations on three process groups, the newest 20 of them open.
func fullDump(stacks bool) *frwrite.Dump {
	const entries, open, first = 2000, 20, 180_000
	d := &frwrite.Dump{Version: "2.10", LibVersion: "2.27.3", Stacks: stacks}
	groups := []struct {
		name, desc string
		ranks      int64
	}{{"0", "default_pg", 64}, {"37", "TENSOR_MODEL_PARALLEL_GROUP", 8}, {"72", "DATA_PARALLEL_GROUP", 8}}
	var seq [3]int64
	for i, g := range groups {
		ranks := make([]int64, g.ranks)
		for r := range ranks {
			ranks[r] = int64(r)
		}
		d.Groups = append(d.Groups, frwrite.Group{Name: g.name, Desc: g.desc, Ranks: ranks})
		seq[i] = 80_000 + int64(i)
	}
	shapes := [][]int64{{2048, 1, 5120}, {8192, 1, 5120}, {176}, {2048, 5120}, {1, 8192}}
	names := []string{"nccl:_all_gather_base", "nccl:_reduce_scatter_base", "nccl:all_reduce", "nccl:all_to_all", "nccl:broadcast"}
	calls := stacksOf(40, 17)
	for i := range int64(entries) {
		g := int(i*7%10) / 4
		seq[g]++
		e := frwrite.Entry{
			RecordID: first + i, PGID: int64(g) * 5, Group: groups[g].name, Desc: groups[g].desc,
			ThreadName: "pt_autograd_1", ThreadID: "23437663053504", CollectiveSeq: seq[g], OpID: seq[g],
			Name: names[i%5], Created: 1758580155793872443 + i*1_234_567,
			In: [][]int64{shapes[i%5]}, Out: [][]int64{shapes[(i+1)%5]},
			InTypes: []string{"BFloat16"}, OutTypes: []string{"BFloat16"},
			State: frwrite.Completed, Retired: true, TimeoutMS: 600_000, Frames: calls[i%40],
			Completed: 1758580155793872443 + i*1_234_567 + 40_000_000,
		}
		if i >= entries-open {
			e.State, e.Retired, e.Completed = frwrite.Scheduled, false, 0
		}
		d.Entries = append(d.Entries, e)
	}
	for g := range groups {
		d.Status = append(d.Status, frwrite.Status{PGID: int64(g) * 5, Enqueued: seq[g], Started: -1, Completed: seq[g] - 7})
	}
	return d
}

// stacksOf makes so many call stacks that share their outer frames.
func stacksOf(n, depth int) [][]frwrite.Frame {
	shared := make([]frwrite.Frame, depth)
	for i := range shared {
		shared[i] = frwrite.Frame{Name: fmt.Sprintf("call_%d", i), File: fmt.Sprintf("/usr/lib/python3/dist-packages/torch/nn/modules/module_%d.py", i), Line: int64(100 + i)}
	}
	out := make([][]frwrite.Frame, n)
	for i := range out {
		out[i] = append([]frwrite.Frame{{Name: fmt.Sprintf("forward_%d", i), File: "/job/train.py", Line: int64(i)}}, shared[1:]...)
	}
	return out
}

// BenchmarkDecode reads full dumps of 2,000 operations.
func BenchmarkDecode(b *testing.B) {
	for _, bc := range []struct {
		name     string
		recorded bool // with call stacks
		asked    bool // for them
		json     bool
	}{{"pickle", false, false, false}, {"pickle with stacks, passed over", true, false, false}, {"pickle with stacks", true, true, false}, {"json", false, false, true}} {
		d := fullDump(bc.recorded)
		data := frwrite.Pickle(d)
		if bc.json {
			data = frwrite.JSON(d)
		}
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				got, err := Decode(data, Options{Stacks: bc.asked})
				require.NoError(b, err)
				require.Len(b, got.Entries, 2000)
			}
		})
	}
}

func BenchmarkState(b *testing.B) {
	d, err := Decode(frwrite.Pickle(fullDump(false)), Options{})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		s := d.State(model.Rank{Rank: 3}, "dump", StateOptions{})
		require.NotEmpty(b, s.Ops)
	}
}
