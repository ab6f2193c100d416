// SPDX-License-Identifier: Apache-2.0

package part

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/ras"
)

const (
	rasTimeout = 6 * time.Second
	rasBytes   = 8 << 20
)

// rasFunctions are the functions that NCCL's RAS counts.
var rasFunctions = []string{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"}

// compareRAS compares what NCCL's RAS counts with what the ranks did, and returns how
// many operations it counts.
func compareRAS(s *ras.Status, truths []*ncclTruth, seen []*ringSeen) (counted int, problems []string) {
	for _, t := range truths {
		groups := usedGroups(t)
		rings := ringOf(seen, t.PID)
		if rings == nil {
			problems = append(problems, fmt.Sprintf("rank %d: got no ring", t.Rank))
			continue
		}
		comms := slices.DeleteFunc(slices.Clone(rings.Comms), func(c ncclComm) bool { return len(c.Ops) == 0 })
		if len(comms) < len(groups) {
			problems = append(problems, fmt.Sprintf("rank %d: got operations on %d communicators; want %d", t.Rank, len(comms), len(groups)))
		}
		for i, g := range groups[:min(len(groups), len(comms))] {
			n, wrong := compareRASGroup(s, t, g, comms[i].Hash)
			counted += n
			problems = append(problems, wrong...)
		}
	}
	return counted, problems
}

func compareRASGroup(s *ras.Status, t *ncclTruth, g ncclGroup, hash uint64) (counted int, problems []string) {
	at := slices.IndexFunc(s.Comms, func(c ras.Comm) bool { return c.Hash == hash })
	if at < 0 {
		return 0, []string{fmt.Sprintf("rank %d: got no communicator %#x, which is %s", t.Rank, hash, g.Name)}
	}
	c := &s.Comms[at]
	if c.Size != int(g.Size) {
		problems = append(problems, fmt.Sprintf("%s: got size %d; want %d", g.Name, c.Size, g.Size))
	}
	at = slices.IndexFunc(c.Ranks, func(r ras.Rank) bool { return r.Rank == int(g.Rank) })
	if at < 0 {
		return 0, append(problems, fmt.Sprintf("%s: got no answer of rank %d", g.Name, g.Rank))
	}
	for _, function := range rasFunctions {
		want := int64(0)
		for i := range t.Ops {
			if t.Ops[i].Group == g.Name && t.Ops[i].Function == function {
				want++
			}
		}
		got := int64(0)
		for _, n := range c.Ranks[at].Counts {
			if n.Func == function {
				got = n.N
			}
		}
		counted += int(got)
		if got != want {
			problems = append(problems, fmt.Sprintf("%s, rank %d: got %d %s; want %d", g.Name, g.Rank, got, function, want))
		}
	}
	return counted, problems
}

// behind returns the ranks that have launched fewer all-reduces than others of their
// communicator.
func behind(s *ras.Status) (ranks []int) {
	for i := range s.Comms {
		most := int64(0)
		counts := map[int]int64{}
		for _, r := range s.Comms[i].Ranks {
			for _, n := range r.Counts {
				if n.Func == "AllReduce" {
					counts[r.Rank] = n.N
					most = max(most, n.N)
				}
			}
		}
		for rank, n := range counts {
			if n < most {
				ranks = append(ranks, rank)
			}
		}
	}
	slices.Sort(ranks)
	return ranks
}
