// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/frwatch"
)

// settle finds how many ranks a job has: what was said of it, unless dumps say more, else as many
// as the group that has all ranks. Dumps of Gloo do not say the members of groups: then the greatest
// rank is a guess, and the job may have more.
func (r *run) settle(g *group) {
	var greatest *item
	largest := int64(0)
	for _, it := range g.items {
		if it.light == nil {
			continue
		}
		if greatest == nil || it.rank > greatest.rank {
			greatest = it
		}
		for i := range it.light.Comms {
			if m := it.light.Comms[i].Members; len(m) > 0 {
				largest = max(largest, int64(len(m)))
				g.world = max(g.world, m[0]+1, m[len(m)-1]+1) // members mostly rise
			}
		}
	}
	if greatest == nil { // the names of what can not be read alone say nothing of others
		g.world, g.guessed = min(r.o.WorldSize, frwatch.MaxRanks), r.o.WorldSize == 0
		return
	}
	g.world = max(g.world, largest)
	said := r.o.WorldSize
	switch {
	case said > 0 && said > greatest.rank && said >= g.world:
		g.world = min(said, frwatch.MaxRanks)
		return
	case said > greatest.rank:
		r.problem(greatest, fmt.Sprintf("find size of job: got a process group with rank %d; want less than %d, the size that was given; it is not used", g.world-1, said))
	case said > 0:
		r.problem(greatest, fmt.Sprintf("find size of job: got a dump of rank %d; want less than %d, the size that was given; it is not used", greatest.rank, said))
	}
	g.refused = said > 0
	g.world = min(max(g.world, greatest.rank+1), frwatch.MaxRanks)
	g.guessed = largest < g.world
}

// outside reports whether an item could not be read whose name says a rank that the job is not
// known to have: a name alone makes no rank. Where nothing could be read, names are all there is.
func (g *group) outside(it *item) bool { return it.light == nil && g.world > 0 && it.rank >= g.world }
