// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"regexp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Names of accelerate's save_state: src/accelerate/checkpointing.py and utils/constants.py. Each process
// writes its random states; what is the same on all, the main process writes, in no order that commits it.
var (
	accelerateModel     = regexp.MustCompile(`^(?:model|pytorch_model)(?:_\d+)?\.(safetensors|bin)$|^pytorch_model_fsdp(?:_\d+)?\.bin$|^(?:pytorch_lora_weights|adapter_model)\.(safetensors|bin)$`)
	accelerateOptimizer = regexp.MustCompile(`^optimizer(?:_\d+)?\.bin$`)
	accelerateScheduler = regexp.MustCompile(`^scheduler(?:_\d+)?\.bin$`)
	accelerateData      = regexp.MustCompile(`^(?:sampler|dl_state_dict)(?:_\d+)?\.bin$`)
	accelerateCustom    = regexp.MustCompile(`^(?:custom_checkpoint_\d+\.pkl|scaler\.pt)$`)
	accelerateRNG       = regexp.MustCompile(`^random_states_(\d+)\.pkl$`)
	accelerateFSDP      = regexp.MustCompile(`^(pytorch_model_fsdp|optimizer)_\d+$`)
	accelerateDeepSpeed = regexp.MustCompile(`^pytorch_model(?:_\d+)?$`)
)

// accelerateNames are how folders of save_state are called, and which of several a loader takes: load_state
// and the training scripts of diffusers the highest. Of the others, of its examples, nothing says which.
var accelerateNames = []struct{ prefix, by string }{
	{"checkpoint_", "the highest checkpoint_N"}, {hfPrefix, "the highest checkpoint-N"}, {stepOf, ""}, {"epoch_", ""},
}

// stepOf is the prefix of a name that has the step, as accelerate's examples write it.
const stepOf = "step_"

// accelerateProject is the folder below a project's in which automatic_checkpoint_naming saves.
const accelerateProject = "checkpoints"

// isAccelerate reports whether a folder holds a save of save_state, and none of the Trainer, which saves by
// accelerate under other names.
func isAccelerate(f *folder) bool {
	if f.has(hfState) || f.has(hfArguments) {
		return false
	}
	return slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool { return accelerateRNG.MatchString(e.Name()) }) ||
		f.has("optimizer.bin") && (f.has("scheduler.bin") || f.has("sampler.bin"))
}

// rootAccelerate reads a folder of save_state's folders.
func rootAccelerate(s *scan, f *folder) bool {
	for _, of := range accelerateNames {
		saves := s.dated(f, of.prefix)
		if !s.anySave(saves, isAccelerate) || s.anySave(saves, func(f *folder) bool { return f.has(hfState) }) {
			continue
		}
		have := s.siblingsOf(paths(saves), func(name string) bool { _, ok := accelerateKind(name); return ok })
		s.modelFolders(paths(saves), have)
		s.readEach(FormatAccelerate, saves, func(b *builder, f *folder) { readAccelerate(b, f, have) })
		if of.by != "" {
			s.highest(saves, of.by)
		}
		return true
	}
	return false
}

// modelFolders adds the folders of models that the saves have: a script's hook names them.
func (s *scan) modelFolders(paths []string, have siblings) {
	for _, p := range paths {
		f, err := s.folder(p)
		if err != nil {
			continue
		}
		s.eachFolder(f, func(e fs.DirEntry) {
			if sub, err := s.folder(f.join(e.Name())); err == nil && have[e.Name()] == "" && slices.ContainsFunc(sub.entries, isSafetensors) {
				have[e.Name()] = p
			}
		})
	}
}

// rootAccelerateProject reads the folder of a project, which has its saves in a folder below.
func rootAccelerateProject(s *scan, f *folder) bool {
	if e, ok := f.find(accelerateProject); !ok || !s.isFolder(f, e) {
		return false
	}
	sub, err := s.folder(f.join(accelerateProject))
	if err != nil || !rootAccelerate(s, sub) {
		return false
	}
	s.noteFamilies(sub)
	return true
}

// saveAccelerate reads one folder of save_state.
func saveAccelerate(s *scan, f *folder) bool {
	if !isAccelerate(f) {
		return false
	}
	b := s.newSave(FormatAccelerate, f.path, model.Optional[int64]{})
	for _, of := range accelerateNames {
		if n, ok := numbered(s.name, of.prefix); ok {
			b.save.Epoch = model.Some(n)
		}
	}
	readAccelerate(b, f, nil)
	b.done()
	return true
}

// accelerateKind is what an entry of save_state is of.
func accelerateKind(name string) (model.DomainKind, bool) {
	switch {
	case accelerateModel.MatchString(name), name == safetensorsIndex, accelerateDeepSpeed.MatchString(name):
		return model.DomainModel, true
	case accelerateOptimizer.MatchString(name):
		return model.DomainOptimizer, true
	case accelerateScheduler.MatchString(name):
		return model.DomainScheduler, true
	case accelerateData.MatchString(name):
		return model.DomainDataLoader, true
	case accelerateRNG.MatchString(name):
		return model.DomainRNG, true
	case accelerateCustom.MatchString(name):
		return model.DomainPart, true // of which kind, the script knows
	}
	if at := accelerateFSDP.FindStringSubmatch(name); at != nil {
		if at[1] == "optimizer" {
			return model.DomainOptimizer, true
		}
		return model.DomainModel, true
	}
	return "", false
}
