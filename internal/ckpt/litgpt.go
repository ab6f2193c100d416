// SPDX-License-Identifier: Apache-2.0

package ckpt

import "github.com/lockstep-otel/lockstep/internal/model"

// litgpt's layout, of litgpt/pretrain.py: step-NNNNNNNN/lit_model.pth, of Fabric a file, or with FSDP a folder
// of DCP with meta.pt. Fine-tuning leaves weights alone there.
const litgptModel = "lit_model.pth"

func isLitGPT(f *folder) bool { return f.has(litgptModel) || f.has(litgptModel+".lora") }

// rootLitGPT reads a folder of litgpt's. Its loader ("auto") takes the highest step-N with a model.
func rootLitGPT(s *scan, f *folder) bool {
	saves := s.dated(f, stepPrefix)
	if !s.anySave(saves, isLitGPT) {
		return false
	}
	have := s.siblingsOf(paths(saves), func(name string) bool { return name == "hyperparameters.yaml" || name == "model_config.yaml" })
	resume := Resume{By: "the highest step-N with a model"}
	for _, d := range saves {
		if sub, err := s.folderOf(d); err != nil || isLitGPT(sub) {
			resume.Path, resume.Epoch = d.path, model.Some(d.epoch)
		}
	}
	s.readEach(FormatLitGPT, saves, func(b *builder, f *folder) {
		litgptReader{b}.readLitGPT(f)
		b.expectSiblings(f, have, func(string) model.DomainKind { return model.DomainModel })
	})
	s.root.Resumes = append(s.root.Resumes, resume)
	return true
}

func saveLitGPT(s *scan, f *folder) bool {
	if !isLitGPT(f) {
		return false
	}
	epoch, named := numbered(s.name, stepPrefix)
	b := s.newSave(FormatLitGPT, f.path, some(epoch, named))
	litgptReader{b}.readLitGPT(f)
	if !named {
		b.save.Epoch = onlyOwn(&b.save)
	}
	b.done()
	return true
}

// litgptReader reads saves of litgpt.
type litgptReader struct{ *builder }

// readLitGPT reads one save.
func (b litgptReader) readLitGPT(f *folder) {
	name := f.join(litgptModel)
	e, ok := f.find(litgptModel)
	if ok && b.isFolder(f, e) {
		if sub := b.subfolder(name, litgptModel, model.DomainModel); sub != nil {
			countWithin(b.builder, b.within(sub, FormatDCP, litgptModel, readWholeDCP), litgptModel)
			b.litgptState(sub.join(lightningMeta), lightningMeta, false)
		}
	} else {
		b.litgptState(name, litgptModel, true)
	}
	for i := range b.save.counters { // litgpt counts in step_count what its optimizer counts
		b.save.counters[i].every = true
	}
}

// litgptState reads the file that has the counters of the job, and where it has all the optimizer, too.
func (b litgptReader) litgptState(name, id string, all bool) {
	i := b.domain(model.DomainModel, id, name)
	z := b.torchShard(i, name, nil)
	if z == nil {
		return
	}
	if n, ok := z.number("step_count"); ok {
		b.hold(i, n, "step_count", name)
	}
	if v, ok := z.get("optimizer"); ok {
		n, known := z.at(v).innerStep()
		counts(b.builder, "optimizer", innerStep{domain: i, step: n, known: known, file: name})
	}
	_, weights := z.get("model")
	switch {
	case !all || z.hasOptimizer():
	case weights:
		b.save.WeightsOnly = id + " has no optimizer, as of fine-tuning"
	default:
		b.missing(b.domain(model.DomainOptimizer, "optimizer", ""), CheckShards, name, "got weights alone, as of fine-tuning; want the state of the optimizer, too: a resume needs it")
	}
}
