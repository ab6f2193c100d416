// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// otherWorlds looks at shards of other numbers of ranks than fsdp_config.json has, which rank 0 writes after
// its shards. A whole set of them is of an earlier save; one with gaps may be of a later save that was cut off.
func (v *verlRole) otherWorlds(worlds map[int64]bool) {
	for _, world := range slices.Sorted(maps.Keys(worlds)) {
		if world == v.world || !worlds[world] {
			continue
		}
		p := Problem{CheckShards, Suspect, v.f.path, fmt.Sprintf("got shards of %d ranks; want those of %d alone, as %s has it", world, v.world, verlConfig)}
		if v.wholeWorld(world) {
			p.What += ": they are of an earlier save"
			v.problem(&v.save, p)
			continue
		}
		p.What += fmt.Sprintf(": a save by %d ranks is under way, or was cut off", world)
		v.doubt(v.domain(model.DomainModel, v.id+"all", v.f.path), model.DomainTentative, p)
	}
}

// wholeWorld reports whether each rank of a world has all of its shards.
func (v *verlRole) wholeWorld(world int64) bool {
	for r := range min(world, int64(len(v.there))+1) { // more ranks than shards leave gaps
		for _, part := range verlKinds {
			if !v.there[verlName(part.name, world, r)] {
				return false
			}
		}
	}
	return world > 0
}
