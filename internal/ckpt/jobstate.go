// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"slices"
	"strings"
)

// Names of what is state of a job, and not of a model: of the Trainer, accelerate, DeepSpeed, and of files
// that are being written.
var (
	stateEndings   = []string{".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt", ".distcp", ".tmp", ".part"}
	stateBeginning = []string{"optimizer", "scheduler", "rng_state", "random_states", "scaler", "dataloader", "trainer_state", "global_step", "checkpoint-", "zero_pp_rank"}
	describes      = []string{"config.json", ".py", ".md"} // a model's scheduler_config.json is none
)

func isJobState(name string) bool {
	name = strings.ToLower(name)
	ends := func(s string) bool { return strings.HasSuffix(name, s) }
	begins := func(s string) bool { return strings.HasPrefix(name, s) }
	switch {
	case slices.ContainsFunc(stateEndings, ends), name == torchIndex, name == deepspeedLatest, strings.Contains(name, ".tmp"), begins("tmp"):
		return true
	case slices.ContainsFunc(describes, ends):
		return false
	}
	return slices.ContainsFunc(stateBeginning, begins)
}

// stateBeside doubts a model that lies among state of a job. Nothing says that the job had finished
// writing it, and none of it is looked at.
func (b *builder) stateBeside(f *folder) {
	what := b.findState(f, maxStateDepth)
	if what == "" {
		return
	}
	if b.save.Unproven == "" {
		b.save.Unproven = what + " lies there, which is no part of a model in safetensors, and nothing commits both"
	}
	b.problem(&b.save, Problem{CheckUnfinished, Suspect, what, "got it in a folder of safetensors; want what is of a model alone: the save of a job is under way there, was cut off, or is of a format that is not known"})
}

// maxStateDepth is how deep folders in a folder of safetensors are looked through.
const maxStateDepth = 3

// findState returns the first thing in a folder that is state of a job, or that could be; "" where there is
// none. Hidden folders, in which tools keep their own, are no part of a save.
func (s *scan) findState(f *folder, depth int) string {
	top := depth == maxStateDepth
	if f.cut {
		return f.path
	}
	for _, e := range f.entries {
		name := f.join(e.Name())
		folder := s.isFolder(f, e)
		switch {
		case top && !folder && isSafetensors(e): // these were looked at
		case isJobState(e.Name()), !folder && isSafetensors(e):
			return name
		case folder && !strings.HasPrefix(e.Name(), "."):
			if what := s.stateIn(name, depth-1); what != "" {
				return what
			}
		}
	}
	return ""
}

// stateIn is findState of a folder by its path. What can not be looked into may be state.
func (s *scan) stateIn(name string, depth int) string {
	if depth == 0 {
		return name
	}
	sub, err := s.folder(name)
	if err != nil {
		return name
	}
	return s.findState(sub, depth)
}
