// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// Cause is where time of the path was spent: segments of one rank, kind and place.
type Cause struct {
	Rank    int64 // -1 of a stage, and of a group's transfer
	Peer    int64 // of a link; -1 where it is a group's, or no link
	Stage   int32 // of kind Stage; else -1
	Kind    Kind
	Place   Place
	Seconds float64 // on the path
	Share   float64 // of the step
	Excess  float64 // s over peers
	// Compared: some of it had peers.
	Compared bool

	class uint64
	index int32 // of the rank in the step, or none
	scale float64
}

type causeKey struct {
	rank, peer int64
	kind       Kind
	place      Place
	class      uint64
}

// causes merges the path.
func (g *Graph) causes(w *Walk) []Cause {
	at := map[causeKey]int{}
	var out []Cause
	for i := range w.Path {
		s := &w.Path[i]
		k := causeKey{rank: s.Rank, peer: s.Peer, kind: s.Kind, place: s.Place}
		if s.Kind == Link {
			k.class = s.class
			if s.Peer < 0 {
				k.rank = -1
			}
		}
		n, ok := at[k]
		if !ok {
			n = len(out)
			at[k] = n
			out = append(out, Cause{Rank: k.rank, Peer: k.peer, Stage: -1, Kind: k.kind, Place: k.place, class: k.class, index: s.Index})
			if k.rank < 0 {
				out[n].index = none
			}
		}
		c := &out[n]
		c.Seconds += s.Seconds()
		c.Excess += time.Duration(s.Excess).Seconds()
		c.Compared = c.Compared || s.Compared
	}
	out = append(out, g.stages(w)...)
	length := time.Duration(w.End - w.Start).Seconds()
	for i := range out {
		if length > 0 {
			out[i].Share = out[i].Seconds / length
		}
	}
	slices.SortStableFunc(out, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Excess, a.Excess), cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Rank, b.Rank))
	})
	return out
}

// stages returns, for the stages of a pipeline that have more to do than the others,
// their computing on the path. No rank of the stage is late among its peers by that.
func (g *Graph) stages(w *Walk) []Cause {
	work := g.stageWork()
	if len(work) < 2 {
		return nil
	}
	by := map[int32]*Cause{}
	for i := range w.Path {
		s := &w.Path[i]
		stage := g.ranks[s.Index].Stage
		if s.Kind != Compute || stage < 0 {
			continue
		}
		if by[stage] == nil {
			by[stage] = &Cause{Rank: -1, Peer: -1, Stage: stage, Kind: Stage, Compared: true, index: none}
		}
		by[stage].Seconds += s.Seconds()
		by[stage].Excess -= time.Duration(s.Excess).Seconds() // what is a rank's is not the stage's
	}
	all := make([]int64, 0, len(work))
	for _, v := range work {
		all = append(all, v)
	}
	slices.Sort(all)
	var out []Cause
	for stage, c := range by {
		own, others := work[stage], stats.MedianWithout(all, work[stage])
		if own <= others {
			continue
		}
		c.scale = float64(others) / float64(own)
		c.Excess = (c.Seconds + c.Excess) * (1 - c.scale)
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Cause) int { return cmp.Compare(a.Stage, b.Stage) })
	return out
}

// stageWork returns what a rank of each stage has to compute: the median of its ranks,
// of which each counts with what its operations typically take. Who is slow has no more
// to do.
func (g *Graph) stageWork() map[int32]int64 {
	if !g.staged() {
		return nil
	}
	g.index()
	work := make([]int64, len(g.ranks))
	for s := range g.slots.keys {
		members := g.typ.nodes[g.typ.at[s]:g.typ.at[s+1]]
		if g.nodes[members[0]].kind != Compute {
			continue
		}
		usual := stats.MedianMidpoint(g.peers(int32(s), duration))
		if len(members) == 1 {
			if t, ok := g.elsewhere(members[0], duration); ok {
				usual = t
			}
		}
		for _, i := range members {
			work[g.nodes[i].rank] += usual
		}
	}
	by := map[int32][]int64{}
	for r := range g.ranks {
		if stage := g.ranks[r].Stage; stage >= 0 {
			by[stage] = append(by[stage], work[r])
		}
	}
	out := map[int32]int64{}
	for s, v := range by {
		slices.Sort(v)
		out[s] = stats.MedianMidpoint(v)
	}
	return out
}

// staged reports whether there are several stages.
func (g *Graph) staged() bool {
	first := int32(-1)
	for r := range g.ranks {
		switch s := g.ranks[r].Stage; {
		case s < 0:
		case first < 0:
			first = s
		case s != first:
			return true
		}
	}
	return false
}
