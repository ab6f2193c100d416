// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"slices"
	"strings"
)

const deepspeedFamily = "DeepSpeed's global_stepN"

// family is a way to name saves. Others use a common one, too.
type family struct {
	name   string
	is     func(name string) bool
	common bool
}

// families are ways to name what lies in a folder of saves, each of frameworks of its own. Names that other
// things have, too, as the logs of a rank, count where a folder has state of a job in it.
var families = []family{
	{"Megatron's iter_N", prefixed("iter_"), false},
	{"torchtitan's step-N", prefixed("step-"), false},
	{"Hugging Face's checkpoint-N", prefixed(hfPrefix), false},
	{"verl's global_step_N", prefixed(verlPrefix), false},
	{deepspeedFamily, prefixed(deepspeedTag), false},
	{"Lightning's *.ckpt", isLightningName, false},
	{"DCP's .metadata", func(name string) bool { return name == dcpMetadata }, false},
	{"OLMo-core's stepN", prefixed(olmoPrefix), true},
	{"checkpoint_N of accelerate or Orbax", prefixed("checkpoint_"), true},
	{"step_N of accelerate or torchtune", prefixed("step_"), true},
	{"epoch_N of accelerate or torchtune", prefixed("epoch_"), true},
	{"N of nanotron or Orbax", prefixed(""), true},
	{"Composer's epN-baN", declinedLayouts[0].name.MatchString, true},
	{"Automodel's epoch_N_step_N", declinedLayouts[1].name.MatchString, true},
}

// isLightningName reports whether Lightning calls a save so unless it is told otherwise: other files
// with its ending, as pretrained weights, are no saves of the job.
func isLightningName(name string) bool {
	return strings.HasSuffix(name, lightningExt) && (stepIn.MatchString(name) || lastIn.MatchString(name))
}

func prefixed(prefix string) func(string) bool {
	return func(name string) bool {
		_, ok := numbered(name, prefix)
		return ok
	}
}

// noteFamilies notes that a folder of saves has several, of which one is read.
func (s *scan) noteFamilies(f *folder) {
	if there := s.familiesOf(f); len(there) > 1 {
		s.root.Families = there
	}
}

// familiesOf names those that a folder of saves has. Of a folder that is a save itself nothing is
// asked: a framework may keep what another wrote in it.
func (s *scan) familiesOf(f *folder) (there []string) {
	hf := slices.ContainsFunc(f.entries, entryIs(prefixed(hfPrefix)))
	tag, leftOver := s.leftOverTag(f)
	if f.has(hfState) && !hf {
		return nil
	}
	for _, of := range families {
		if hf && tag != "" && of.name == deepspeedFamily {
			s.noteTag(f, tag)
			if leftOver {
				continue
			}
		}
		if of.common && s.hasState(f, of.is) || !of.common && slices.ContainsFunc(f.entries, entryIs(of.is)) {
			there = append(there, of.name)
		}
	}
	return there
}

// hasState reports whether one of the entries that are called so is a folder with state of a job in it, or what
// may be one. The tags of DeepSpeed, which are called as the user likes, are a family of their own.
func (s *scan) hasState(f *folder, is func(name string) bool) bool {
	var called []fs.DirEntry
	for _, e := range f.entries {
		if is(e.Name()) {
			called = append(called, e)
		}
	}
	return slices.ContainsFunc(called[max(0, len(called)-maxProbes):], func(e fs.DirEntry) bool {
		if !s.isFolder(f, e) {
			return isJobState(e.Name())
		}
		sub, err := s.folder(f.join(e.Name()))
		return err != nil || !isDeepSpeed(sub) && s.findState(sub, maxStateDepth-1) != "" && (f.has(tuneState) || !s.isExport(sub))
	})
}

func entryIs(is func(string) bool) func(fs.DirEntry) bool {
	return func(e fs.DirEntry) bool { return is(e.Name()) }
}
