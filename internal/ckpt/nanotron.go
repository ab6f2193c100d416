// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// nanotron's layout, of src/nanotron/serialize: N/model of one file a tensor and rank, N/optimizer,
// N/lr_scheduler and N/random with a file of each rank that writes one, N/checkpoint_metadata.json, and after a
// barrier latest.txt beside.
const (
	nanotronTracker   = "latest.txt"
	nanotronMeta      = "checkpoint_metadata.json"
	nanotronModel     = "model"
	nanotronOptimizer = "optimizer"
	nanotronScheduler = "lr_scheduler"
	nanotronRandom    = "random"
	nanotronConfig    = "optimizer_config.json"
	maxModelDepth     = 32   // folders of modules within each other
	maxTensorRanks    = 4096 // that one tensor is sharded to: more are not looked for
)

func isNanotron(f *folder) bool {
	return f.has(nanotronMeta) || f.has(nanotronModel) && f.has(nanotronOptimizer) && f.has("model_config.json")
}

// rootNanotron reads a folder of nanotron's. Its loader takes what latest.txt names.
func rootNanotron(s *scan, f *folder) bool {
	saves := s.dated(f, "")
	if !s.anySave(saves, isNanotron) {
		return false
	}
	t := s.tracker(f, nanotronTracker, number)
	have := s.siblingsOf(paths(saves), func(name string) bool {
		return slices.Contains([]string{"config.yaml", "model_config.json", nanotronModel, nanotronOptimizer, nanotronScheduler, nanotronRandom}, name)
	})
	tensors := s.nanotronLists(saves[max(0, len(saves)-maxProbes):])
	s.readEach(FormatNanotron, saves, func(b *builder, f *folder) {
		nanotronReader{b}.readNanotron(f, have, tensors)
		b.point(t)
	})
	s.root.Resumes = append(s.root.Resumes, t.resume(s, f.join(quantity(t.epoch.V)), numberOfSave))
	return true
}

func saveNanotron(s *scan, f *folder) bool {
	if !isNanotron(f) {
		return false
	}
	epoch, named := number(s.name)
	b := s.newSave(FormatNanotron, f.path, some(epoch, named))
	nanotronReader{b}.readNanotron(f, nil, nanotronList{})
	if !named {
		b.save.Epoch = onlyOwn(&b.save)
	}
	b.done()
	return true
}

// files lists the files of a folder and those below, so deep.
func (s *scan) files(path string, depth int) (all []string) {
	f, err := s.folder(path)
	if err != nil || depth == 0 {
		return nil
	}
	for _, e := range f.entries {
		if e.IsDir() { // a link to a folder may lead back
			all = append(all, s.files(f.join(e.Name()), depth-1)...)
		} else if isSafetensors(e) {
			all = append(all, f.join(e.Name()))
		}
		if len(all) > s.opt.Limits.Entries {
			return all[:s.opt.Limits.Entries]
		}
	}
	return all
}

// nanotronReader reads saves of nanotron.
type nanotronReader struct{ *builder }

// readNanotron reads one save; tensors are the files of the model that the saves of its folder have.
func (b nanotronReader) readNanotron(f *folder, have siblings, tensors nanotronList) {
	b.nanotronMetadata(f)
	b.expectSiblings(f, have, func(string) model.DomainKind { return model.DomainModel })
	stems := b.nanotronTensors(f, tensors)
	var steps []innerStep
	var named []string // tensors, by the optimizers
	weights := nanotronWeights(f, have)
	if weights {
		b.save.WeightsOnly = "it has no " + nanotronOptimizer + " and no " + nanotronScheduler + ", and no save beside it has one"
	}
	for _, part := range []struct {
		name   string
		kind   model.DomainKind
		single string // the file that stands for all ranks in newer versions
	}{
		{nanotronOptimizer, model.DomainOptimizer, ""}, {nanotronScheduler, model.DomainScheduler, nanotronScheduler + ".pt"}, {nanotronRandom, model.DomainRNG, ""},
	} {
		if !f.has(part.name) && weights {
			continue
		}
		if !f.has(part.name) {
			b.missing(b.domain(part.kind, part.name, ""), CheckShards, f.join(part.name), "got no such folder; want it: a resume needs it")
			continue
		}
		sub := b.subfolder(f.join(part.name), part.name, part.kind)
		if sub == nil {
			continue
		}
		dims := b.grid(sub, "", part.kind, func(i int, name string) {
			if part.kind == model.DomainOptimizer {
				step, names := b.nanotronOptimizer(i, name)
				steps, named = append(steps, step), append(named, names...)
				return
			}
			z := b.torchShard(i, name, nil)
			if part.kind == model.DomainScheduler {
				countsScheduler(b.builder, i, z)
			}
		})
		switch {
		case dims == nil && part.single != "" && sub.has(part.single):
			i := b.domain(part.kind, part.single, sub.join(part.single))
			countsScheduler(b.builder, i, b.torchShard(i, sub.join(part.single), nil))
		case dims == nil:
			b.missing(b.domain(part.kind, part.name, ""), CheckShards, sub.path, "got no shard; want one of each rank")
		}
		if sub.has(nanotronConfig) {
			b.jsonFile(b.domain(model.DomainOptimizer, nanotronConfig, sub.join(nanotronConfig)), sub.join(nanotronConfig))
		}
	}
	b.agreeSteps(steps)
	if tensors.saves < 2 && len(stems) > 0 {
		b.nanotronAlone(f, stems, named)
	}
	countsAll(b.builder, steps)
}

// nanotronWeights reports whether a job saved its model alone: a save that was cut off before its optimizer has no
// metadata, which come after it.
func nanotronWeights(f *folder, have siblings) bool {
	for _, part := range []string{nanotronOptimizer, nanotronScheduler} {
		if f.has(part) || have[part] != "" {
			return false
		}
	}
	return f.has(nanotronModel) && f.has(nanotronMeta)
}

// nanotronMetadata reads what rank 0 says of the save: its step.
func (b nanotronReader) nanotronMetadata(f *folder) {
	name := f.join(nanotronMeta)
	i := b.domain(model.DomainCommit, nanotronMeta, name)
	x := b.shard(i, name, 1, nil)
	if x == nil {
		return
	}
	x.close()
	var doc struct {
		Metas struct {
			Step *int64 `json:"last_train_step"`
		} `json:"metas"`
	}
	switch err := b.json(name, &doc); {
	case err != nil:
		b.unread(i, CheckTorn, name, err)
	case doc.Metas.Step == nil:
		b.torn(i, CheckWitness, name, "got no last_train_step; want one")
	default:
		b.hold(i, *doc.Metas.Step, "last_train_step", name)
	}
}

// gridOf writes the numbers of ranks of a shard's dimensions.
func gridOf(ds []dimension) string {
	var out strings.Builder
	for _, d := range ds {
		out.WriteString(d.name + quantity(d.of) + " ")
	}
	return out.String()
}
