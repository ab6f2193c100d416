// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// commKind is a kind of communicator.
type commKind uint8

const (
	commWorld commKind = iota
	commDP
	commTP
	commEP
	commPP // messages
	commKinds
)

var commNames = [commKinds]string{"world", "data_parallel", "tensor_parallel", "expert_parallel", "pipeline_parallel"}

// grid is the layout with its arithmetic.
type grid struct {
	Layout
	world int
}

func (g *grid) dp(r int) int   { return r / g.TP % g.DP }
func (g *grid) tp(r int) int   { return r % g.TP }
func (g *grid) pp(r int) int   { return r / (g.TP * g.DP) }
func (g *grid) ep(r int) int   { return g.dp(r) % g.EP }
func (g *grid) node(r int) int { return r / g.PerNode }
func (g *grid) nodes() int     { return (g.world + g.PerNode - 1) / g.PerNode }

func (g *grid) rankAt(pp, dp, tp int) int { return (pp*g.DP+dp)*g.TP + tp }

// size returns how many members a communicator of the kind has.
func (g *grid) size(k commKind) int {
	return [commKinds]int{g.world, g.DP, g.TP, g.EP, g.PP}[k]
}

// groups returns how many communicators of the kind there are.
func (g *grid) groups(k commKind) int { return g.world / g.size(k) }

// group returns a rank's communicator of the kind, and its place in it.
func (g *grid) group(k commKind, r int) (group, member int) {
	pp, dp, tp := g.pp(r), g.dp(r), g.tp(r)
	switch k {
	case commDP:
		return pp*g.TP + tp, dp
	case commTP:
		return pp*g.DP + dp, tp
	case commEP:
		return (pp*g.TP+tp)*(g.DP/g.EP) + dp/g.EP, dp % g.EP
	case commPP:
		return dp*g.TP + tp, pp
	}
	return 0, r
}

// member returns the rank in a place of a communicator.
func (g *grid) member(k commKind, group, i int) int {
	switch k {
	case commDP:
		return g.rankAt(group/g.TP, i, group%g.TP)
	case commTP:
		return group*g.TP + i
	case commEP:
		per := g.DP / g.EP
		return g.rankAt(group/per/g.TP, group%per*g.EP+i, group/per%g.TP)
	case commPP:
		return g.rankAt(i, group/g.TP, group%g.TP)
	}
	return i
}

// communicator is one group of ranks.
type communicator struct {
	id, digest string
	// perNode is how many of its members the first node has: a ring over several nodes
	// leaves each node once for each of them, so that each member sends over its own
	// card, to the member as many places on.
	perNode int
	wide    bool // over several nodes
}

func (g *grid) communicators(incarnation string) (out [commKinds][]communicator) {
	for k := range commKinds {
		out[k] = make([]communicator, g.groups(k))
		ranks := make([]int64, g.size(k))
		for i := range out[k] {
			c := &out[k][i]
			for m := range ranks {
				r := g.member(k, i, m)
				ranks[m] = int64(r)
				if g.node(r) == g.node(int(ranks[0])) {
					c.perNode++
				} else {
					c.wide = true
				}
			}
			c.digest = model.RanksDigest(ranks)
			c.id = fmt.Sprintf("0x%016x", hash(textSeed(incarnation), uint64(k), uint64(i)))
		}
	}
	return out
}

// next returns to whom a rank sends in a ring of the communicator.
func (g *grid) next(k commKind, c *communicator, group, member int) int {
	step := 1
	if c.wide {
		step = c.perNode
	}
	return g.member(k, group, (member+step)%g.size(k))
}

// describe returns the resources of all ranks.
func (g *grid) describe(name, incarnation string) []model.Rank {
	out := make([]model.Rank, g.world)
	some := func(v int) model.Optional[int64] { return model.Some(int64(v)) }
	for r := range out {
		host := hostName(g.node(r))
		m := &out[r]
		*m = model.Rank{
			JobName: name, JobID: name, Incarnation: incarnation, Rank: int64(r), LocalRank: some(r % g.PerNode), WorldSize: some(g.world),
			HostName: host, HostID: host, HWID: fmt.Sprintf("GPU-%08x", hash(textSeed(incarnation), 77, uint64(r))>>32),
			PID: some(1000 + r), ClockID: "host:" + host + "/realtime",
		}
		m.Parallel.DP, m.Parallel.PP, m.Parallel.TP = some(g.dp(r)), some(g.pp(r)), some(g.tp(r))
		if g.EP > 1 {
			m.Parallel.EP = some(g.ep(r))
		}
	}
	return out
}

func hostName(node int) string { return fmt.Sprintf("node%04d", node) }
