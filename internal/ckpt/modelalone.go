// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"regexp"
	"slices"
)

// FormatModel is a model alone in a folder that is called as a save, of which the writer is not known: what
// accelerate's save_model leaves.
const FormatModel Format = "model"

const modelAlone = "it is a model alone, of which the writer is not known: it has no trainer_state.json, training_args.bin, optimizer or random states, and a Trainer that was cut off after its model leaves the same; to resume, give a save that has an optimizer, and to begin from these weights, have a new job load them as its model"

// shardOfTorch is one of several files of torch.save with weights.
var shardOfTorch = regexp.MustCompile(`^pytorch_model-\d+-of-\d+\.bin$`)

// isModelAlone reports whether a folder holds weights, and nothing of a job. With the configuration of the model
// or of an adapter it is what a Trainer writes first.
func isModelAlone(s *scan, f *folder) bool {
	if f.has("config.json") || f.has(adapterConfig) {
		return false
	}
	weights := slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool { return isWeights(e.Name()) || isSafetensors(e) })
	return weights && !slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool {
		return isJobState(e.Name()) && !isWeights(e.Name()) || s.isFolder(f, e)
	})
}

// isWeights reports whether a file holds weights by a name that is a model's alone.
func isWeights(name string) bool {
	return slices.Contains([]string{safetensorsSingle, safetensorsIndex, torchSingle, torchIndex, adapterSafetensors, adapterTorch}, name) ||
		shardOfTorch.MatchString(name)
}

// rootModelAlone reads a folder of models alone, each called checkpoint-N. What a resume takes of them, nothing says.
func rootModelAlone(s *scan, f *folder) bool {
	saves := s.dated(f, hfPrefix)
	for _, d := range saves {
		if sub, err := s.folderOf(d); err != nil || !isModelAlone(s, sub) {
			return false
		}
	}
	s.readEach(FormatModel, saves, readModelAlone)
	return len(saves) > 0
}

// saveModelAlone reads one that is called so itself.
func saveModelAlone(s *scan, f *folder) bool {
	epoch, named := numbered(s.name, hfPrefix)
	if !named || !isModelAlone(s, f) {
		return false
	}
	b := s.newSave(FormatModel, f.path, some(epoch, named))
	readModelAlone(b, f)
	b.done()
	return true
}

func readModelAlone(b *builder, f *folder) {
	b.save.Unproven = modelAlone
	h := &hf{builder: b, f: f}
	h.documents()
	h.model()
	h.forms()
}
