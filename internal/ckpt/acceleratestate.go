// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// accelerated gathers one folder of save_state.
type accelerated struct {
	*builder
	f     *folder
	world int64 // processes; 0 where nothing says
	ranks []int64
	found map[model.DomainKind]bool

	optimizers, schedulers map[string]counter // by what pairs them
	shards                 map[string][]counter
	batches                model.Optional[int64]
	bare                   []innerStep // optimizers without averages
	stateful               bool        // an optimizer has state
}

// readAccelerate reads one folder of save_state; siblings are what others of its job have.
func readAccelerate(b *builder, f *folder, have siblings) {
	a := &accelerated{builder: b, f: f, found: map[model.DomainKind]bool{}, optimizers: map[string]counter{}, schedulers: map[string]counter{}, shards: map[string][]counter{}}
	a.weighed = !slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool {
		return b.isFolder(f, e) && (accelerateFSDP.MatchString(e.Name()) || accelerateDeepSpeed.MatchString(e.Name()))
	})
	a.models = &severalModels{}
	if f.has(safetensorsIndex) {
		a.found[model.DomainModel] = true
		b.readIndex(f, safetensorsIndex, func(name string, _ *marker) map[string]bool { return b.safetensorsShard(name, nil) })
	}
	for _, e := range f.entries {
		if b.isFolder(f, e) {
			a.folder(e.Name())
		} else {
			a.file(e.Name())
		}
	}
	a.wantModels(have)
	a.pairCounts()
	a.wantAverages()
	common := maps.Clone(have)
	maps.DeleteFunc(common, func(name, _ string) bool { return accelerateRNG.MatchString(name) }) // a job may go on with fewer ranks
	b.expectSiblings(f, common, func(name string) model.DomainKind {
		kind, known := accelerateKind(name)
		if !known {
			kind = model.DomainModel // a folder of a model
		}
		a.found[kind] = true // it is named as missing here
		return kind
	})
	for _, want := range []struct {
		kind model.DomainKind
		name string
	}{{model.DomainModel, safetensorsSingle}, {model.DomainOptimizer, "optimizer.bin"}} {
		if want.kind == model.DomainOptimizer && a.weightsOnly() {
			b.save.WeightsOnly = "it has random states and no optimizer or scheduler, and no save beside it has one"
		} else if !a.found[want.kind] {
			b.missing(b.domain(want.kind, want.name, ""), CheckShards, f.join(want.name), "got no such file, nor another form of it; want one: a resume needs it")
		}
	}
	a.holes()
	a.random(have)
}

// weightsOnly reports whether the job gave no optimizer to accelerate: a save that was cut off has no random states,
// which come last.
func (a *accelerated) weightsOnly() bool {
	return a.found[model.DomainModel] && len(a.ranks) > 0 && !a.found[model.DomainOptimizer] && !a.found[model.DomainScheduler]
}

// file reads one file of save_state.
func (a *accelerated) file(entry string) {
	kind, known := accelerateKind(entry)
	if !known || entry == safetensorsIndex {
		return
	}
	name := a.f.join(entry)
	switch at := accelerateRNG.FindStringSubmatch(entry); {
	case at != nil:
		n, _ := number(at[1])
		a.ranks = append(a.ranks, n)
		if z := a.torchShard(a.domain(kind, rankID(n), name), name, nil); n == 0 {
			a.countBatches(z)
		}
	case strings.HasSuffix(entry, ".safetensors"):
		a.found[kind] = true
		a.safetensorsShard(name, nil)
	case accelerateOptimizer.MatchString(entry):
		a.found[kind] = true
		a.countOptimizer(entry, a.domain(kind, entry, name), name)
	case accelerateScheduler.MatchString(entry):
		a.found[kind] = true
		a.countScheduler(entry, a.domain(kind, entry, name), name)
	default:
		a.found[kind] = a.found[kind] || !accelerateCustom.MatchString(entry)
		i := a.domain(kind, entry, name)
		if z := a.torchShard(i, name, nil); kind == model.DomainModel {
			wantStorages(a.builder, i, z)
		}
	}
}

// folder reads one folder of save_state: of FSDP or DeepSpeed, or a model that a script's hook saved.
func (a *accelerated) folder(entry string) {
	sub := a.subfolder(a.f.join(entry), entry, model.DomainModel)
	switch {
	case sub == nil:
	case accelerateFSDP.MatchString(entry):
		kind, _ := accelerateKind(entry)
		a.found[kind] = true
		read := (*builder).readDCP
		if kind == model.DomainOptimizer {
			read = readOptimizerDCP
		}
		if inner := a.within(sub, FormatDCP, entry, read); kind == model.DomainOptimizer {
			a.countShards(entry, inner)
		}
	case isDeepSpeed(sub) || accelerateDeepSpeed.MatchString(entry):
		a.found[model.DomainModel], a.found[model.DomainOptimizer] = true, true
		a.deepspeedTag(sub, entry)
	case strings.HasPrefix(entry, megatronPrefix):
		a.found[model.DomainModel], a.found[model.DomainOptimizer] = true, true
		a.save.Unproven = entry + " is of Megatron-LM, which is not read within a save of accelerate; give a folder with " + entry + " and its tracker alone"
	case slices.ContainsFunc(sub.entries, isSafetensors):
		a.found[model.DomainModel], a.models.holds = true, true
		a.within(sub, FormatSafetensors, entry, readPipeline)
	}
}

// readPipeline reads a model of diffusers or transformers: shards by an index of any name, or files.
func readPipeline(b *builder, f *folder) {
	const suffix = ".index.json"
	shard := func(name string, _ *marker) map[string]bool { return b.safetensorsShard(name, nil) }
	for _, e := range f.entries {
		switch name := e.Name(); {
		case strings.HasSuffix(name, ".safetensors"+suffix):
			b.readIndex(f, name, shard)
		case isSafetensors(e):
			b.safetensorsShard(f.join(name), nil)
		case strings.HasSuffix(name, "config.json"):
			b.jsonFile(b.domain(model.DomainModel, name, f.join(name)), f.join(name))
		}
	}
	if n, ok := manyShards(f); ok && !slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), suffix) }) {
		b.missing(b.domain(model.DomainCommit, "index", ""), CheckShards, f.path, "got no index; want the one of %d shards", n)
	}
}

// manyShards reads of how many shards a file of the folder is one, where one says so.
func manyShards(f *folder) (n int64, ok bool) {
	for _, e := range f.entries {
		if of, is := shardOf(e.Name()); is && isSafetensors(e) {
			n, ok = max(n, of), true
		}
	}
	return n, ok
}

// deepspeedTag reads the tag of a fixed name that DeepSpeed saves under. The steps that it counts are those
// of the optimizer, and need not be the number of the save.
func (a *accelerated) deepspeedTag(f *folder, entry string) {
	inner := a.newPart(FormatDeepSpeed, f.path, model.Optional[int64]{})
	inner.readDeepSpeed(f)
	if onlyOwn(&inner.save).OK {
		for i := range inner.save.Domains {
			d := &inner.save.Domains[i]
			d.Own, d.Epoch = false, model.Optional[int64]{}
		}
	}
	inner.save.Unproven = "" // the folder around it has the name of the save
	if inner.save.World.OK && a.world == 0 {
		a.world = inner.save.World.V
	}
	a.take(inner, entry)
}

// random looks for random states of ranks that are missing. The user or DeepSpeed's world gives the number
// of ranks; else the saves beside it do. Accelerate's loader continues without them.
func (a *accelerated) random(have siblings) {
	slices.Sort(a.ranks)
	missing := func(r int64) {
		a.missing(a.domain(model.DomainRNG, rankID(r), ""), CheckShards, a.f.join("random_states_"+quantity(r)+".pkl"), "got no such file; want one of each rank")
	}
	if a.opt.WorldSize > 0 {
		a.world = a.opt.WorldSize
	}
	switch {
	case a.world > 0:
		given := a.opt.WorldSize
		a.opt.WorldSize = a.world
		a.expectRanks(a.ranks, func(r int64) int { return a.domain(model.DomainRNG, rankID(r), "") })
		a.opt.WorldSize = given
	case len(a.ranks) == 0:
		missing(0)
	default:
		a.contiguous(a.ranks, missing)
		a.fewer(have)
	}
}

// fewer doubts a save with random states of fewer ranks than another of its folder.
func (a *accelerated) fewer(have siblings) {
	most, path := a.ranks[len(a.ranks)-1], ""
	for name, by := range have {
		if at := accelerateRNG.FindStringSubmatch(name); at != nil {
			if n, ok := number(at[1]); ok && n > most {
				most, path = n, by
			}
		}
	}
	if path == "" {
		return
	}
	i := a.domain(model.DomainRNG, rankID(most), "")
	a.doubt(i, model.DomainTentative, Problem{
		CheckShards, Suspect, a.f.join("random_states_" + quantity(most) + ".pkl"),
		"got no such file; want it, as in " + path + ": a rank's part was lost, or the job had fewer ranks then, which --world-size " + quantity(a.ranks[len(a.ranks)-1]+1) + " would say",
	})
}
