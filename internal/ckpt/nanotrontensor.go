// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// nanotronList lists the files of the models in the saves of a folder.
type nanotronList struct {
	of    map[string]string // by name in the save, the path of a save that has it
	saves int               // that have any
}

func (s *scan) nanotronLists(saves []dated) nanotronList {
	list := nanotronList{of: map[string]string{}}
	for _, d := range saves {
		files := s.files(d.path+"/"+nanotronModel, maxModelDepth)
		if len(files) > 0 {
			list.saves++
		}
		for _, file := range files {
			if name := strings.TrimPrefix(file, d.path+"/"); list.of[name] == "" {
				list.of[name] = d.path
			}
		}
	}
	return list
}

// nanotronStem is the name of a tensor: that of a file without its ranks.
func nanotronStem(name string) string {
	if at := ofDimension.FindStringIndex(name); at != nil {
		return strings.TrimRight(name[:at[0]], "_")
	}
	return strings.TrimSuffix(name, ".safetensors")
}

// nanotronTensors reads the model: of each tensor that is sharded every rank's file must be there, and each
// tensor that the siblings have, with the same ranks where their numbers are the same. It returns the tensors.
func (b nanotronReader) nanotronTensors(f *folder, tensors nanotronList) (stems map[string]bool) {
	files := b.files(f.join(nanotronModel), maxModelDepth)
	if len(files) == 0 {
		b.missing(b.domain(model.DomainModel, nanotronModel, ""), CheckShards, f.join(nanotronModel), "got no file of safetensors; want one of each tensor")
		return nil
	}
	there, grids := map[string]bool{}, map[string]bool{}
	stems = map[string]bool{}
	for _, file := range files {
		name := strings.TrimPrefix(file, f.path+"/")
		there[name] = true
		stems[nanotronStem(name)] = true
	}
	want := func(name, why string) {
		if !there[name] {
			b.missing(b.domain(model.DomainModel, name, ""), CheckShards, f.join(name), "got no such file; want it, as %s", why)
		}
	}
	limit := min(int64(b.opt.Limits.Domains), maxTensorRanks)
	cuts := nanotronCuts{}
	looked := map[string]bool{} // the first file of each set of ranks
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if b.lost || b.ctx.Err() != nil {
			break
		}
		i := b.domain(model.DomainModel, name, f.join(name))
		cuts.note(b.builder, i, f.join(name), b.safetensorsAs(i, f.join(name)))
		ds := dimensionsOf(name)
		grids[gridOf(ds)] = true
		varies := func(d dimension) bool { return d.name != "pp" }
		first := firstPeer(name, ds, varies)
		if !looked[first] {
			looked[first] = true
			peers(name, ds, varies, limit, func(peer string) { want(peer, name+" says") })
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tensors.of)) {
		if grids[gridOf(dimensionsOf(name))] || !stems[nanotronStem(name)] {
			want(name, "in "+tensors.of[name])
		}
	}
	return stems
}

// firstPeer is the name of rank 0 of those that a name implies, in the dimensions that vary.
func firstPeer(name string, ds []dimension, varies func(dimension) bool) string {
	var out strings.Builder
	from := 0
	for _, d := range ds {
		if varies(d) {
			out.WriteString(name[from:d.from] + "0")
			from = d.to
		}
	}
	return out.String() + name[from:]
}

// nanotronOptimizer reads a shard of the optimizer: how many steps it counts, and which tensors it names.
func (b nanotronReader) nanotronOptimizer(i int, name string) (step innerStep, tensors []string) {
	step = innerStep{domain: i, file: name}
	z := b.torchShard(i, name, nil)
	if z == nil {
		return step, nil
	}
	z.wantOptimizer(z.root, true)
	step.step, step.known = z.innerStep()
	if names, ok := z.get("names"); ok {
		for k, v := range z.m.Items(names) {
			if text := z.m.Text(v); k%2 == 1 && len(text) > 0 {
				tensors = append(tensors, string(text))
			}
		}
	}
	return step, tensors
}

// nanotronConfigured lists the tensors that the configuration of ZeRO's optimizer names, and of how many pipeline
// stages the save is: rank 0 writes it, and knows those of the first alone.
func (b nanotronReader) nanotronConfigured(f *folder) (tensors []string, stages int64) {
	var doc struct {
		Parallelism struct {
			Stages string `json:"pp_size"`
		} `json:"parallelism"`
		Configs struct {
			Shapes  map[string]any `json:"orig_param_shapes"`
			Offsets map[string]any `json:"param_name_to_dp_rank_offsets"`
		} `json:"configs"`
	}
	if b.json(f.join(nanotronOptimizer+"/"+nanotronConfig), &doc) != nil {
		return nil, 0
	}
	stages, ok := number(doc.Parallelism.Stages)
	names := doc.Configs.Shapes
	if len(names) == 0 {
		names = doc.Configs.Offsets
	}
	if !ok || len(names) == 0 {
		return nil, 0
	}
	return slices.Collect(maps.Keys(names)), stages
}

// nanotronAlone judges the tensors of a save that no other save stands beside: what the optimizers name must
// be there. Where they name none, nothing says which tensors there must be.
func (b nanotronReader) nanotronAlone(f *folder, stems map[string]bool, named []string) {
	if len(named) == 0 {
		var stages int64
		if named, stages = b.nanotronConfigured(f); stages > 1 {
			b.save.Unproven = f.path + " is the only save, and " + nanotronConfig + " names those of the first of " + quantity(stages) + " pipeline stages alone, so that a tensor of another that is missing would leave no trace; load the save with nanotron"
			return
		}
	}
	if len(named) == 0 {
		b.save.Unproven = f.path + " is the only save, and nothing in it says which tensors the model has, so that one that is missing would leave no trace; load the save with nanotron"
		return
	}
	for _, name := range slices.Sorted(slices.Values(named)) {
		at := strings.LastIndexByte(name, '.') + 1
		stem := nanotronModel + "/" + strings.ReplaceAll(name[:at], ".", "/") + "model_" + name[at:]
		if !stems[stem] {
			b.save.Unproven = f.join(stem) + " has no file, and an optimizer names it: the tensor was lost, or is tied to another; load the save with nanotron"
			return
		}
	}
}
