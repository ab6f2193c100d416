// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// verlRole gathers one role of the FSDP backend.
type verlRole struct {
	*builder
	f  *folder
	id string // begins the names of its parts: "actor "

	world int64 // of its ranks
	there map[string]bool
	steps []innerStep
}

func (v *verlRole) read() {
	v.there = map[string]bool{}
	worlds := map[int64]bool{}
	for _, e := range v.f.entries {
		if at := verlShard.FindStringSubmatch(e.Name()); at != nil {
			n, ok := number(at[2])
			worlds[n] = ok
			v.there[e.Name()] = true
		}
	}
	v.world = v.configured()
	sizes := slices.Sorted(maps.Keys(worlds))
	switch {
	case v.world == 0 && len(sizes) > 0:
		v.world = sizes[0]
		if len(sizes) > 1 {
			i := v.domain(model.DomainModel, v.id+"all", v.f.path)
			v.doubt(i, model.DomainTentative, Problem{CheckShards, Suspect, v.f.path, "got shards of several numbers of ranks and no " + verlConfig + "; want those of one: nothing says which are new"})
		}
	case v.world == 0:
		v.missing(v.domain(model.DomainModel, v.id+"all", ""), CheckShards, v.f.path, "got no shard; want model_world_size_N_rank_0.pt and so on")
		return
	}
	if limit := int64(v.opt.Limits.Domains); v.world < 1 || v.world > limit {
		v.torn(v.domain(model.DomainModel, v.id+"all", v.f.path), CheckShards, v.f.path, "got a world of %d ranks; want 1 to %d", v.world, limit)
		return
	}
	if v.f.has(verlConfig) {
		v.otherWorlds(worlds)
	}
	for _, part := range verlKinds {
		if part.kind == model.DomainModel || !v.weightsOnly() {
			v.part(part.name, part.kind)
		}
	}
	judgeShared(v.builder)
	v.agreeSteps(v.steps)
	countsAll(v.builder, v.steps)
}

// weightsOnly reports whether the role was saved with the model alone in save_contents. Its configuration comes last:
// where it is there, no other part was to be written.
func (v *verlRole) weightsOnly() bool {
	for name := range v.there {
		if at := verlShard.FindStringSubmatch(name); at[1] != verlKinds[0].name {
			return false
		}
	}
	if len(v.there) == 0 || !v.f.has(verlConfig) {
		return false
	}
	v.save.WeightsOnly = v.id + "has no optim and no extra_state of any rank (save_contents)"
	return true
}

// configured is the number of ranks by fsdp_config.json, which rank 0 writes; 0 where there is none, as of
// older versions.
func (v *verlRole) configured() int64 {
	name := v.f.join(verlConfig)
	if !v.f.has(verlConfig) {
		return 0
	}
	i := v.domain(model.DomainCommit, v.id+verlConfig, name)
	var doc struct {
		World int64 `json:"world_size"`
	}
	x := v.shard(i, name, 1, nil)
	if x == nil {
		return 0
	}
	x.close()
	if err := v.json(name, &doc); err != nil {
		v.unread(i, CheckTorn, name, err)
	}
	return doc.World
}

// verlName is the name of what a rank wrote of one kind.
func verlName(begin string, world, rank int64) string {
	return begin + "_world_size_" + quantity(world) + "_rank_" + quantity(rank) + ".pt"
}

// part reads what each rank wrote of one kind.
func (v *verlRole) part(begin string, kind model.DomainKind) {
	name := func(r int64) string { return verlName(begin, v.world, r) }
	found := false
	for r := range v.world {
		found = found || v.there[name(r)]
	}
	if !found {
		v.missing(v.domain(kind, v.id+"all", ""), CheckShards, v.f.join(name(0)), "got no such file of any of %d ranks; want one of each: a resume needs model, optim and extra_state", v.world)
		return
	}
	for r := range v.world {
		file := v.f.join(name(r))
		i := v.domain(kind, v.id+rankID(r), file)
		switch {
		case !v.there[name(r)]:
			v.save.Domains[i].File = ""
			v.missing(i, CheckShards, file, "got no such file; want it of %d ranks", v.world)
		case kind == model.DomainOptimizer:
			v.steps = append(v.steps, v.countedShard(i, file))
		default:
			z := v.torchShard(i, file, nil)
			countsScheduler(v.builder, i, z, "lr_scheduler")
			alike(v.builder, z, "lr_scheduler.last_epoch of "+v.id+"ranks", "lr_scheduler", "last_epoch")
		}
	}
}
