// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// megatronWorld is what a rank's arguments say of the job.
type megatronWorld struct {
	tp, pp, ep, dp int64
	distributed    bool // the optimizer's state lies in files of its own
}

// megatronRankState is what a rank's file has beside its model.
type megatronRankState struct {
	name, file     string
	optimizer, rng bool
	global         model.Optional[int64] // the number of the rank that saved it
	megatron       bool                  // its arguments are those of Megatron, which saves random numbers unless told not to
}

// readMegatronLegacy reads a folder for each model-parallel rank. Nothing marks the save as
// finished but the tracker; each rank's file says its iteration and how many ranks there are.
func (b *builder) readMegatronLegacy(f *folder) {
	ranks := megatronRanks(f)
	var world megatronWorld
	known := false
	for _, r := range ranks {
		w, ok := b.megatronModel(f, r)
		switch {
		case !ok:
		case known && w != world:
			i := b.domain(model.DomainModel, r.name, "")
			b.doubt(i, model.DomainTentative, Problem{CheckShards, Partial, f.join(r.name), fmt.Sprintf("got a rank of another world, %v; want %v", w, world)})
		default:
			world, known = w, true
		}
	}
	switch {
	case known:
		b.megatronExpected(f, ranks, world)
	case len(ranks) > 0 && !energonOnly(b, f, ranks):
		b.save.WorldUnknown = true
	case len(ranks) == 0:
		i := b.domain(model.DomainModel, "all", f.path)
		b.missing(i, CheckShards, f.path, "got no rank's folder; want mp_rank_00 and so on")
	}
	compareMegatronRanks(b)
	judgeTwins(b)
	judgeShared(b)
	b.readEnergon(f, world.dp)
}

// megatronModel reads model_optim_rng.pt of one rank.
func (b *builder) megatronModel(f *folder, r megatronRank) (megatronWorld, bool) {
	dir, err := b.folder(f.join(r.name))
	if err != nil {
		i := b.domain(model.DomainModel, r.name, f.join(r.name))
		b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, f.join(r.name), err.Error()})
		return megatronWorld{}, false
	}
	const file = "model_optim_rng.pt"
	if !dir.has(file) && hasEnergon(dir) {
		return megatronWorld{}, false // a folder of data loaders alone
	}
	name := dir.join(file)
	i := b.domain(model.DomainModel, r.name, name)
	z := b.torchShard(i, name, nil)
	if z == nil {
		return megatronWorld{}, false
	}
	n, ok := z.number("iteration")
	if !ok {
		b.torn(i, CheckWitness, name, "got no iteration; want one")
		return megatronWorld{}, false
	}
	b.hold(i, n, "iteration", name)
	distinct(b, "model", z)
	alike(b, z, "args.consumed_train_samples", "args", "consumed_train_samples")
	alike(b, z, "opt_param_scheduler.num_steps", "opt_param_scheduler", "num_steps")
	wantMegatronAverages(z, n)
	bare := noteMegatronRank(b, z, dir, r.name)
	arg := func(key string, def int64) int64 {
		if n, ok := z.number("args", key); ok {
			return n
		}
		return def
	}
	if _, ok := z.get("args"); !ok {
		return megatronWorld{}, false
	}
	w := megatronWorld{
		tp: arg("tensor_model_parallel_size", 1), pp: arg("pipeline_model_parallel_size", 1),
		ep: arg("expert_model_parallel_size", 1), dp: arg("data_parallel_size", 0),
	}
	if v, ok := z.get("args", "use_distributed_optimizer"); ok {
		w.distributed = v.Int() == 1
	}
	if w.distributed && !bare {
		name := dir.join("distrib_optim.pt")
		if z := b.torchShard(b.domain(model.DomainOptimizer, r.name, name), name, nil); z != nil {
			z.wantOptimizer(z.root, true)
			distinct(b, "optimizer", z)
		}
	}
	return w, true
}

// megatronExpected lists the ranks that the world has and the folder has not.
func (b *builder) megatronExpected(f *folder, ranks []megatronRank, w megatronWorld) {
	limit := int64(b.opt.Limits.Domains)
	if w.tp < 1 || w.pp < 1 || w.ep < 1 || w.tp > limit || w.pp > limit/w.tp || w.ep > limit/w.tp/w.pp {
		i := b.domain(model.DomainModel, "all", f.path)
		b.torn(i, CheckShards, f.path, "got sizes %d, %d and %d of tensor, pipeline and expert parallelism; want a product of 1 to %d", w.tp, w.pp, w.ep, limit)
		return
	}
	b.save.World = some(w.tp*w.pp*max(w.dp, 1), w.dp > 0)
	there := map[string]bool{}
	for _, r := range ranks {
		there[r.name] = true
	}
	for tp := range w.tp {
		for pp := range w.pp {
			for ep := range w.ep {
				name := megatronName(w, tp, pp, ep)
				if !there[name] {
					i := b.domain(model.DomainModel, name, "")
					b.missing(i, CheckShards, f.join(name), "got no such folder; want it: the job had %d tensor, %d pipeline and %d expert ranks", w.tp, w.pp, w.ep)
				}
				delete(there, name)
			}
		}
	}
	for _, r := range ranks {
		if there[r.name] {
			b.problem(&b.save, Problem{CheckShards, Suspect, f.join(r.name), "got a rank that this world does not have; want none: it is of a save of another world"})
		}
	}
}

// megatronName is how Megatron's get_checkpoint_name calls the folder of a rank.
func megatronName(w megatronWorld, tp, pp, ep int64) string {
	var s strings.Builder
	fmt.Fprintf(&s, "mp_rank_%02d", tp)
	if w.pp > 1 {
		fmt.Fprintf(&s, "_%03d", pp)
	}
	if w.ep > 1 {
		fmt.Fprintf(&s, "_%03d", ep)
	}
	return s.String()
}
