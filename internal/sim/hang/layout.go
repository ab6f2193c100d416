// SPDX-License-Identifier: Apache-2.0

package hang

import (
	"fmt"
	"strconv"
)

// Layout is a job: how it is split over its ranks, and how it runs.
type Layout struct {
	Name           string
	TP, DP, PP, EP int // EP divides DP
	Layers, Micro  int
	Steps          int
	// Warm is in which step a fault can come first; at least 1.
	Warm int
	// Sharded: parameters are gathered and gradients scattered over DP, as ZeRO does, ahead
	// of their use. Else gradients are reduced in buckets.
	Sharded bool
	// Batched messages of a pipeline go as one coalesced group (one forward, one backward);
	// else one by one on a stream of each pair.
	Batched bool
	// WorldMessages: the pipeline's messages go over the world's group, which then has both
	// messages and collectives.
	WorldMessages bool
	// Eager: a sender need not wait for its receiver.
	Eager bool
	// RunAhead is how many instructions a host may be ahead of its device.
	RunAhead int
	// SyncEvery: every so many steps the host reads the loss; 0: never.
	SyncEvery int
	// Gloo: operations run on the host, and dumps are Gloo's.
	Gloo bool
}

// World returns how many ranks the job has.
func (l *Layout) World() int { return l.TP * l.DP * l.PP }

func (l *Layout) check() error {
	if l.TP < 1 || l.DP < 1 || l.PP < 1 || l.EP < 1 || l.DP%l.EP != 0 || l.World() < 2 {
		return fmt.Errorf("check layout: got tensor %d, data %d, pipeline %d, expert %d; want at least 1 each, 2 ranks, and experts that divide data", l.TP, l.DP, l.PP, l.EP)
	}
	if l.Layers < 1 || l.Micro < 1 || l.Steps < 2 || l.RunAhead < 1 {
		return fmt.Errorf("check layout: got %d layers, %d micro-batches, %d steps, %d ahead; want at least 1, 1, 2, 1", l.Layers, l.Micro, l.Steps, l.RunAhead)
	}
	return nil
}

// kind is a kind of process group.
type kind uint8

const (
	world kind = iota
	tensor
	data
	expert
	pipeline
	embedding // the first and the last stage; used from the second step on
	kinds
)

var descs = [kinds]string{"default_pg", "TENSOR_MODEL_PARALLEL_GROUP", "DATA_PARALLEL_GROUP", "EXPERT_MODEL_PARALLEL_GROUP", "PIPELINE_MODEL_PARALLEL_GROUP", "EMBEDDING_GROUP"}

// group is one process group.
type group struct {
	name string // as PyTorch counts them, the same on every rank
	kind kind
	// ranks are its members in order.
	ranks []int64
}

// seat is a rank's membership in a group.
type seat struct{ group, member int32 } // group -1: in none

// grid is the layout with its groups.
type grid struct {
	Layout
	world  int
	groups []group
	places [][kinds]seat
}

func (g *grid) tp(r int) int             { return r % g.TP }
func (g *grid) dp(r int) int             { return r / g.TP % g.DP }
func (g *grid) stage(r int) int          { return r / (g.TP * g.DP) }
func (g *grid) at(stage, dp, tp int) int { return (stage*g.DP+dp)*g.TP + tp }

func newGrid(l Layout) *grid {
	g := &grid{Layout: l, world: l.World(), places: make([][kinds]seat, l.World())}
	for r := range g.places {
		for k := range g.places[r] {
			g.places[r][k] = seat{-1, -1}
		}
	}
	all := make([]int64, g.world)
	for r := range all {
		all[r] = int64(r)
	}
	g.add(world, all)
	for k := tensor; k < kinds; k++ {
		g.addAll(k)
	}
	return g
}

// addAll makes the groups of a kind: the ranks that agree in everything else.
func (g *grid) addAll(k kind) {
	index := map[[3]int]int{}
	var lists [][]int64
	for r := range g.world {
		key := [3]int{g.stage(r), g.dp(r), g.tp(r)}
		switch k {
		case tensor:
			key[2] = 0
		case data:
			key[1] = 0
		case expert:
			key[1] /= g.EP
		case pipeline:
			key[0] = 0
		case embedding:
			if key[0] != 0 && key[0] != g.PP-1 {
				continue
			}
			key[0] = 0
		}
		i, ok := index[key]
		if !ok {
			i = len(lists)
			index[key], lists = i, append(lists, nil)
		}
		lists[i] = append(lists[i], int64(r))
	}
	for _, l := range lists {
		g.add(k, l)
	}
}

// add makes a group. PyTorch counts groups of one rank, too, but nothing is ever recorded
// in them here.
func (g *grid) add(k kind, ranks []int64) {
	if len(ranks) > 1 {
		for m, r := range ranks {
			g.places[r][k] = seat{int32(len(g.groups)), int32(m)}
		}
	}
	g.groups = append(g.groups, group{name: strconv.Itoa(len(g.groups)), kind: k, ranks: ranks})
}
