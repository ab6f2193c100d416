// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// Why saves hold weights alone.
const (
	noOptimizerItem = "no item in .metadata is of an optimizer"
	saveWeightsOnly = "it has no state of an optimizer (save_weights_only)"
)

// noteMegatronCommon notes what common.pt has, and whether the states of random numbers were left out.
func noteMegatronCommon(b *builder, z *torch, name string) {
	if z.hasOptimizer() {
		b.save.hold(model.DomainOptimizer)
	}
	if v, ok := z.get("args", "no_save_rng"); ok && v.Int() == 1 && b.items.optimizer {
		i := b.domain(model.DomainRNG, "rng_state", "")
		b.missing(i, CheckShards, name, "%s", noRNG)
	}
}

// noteMegatronRNG notes that a save whose common state lies among its items has no states of random numbers:
// Megatron saves them beside the optimizer, but with --no-save-rng.
func noteMegatronRNG(b *builder, f *folder) {
	if b.hasCommon && !f.has(megatronCommon) && b.items.optimizer && !b.save.has(model.DomainRNG) && !b.initial {
		b.missing(b.domain(model.DomainRNG, "rng_state", ""), CheckShards, f.join(dcpMetadata), "%s", noRNG)
	}
}

const noRNG = "got a save without rng_state; want it: it was saved with --no-save-rng, and a resume needs --no-load-rng"

// noteMegatronRank notes what a rank's file has beside its model. It reports whether the rank was to save no
// optimizer.
func noteMegatronRank(b *builder, z *torch, dir *folder, rank string) bool {
	has := func(key string) bool {
		v, ok := z.get(key)
		return ok && v.Kind() != pickle.None
	}
	if !has("model") && !has("model0") || b.initial {
		return false // of another form, of which nothing is known
	}
	s := megatronRankState{name: rank, file: z.name, rng: has("rng_state")}
	_, s.megatron = z.get("args", "no_save_rng")
	if n, ok := z.number("args", "rank"); ok {
		s.global = model.Some(n)
	}
	s.optimizer = z.hasOptimizer() || slices.ContainsFunc(dir.entries, func(e fs.DirEntry) bool {
		return e.Name() == "distrib_optim.pt" || strings.HasPrefix(e.Name(), "layer_wise_optimizer_")
	})
	b.ranks = append(b.ranks, s)
	v, ok := z.get("args", "no_save_optim")
	return ok && v.Int() == 1 && !s.optimizer
}

// compareMegatronRanks compares what the ranks have: all have an optimizer, and states of random numbers, or none has.
func compareMegatronRanks(b *builder) {
	optimizers, states := 0, 0
	for _, r := range b.ranks {
		if r.optimizer {
			optimizers++
			b.save.hold(model.DomainOptimizer)
		}
		if r.rng {
			states++
			b.save.hold(model.DomainRNG)
		}
	}
	if len(b.ranks) > 0 && optimizers == 0 {
		b.save.WeightsOnly = "no model_optim_rng.pt has an optimizer (--no-save-optim)"
	}
	sameSaver(b)
	for _, r := range b.ranks {
		if !r.optimizer && optimizers > 0 {
			b.missing(b.domain(model.DomainOptimizer, r.name, ""), CheckShards, r.file, "got no optimizer; want it, as other ranks have it")
		}
		if !r.rng && (r.megatron || states > 0) && b.save.WeightsOnly == "" {
			b.missing(b.domain(model.DomainRNG, r.name, ""), CheckShards, r.file, "%s", noRNG)
		}
	}
}

// noteLightning notes what a file of Lightning has beside its model. Its loader refuses one without
// optimizer_states; that there are no optimizers is an empty list.
func noteLightning(b *builder, z *torch) {
	_, weights := z.get("state_dict")
	states, optimizers := z.get("optimizer_states")
	switch {
	case optimizers:
		z.wantEach(states)
		wantLightningAverages(z, states)
		b.save.hold(model.DomainOptimizer)
	case weights:
		b.save.WeightsOnly = saveWeightsOnly
	}
	if _, ok := z.get("lr_schedulers"); ok {
		b.save.hold(model.DomainScheduler)
	}
}

// wantEach doubts a list of optimizers of which one has no state.
func (t *torch) wantEach(states pickle.Value) {
	if k := states.Kind(); k != pickle.List && k != pickle.Tuple {
		t.wantOptimizer(states, true)
		return
	}
	for _, v := range t.m.Items(states) {
		if !t.holds(v) {
			t.wantOptimizer(v, true)
			return
		}
	}
}

// hasTrainingState reports whether a save of the Trainer has something that it does not write with
// save_only_model.
func hasTrainingState(f *folder) bool {
	return slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool {
		name := e.Name()
		for _, prefix := range []string{"optimizer", "scheduler.pt", "rng_state", deepspeedTag} {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return false
	})
}

// stateKinds are kinds of state that a save has in all saves of a job, or in none.
var stateKinds = []model.DomainKind{model.DomainOptimizer, model.DomainScheduler, model.DomainRNG, model.DomainDataLoader}

func (s *Save) has(kind model.DomainKind) bool {
	return s.holds[kind] || slices.ContainsFunc(s.Domains, func(d Domain) bool { return d.Kind == kind })
}

// judgeState compares the kinds of state that saves have: one that lacks what a save before it has can not take
// the job on from where that one would.
func (s *scan) judgeState() {
	for i := range s.root.Saves {
		save := &s.root.Saves[i]
		if !save.Epoch.OK || save.WeightsOnly != "" || !save.committed() {
			continue
		}
		for _, kind := range stateKinds {
			if by := s.olderWith(save, kind); by != "" && !save.has(kind) {
				s.lacks(save, kind, by)
			}
		}
	}
}

// olderWith is the path of an older save of the same form that has state of a kind; "" for none.
func (s *scan) olderWith(save *Save, kind model.DomainKind) string {
	for i := range s.root.Saves {
		o := &s.root.Saves[i]
		if o.Format == save.Format && o.Epoch.OK && o.Epoch.V < save.Epoch.V && o.has(kind) {
			return o.Path
		}
	}
	return ""
}

func (s *scan) lacks(save *Save, kind model.DomainKind, by string) {
	if kind == model.DomainOptimizer {
		save.WeightsOnly = "it has no state of an optimizer, as " + by + " has"
		return
	}
	save.Domains = append(save.Domains, Domain{Domain: model.Domain{Kind: kind, ID: "state"}, State: model.DomainAbsent})
	s.problem(save, Problem{CheckRetention, Partial, save.Path, fmt.Sprintf("got no state of kind %s; want it, as in %s", kind, by)})
}
