// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// spread is a job in which half of the ranks are at fault, or were not seen: every odd one.
// All are in the world's communicator and in one of eight.
func spread(r, n int64, c *cluster, odd string) (s model.RankState, ok bool) {
	s = model.RankState{Rank: model.Rank{Rank: r}, Source: model.StateFlightRecorder}
	lists := [][]int64{c.members(0, 1, n), c.members(r/8*8, 1, 8)}
	if odd == "others" { // whom all but two ranks do not list
		lists[0] = []int64{r, (r + 1) % n}
	}
	for i, members := range lists {
		id := fmt.Sprintf("%d.%d", i, members[0])
		if i == 0 {
			id = "world"
		}
		s.Comms = append(s.Comms, model.CommState{
			Comm: model.Comm{ID: id}, Backend: "nccl", Scope: model.ScopeComm, Members: members,
			Frontiers: []model.Frontier{{Enqueued: model.Some(int64(10)), Completed: model.Some(int64(9))}},
		})
		late := r%2 == 1 && odd == "late" && i == 0
		if late {
			s.Comms[i].Frontiers[0] = model.Frontier{Enqueued: model.Some(int64(9)), Completed: model.Some(int64(9))}
		}
		if late || i == 1 && odd != "each" {
			s.Comms[i].Frontiers[0].Enqueued = s.Comms[i].Frontiers[0].Completed
			continue
		}
		seq := int64(10)
		if odd == "each" && i == 1 { // one stalled operation for each eight
			seq = 10 + r/8%2
		}
		s.Ops = append(s.Ops, model.StateOp{Kind: model.KindCollective, Name: model.AllReduce, Comm: i, Seq: seq, Created: 1})
	}
	return s, odd != "absent" || r%2 == 0
}

// BenchmarkSpread measures one analysis where what is wrong is everywhere: ranks that have not
// come, ranks without a state, an operation that stalls in each communicator of eight, other members
// of the world on each rank. Time for each rank is to stay level.
func BenchmarkSpread(b *testing.B) {
	for _, odd := range []string{"late", "absent", "each", "others"} {
		for _, n := range []int64{1024, 4096, 16384} {
			b.Run(odd+"/"+strconv.FormatInt(n, 10)+"_ranks", func(b *testing.B) {
				c := &cluster{n: n, lists: map[[3]int64][]int64{}}
				for b.Loop() {
					b.StopTimer()
					a := desync.New(desync.NewDefaultConfig())
					for r := range n {
						if s, ok := spread(r, n, c, odd); ok {
							a.Add(&s)
						}
					}
					b.StartTimer()
					a.Conclude(0)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/rank")
			})
		}
	}
}
