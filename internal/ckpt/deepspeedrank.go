// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// deepspeed gathers one tag of DeepSpeed.
type deepspeed struct {
	*builder
	f     *folder
	there map[string]bool // files, without the prefix bf16_

	known      bool // a model file said how many ranks there are
	dp, mp     int64
	stage      int64 // of ZeRO; -1 where the configuration does not say
	noOptimum  bool  // the model files hold no optimizer's state
	sawOptim   bool
	sawSharded bool // parameters are sharded too (stage 3)

	skipped int64 // steps that the optimizer left out, of all
	inner   []innerStep
}

// innerStep is what the optimizer within a ZeRO shard counts.
type innerStep struct {
	domain int
	step   int64
	known  bool
	file   string

	iterations int64 // of the loss scaler
	scaled     bool  // there is one
	empty      bool  // the optimizer has no state yet
	bare       bool  // it lacks averages that it has from its first step on
}

// model reads a file of model states, which says the step and the world.
func (d *deepspeed) model(name string) {
	path := d.f.join(name)
	id := trimPT(name)
	d.there[id] = true
	if deepspeedModel3.MatchString(name) {
		d.sawSharded = true
	}
	i := d.domain(model.DomainModel, id, path)
	z := d.torchShard(i, path, nil)
	if z == nil {
		return
	}
	n, ok := z.number("global_steps")
	if !ok {
		d.torn(i, CheckWitness, path, "got no global_steps; want it")
		return
	}
	d.hold(i, n, "global_steps", path)
	dp, ok1 := z.number("dp_world_size")
	mp, ok2 := z.number("mp_world_size")
	if !ok1 || !ok2 {
		return
	}
	if d.known && (dp != d.dp || mp != d.mp) {
		d.doubt(i, model.DomainTentative, Problem{CheckShards, Partial, path, fmt.Sprintf("got a rank of another world, %d data-parallel and %d model-parallel ranks; want %d and %d", dp, mp, d.dp, d.mp)})
		return
	}
	if !d.known {
		d.stage = -1
		if n, ok := z.number("ds_config", "zero_optimization", "stage"); ok {
			d.stage = n
		}
		d.noOptimum = !z.hasOptimizer()
	} else if !d.noOptimum {
		z.wantOptimizer(z.get("optimizer"))
	}
	if n, ok := z.number("skipped_steps"); ok {
		d.skipped = n
	}
	d.dp, d.mp, d.known = dp, mp, true
	alike(d.builder, z, "skipped_steps", "skipped_steps")
	alike(d.builder, z, "global_samples", "global_samples")
}

func trimPT(name string) string {
	if len(name) > 3 {
		return name[:len(name)-3]
	}
	return name
}

// optimizer reads a shard of ZeRO. It says no step of the job's; that of the optimizer in it
// grows with the job's, so that shards of one save count the same.
func (d *deepspeed) optimizer(name string) {
	path := d.f.join(name)
	id := trimPT(name)
	if len(id) > 5 && id[:5] == "bf16_" {
		id = id[5:]
	}
	d.there[id] = true
	d.sawOptim = true
	i := d.domain(model.DomainOptimizer, id, path)
	z := d.torchShard(i, path, nil)
	if z == nil {
		return
	}
	z.wantZeRO()
	step, ok := z.innerStep()
	in := innerStep{domain: i, step: step, known: ok, file: path, empty: z.emptyState(), bare: z.zeroLacksAverages()}
	in.iterations, in.scaled = z.scalerIterations()
	d.inner = append(d.inner, in)
	for _, key := range []string{"cur_scale", "last_overflow_iter"} {
		alike(d.builder, z, "loss_scaler."+key, "optimizer_state_dict", "loss_scaler", key)
	}
	if group, ok := z.number("ds_config", "zero_optimization", "mics_shard_size"); !ok || group < 1 { // else there are replicas
		distinct(d.builder, deepspeedOptim.FindStringSubmatch(name)[2], z)
	}
}

// wantZeRO doubts a shard of ZeRO that holds no optimizer: neither its own state, nor that of the optimizer within.
func (t *torch) wantZeRO() {
	outer, ok := t.get("optimizer_state_dict")
	for _, key := range []string{"base_optimizer_state", "optimizer_state_dict"} {
		v, within := t.m.Get(outer, key)
		ok = ok && (!within || v.Kind() == pickle.List || t.holds(v)) // a list is of what each group has of it
	}
	t.wantOptimizer(outer, ok)
}

// maxInner bounds the values that are looked at for an optimizer's step: it is among the
// first.
const maxInner = 20_000

// innerStep finds the step of an optimizer: the greatest number called "step". A parameter that was
// without a gradient for some steps counts fewer than others.
func (t *torch) innerStep() (most int64, found bool) {
	queue := []pickle.Value{t.root}
	for n := 0; n < len(queue) && n < maxInner; n++ {
		v := queue[n]
		if v.Kind() == pickle.Object {
			if c := t.m.Contents(v); c.Kind() == pickle.Dict {
				v = c
			} else {
				v = t.m.State(v)
			}
		}
		switch v.Kind() {
		case pickle.Dict:
			if s, ok := t.m.Get(v, "step"); ok {
				if n, ok := t.read(s); ok && (!found || n > most) {
					most, found = n, true
				}
			}
			items := t.m.Items(v)
			for k := 1; k < len(items) && len(queue) < maxInner; k += 2 {
				queue = append(queue, items[k])
			}
		case pickle.List, pickle.Tuple:
			for _, item := range t.m.Items(v) {
				if len(queue) < maxInner {
					queue = append(queue, item)
				}
			}
		}
	}
	return most, found
}

// expect lists what the world has and the folder has not.
func (d *deepspeed) expect() {
	limit := int64(d.opt.Limits.Domains)
	if !d.known {
		d.save.WorldUnknown = true
		if len(d.there) == 0 {
			i := d.domain(model.DomainModel, "all", d.f.path)
			d.missing(i, CheckShards, d.f.path, "got no file of any rank; want mp_rank_00_model_states.pt or the like")
		}
		return
	}
	if d.dp < 1 || d.mp < 1 || d.dp > limit || d.mp > limit/d.dp {
		i := d.domain(model.DomainModel, "all", d.f.path)
		d.torn(i, CheckShards, d.f.path, "got a world of %d data-parallel and %d model-parallel ranks; want a product of 1 to %d", d.dp, d.mp, limit)
		return
	}
	d.save.World = some(d.dp*d.mp, true)
	for mp := range d.mp {
		if d.sawSharded {
			for dp := range d.dp {
				d.want(model.DomainModel, fmt.Sprintf("zero_pp_rank_%d_mp_rank_%02d_model_states", dp, mp))
			}
		} else {
			d.want(model.DomainModel, fmt.Sprintf("mp_rank_%02d_model_states", mp))
		}
		if !d.sawOptim && (d.stage == 0 || !d.noOptimum) {
			if d.noOptimum {
				d.save.WeightsOnly = "the files of model states have no optimizer, and there are none of optimizer states"
			}
			continue // the optimizer's state is in the model's files
		}
		for dp := range d.dp {
			d.want(model.DomainOptimizer, fmt.Sprintf("zero_pp_rank_%d_mp_rank_%02d_optim_states", dp, mp))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.there)) {
		if i, ok := d.at[model.Domain{Kind: d.kindOf(id), ID: id}]; ok && d.there[id] {
			d.doubt(i, model.DomainTentative, Problem{CheckShards, Suspect, d.f.join(id + ".pt"), "got a shard that this world does not have; want none: the tag was used before, and nothing says which of its shards are new"})
		}
	}
}

func (d *deepspeed) kindOf(id string) model.DomainKind {
	if deepspeedOptim.MatchString(id + ".pt") {
		return model.DomainOptimizer
	}
	return model.DomainModel
}

// want notes a shard that must be there. What is left in there was not wanted.
func (d *deepspeed) want(kind model.DomainKind, id string) {
	if _, ok := d.there[id]; ok {
		d.there[id] = false
		return
	}
	i := d.domain(kind, id, "")
	d.missing(i, CheckShards, d.f.join(id+".pt"), "got no such file; want it of %d data-parallel and %d model-parallel ranks", d.dp, d.mp)
}

// compareInner compares what the optimizers of all shards count. They began together, so that
// a shard that counts another number than the first is of another save, by so many steps.
func (d *deepspeed) compareInner() {
	first := slices.IndexFunc(d.inner, func(s innerStep) bool { return s.known })
	if first < 0 || !d.save.Epoch.OK {
		return
	}
	ref := d.inner[first].step
	for _, s := range d.inner {
		if s.known && s.step != ref {
			d.hold(s.domain, d.save.Epoch.V+s.step-ref, "the optimizer's step", s.file)
		}
	}
}

// countInner notes what the optimizers count, to compare it with the step of the tag, less what was skipped,
// and with other tags: all shards together may be of another save.
func (d *deepspeed) countInner() {
	if !d.known { // nor how many steps were skipped
		return
	}
	d.save.skipped = d.skipped
	for _, s := range d.inner {
		of := &d.save.Domains[s.domain]
		switch {
		case of.Own:
		case !s.known && s.scaled:
			d.save.counters = append(d.save.counters, d.scalerCounter(s))
		case s.known:
			d.save.counters = append(d.save.counters, counter{
				domain: of.Domain, of: of.ID, file: s.file, n: s.step, step: d.save.Epoch.V, want: d.save.Epoch.V - d.skipped, shard: true,
			})
		}
	}
}

func (d *deepspeed) doubtStep(s innerStep, want int64) {
	d.doubt(s.domain, model.DomainTentative, Problem{CheckWitness, Suspect, s.file, fmt.Sprintf("got an optimizer that counts %d steps; want %d: it is of another save, or was started anew", s.step, want)})
}

// proveInner compares what the optimizers count with the step of the model, less what was
// skipped: under a tag that says no step, all shards may be of another save than the model.
func (d *deepspeed) proveInner() {
	if !d.save.Epoch.OK {
		return
	}
	want := d.save.Epoch.V - d.skipped
	for _, s := range d.inner {
		switch {
		case !s.known && (!s.scaled || d.save.Domains[s.domain].Own):
		case !s.known:
			if s.iterations == d.save.Epoch.V {
				d.hold(s.domain, d.save.Epoch.V, "the loss scaler's count", s.file)
			}
		case s.step == want:
			d.hold(s.domain, d.save.Epoch.V, "the optimizer's step", s.file)
		default:
			d.doubtStep(s, want)
		}
	}
}
