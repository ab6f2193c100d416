// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"math/rand/v2"
	"testing"
)

// benchStep is a step of 64 ranks with 1,875 operations each, 120,000 in all: kernels
// on a stream, every tenth reduced on another, by groups of eight.
func benchStep() *Step {
	rng := rand.New(rand.NewPCG(1, 2))
	s := &Step{}
	const ranks, rounds = 64, 187
	now := make([]int64, ranks)
	for r := range ranks {
		s.Ranks = append(s.Ranks, Rank{Rank: int64(r), Stage: -1, Ops: make([]Op, 0, 11*rounds)})
	}
	for round := range rounds {
		for group := range ranks / 8 {
			var parties []Party
			var last int64
			for r := 8 * group; r < 8*group+8; r++ {
				rank := &s.Ranks[r]
				for k := range 9 {
					d := 100*us + rng.Int64N(5*us)
					rank.Ops = append(rank.Ops, Op{
						Start: now[r] + us, End: now[r] + us + d, Launch: max(1, now[r]-ms), Lane: stream,
						Place: Place(k), Seq: uint32(round), Micro: -1, Kind: Compute,
					})
					now[r] += us + d
				}
				last = max(last, now[r])
			}
			for r := 8 * group; r < 8*group+8; r++ {
				rank := &s.Ranks[r]
				parties = append(parties, Party{int32(r), int32(len(rank.Ops))})
				rank.Ops = append(rank.Ops, Op{
					Start: now[r] + 3*us, End: last + 50*us, Launch: max(1, now[r]-ms), Lane: commStream,
					Place: reduce + 100, Seq: uint32(round), Micro: -1, Kind: Comm,
				})
				now[r] = last + 50*us
				rank.End = now[r]
			}
			s.Meetings = append(s.Meetings, Meeting{Parties: parties, Rule: All, Class: 1})
		}
	}
	return s
}

func BenchmarkWalk(b *testing.B) {
	s := benchStep()
	ops := 0
	for i := range s.Ranks {
		ops += len(s.Ranks[i].Ops)
	}
	b.Run("build+walk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if w := Build(s, Options{}).Walk(); len(w.Path) == 0 {
				b.Fatal("no path")
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(ops), "ns/operation")
	})
	g := Build(s, Options{})
	m := g.Walk().Causes[0].Mend()
	b.Run("what-if", func(b *testing.B) {
		for b.Loop() {
			g.Saved(m)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(ops), "ns/operation")
	})
}
