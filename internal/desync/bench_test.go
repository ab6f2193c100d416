// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// cluster is a job of eight communicators for each rank: the world, tensor (8), data
// (every 8th), a stage (64), and strided ones of 16, 32, 128 and 256 ranks. Rank 5 has not
// come to the collective of its tensor group that the others of that group wait in; everybody
// else waits in the world's. Each rank has about sixteen operations open.
type cluster struct {
	n     int64
	lists map[[3]int64][]int64
}

// members lists size ranks from first on, stride apart; lists are shared, as a reader does.
func (c *cluster) members(first, stride, size int64) []int64 {
	k := [3]int64{first, stride, size}
	if m, ok := c.lists[k]; ok {
		return m
	}
	m := make([]int64, 0, size)
	for i := range size {
		m = append(m, first+i*stride)
	}
	c.lists[k] = m
	return m
}

func (c *cluster) groups(r int64) (comms []model.CommState) {
	add := func(name string, first, stride, size int64) {
		comms = append(comms, model.CommState{
			Comm: model.Comm{ID: name + strconv.FormatInt(first, 10), Name: name}, Backend: "nccl", Scope: model.ScopeComm,
			Members: c.members(first, stride, size),
		})
	}
	add("world", 0, 1, c.n)
	add("tensor", r/8*8, 1, 8)
	add("data", r%8+r/512*512, 8, 64)
	add("stage", r/64*64, 1, 64)
	for i, size := range []int64{16, 32, 128, 256} {
		add(fmt.Sprintf("part%d.", i), r/size*size, 1, size)
	}
	return comms
}

func (c *cluster) state(r int64) model.RankState {
	const late = 5
	s := model.RankState{Rank: model.Rank{Rank: r}, Source: model.StateFlightRecorder, Comms: c.groups(r)}
	open := func(comm int, seq int64) {
		s.Ops = append(s.Ops, model.StateOp{
			Kind: model.KindCollective, Name: model.AllReduce, Recorded: "nccl:all_reduce", Comm: comm, Seq: seq, Created: 1 + seq,
			In: "[[1024]]", Out: "[[1024]]", InElems: model.Some(int64(1024)), OutElems: model.Some(int64(1024)), InType: "float32", OutType: "float32",
		})
	}
	for i := range s.Comms {
		first, last := int64(100), int64(101)
		switch {
		case r == late:
			last = 99
		case i == 1 && r/8 == late/8, i == 0 && r/8 != late/8, i > 1:
		default: // the tensor group of the late rank is not in the world's yet, the others are through theirs
			last = 99
		}
		for seq := first; seq <= last; seq++ {
			open(i, seq)
		}
		s.Comms[i].Frontiers = []model.Frontier{{Enqueued: model.Some(last), Completed: model.Some(first - 1)}}
	}
	return s
}

// batch is how many states are made at once: all of them would take more than the analysis.
const batch = 1024

// BenchmarkConclude measures what one analysis costs, taking the states included. Time and
// memory per rank are to stay level from 1,024 ranks to 131,072.
func BenchmarkConclude(b *testing.B) {
	for _, n := range []int64{1024, 16384, 131072} {
		b.Run(strconv.FormatInt(n, 10)+"_ranks", func(b *testing.B) {
			c := &cluster{n: n, lists: map[[3]int64][]int64{}}
			states := make([]model.RankState, batch)
			var rep *desync.Report
			var held uint64
			b.ReportAllocs()
			for b.Loop() {
				a := desync.New(desync.NewDefaultConfig())
				for r := int64(0); r < n; r += batch {
					b.StopTimer()
					for i := range states {
						states[i] = c.state(r + int64(i))
					}
					b.StartTimer()
					for i := range states {
						a.Add(&states[i])
					}
				}
				rep = a.Conclude(0)
				b.StopTimer()
				held = live(a, rep)
				b.StartTimer()
			}
			require.Equal(b, []int64{5}, accused(rep))
			require.Equal(b, int(n)-1, rep.Victims)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/rank")
			b.ReportMetric(float64(held)/float64(n), "held-B/rank")
		})
	}
}

// live is the heap with the analyzer and its report still held.
func live(a *desync.Analyzer, rep *desync.Report) uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	runtime.KeepAlive(a)
	runtime.KeepAlive(rep)
	return m.HeapAlloc
}
