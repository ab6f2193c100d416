// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// BenchmarkTick is one look at a job that hangs, of which all ranks but one wait in eight
// communicators: a thousand ranks to each.
func BenchmarkTick(b *testing.B) {
	benchTick(b, benchState, 1, 1024, 16_384)
}

// benchTick looks at jobs of so many ranks with these states.
func benchTick(b *testing.B, state func(rank int64, members []int64, now time.Time) *model.RankState, findings int64, sizes ...int) {
	b.Helper()
	for _, ranks := range sizes {
		b.Run(fmt.Sprintf("%d ranks", ranks), func(b *testing.B) {
			w, now := New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
			members := make([]int64, ranks)
			for i := range members {
				members[i] = int64(i)
			}
			feed := func() {
				now = now.Add(2 * time.Second)
				for i := range ranks {
					w.AddState(state(int64(i), members, now), now)
				}
			}
			feed()
			now = now.Add(10 * time.Minute)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				feed()
				b.StartTimer()
				w.Tick(now)
			}
			if got := w.Stats().Told; got != findings {
				b.Fatalf("report findings: got %d; want %d", got, findings)
			}
		})
	}
}

func benchState(rank int64, members []int64, now time.Time) *model.RankState {
	enqueued := int64(1_760_000_000) * int64(time.Second)
	s := &model.RankState{
		Rank: model.Rank{JobID: "job", Rank: rank}, Time: now.UnixNano(), Source: model.StateRankEvents, LastEnqueue: enqueued,
		Process: model.ProcessRunning,
	}
	for c := range 8 {
		id, size := fmt.Sprintf("0x%d", c), min(len(members), 1024)
		from := int(rank) / size * size
		if c > 0 {
			id = fmt.Sprintf("%s/%d", id, from)
		}
		state := model.CommState{
			Comm: model.Comm{ID: id}, Members: members[from:min(from+size, len(members))], Scope: model.ScopeCommFunc,
			Frontiers: []model.Frontier{{Func: model.AllReduce, Enqueued: model.Some(int64(6)), Completed: model.Some(int64(6))}},
		}
		if c == 0 {
			state.Members = members
		}
		if rank != 5 {
			state.Frontiers[0].Enqueued = model.Some(int64(7))
			s.Ops = append(s.Ops, model.StateOp{Kind: model.KindCollective, Name: model.AllReduce, Comm: c, Seq: 7, Created: enqueued})
		}
		s.Comms = append(s.Comms, state)
	}
	return s
}

// BenchmarkTick_HalfFrozen is one look at a job of which every second rank is frozen before it enters
// what the others wait in.
func BenchmarkTick_HalfFrozen(b *testing.B) {
	benchTick(b, halfFrozen, maxEpisodes, 1000, 10_000)
}

func halfFrozen(rank int64, members []int64, now time.Time) *model.RankState {
	s := benchState(rank, members, now)
	if rank%2 == 0 {
		return s
	}
	s.Process, s.Silent, s.Ops = model.ProcessFrozen, model.Some(5.0), nil
	for i := range s.Comms {
		s.Comms[i].Frontiers[0].Enqueued = model.Some(int64(6))
	}
	return s
}
