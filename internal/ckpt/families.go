// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"slices"
	"strings"
)

const deepspeedFamily = "DeepSpeed's global_stepN"

// families are ways to name what lies in a folder of saves, each of frameworks of its own.
var families = []struct {
	name string
	is   func(name string) bool
}{
	{"Megatron's iter_N", prefixed("iter_")},
	{"torchtitan's step-N", prefixed("step-")},
	{"Hugging Face's checkpoint-N", prefixed(hfPrefix)},
	{"verl's global_step_N", prefixed(verlPrefix)},
	{deepspeedFamily, prefixed(deepspeedTag)},
	{"Lightning's *.ckpt", isLightningName},
	{"DCP's .metadata", func(name string) bool { return name == dcpMetadata }},
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

// familiesOf names those that a folder of saves has. Of a folder that is a save itself nothing is
// asked: a framework may keep what another wrote in it.
func familiesOf(f *folder) (there []string) {
	hf := slices.ContainsFunc(f.entries, entryIs(prefixed(hfPrefix)))
	if f.has(hfState) && !hf {
		return nil
	}
	for _, of := range families {
		if hf && of.name == deepspeedFamily {
			continue // Trainer.save_model leaves one beside, with ZeRO 3, of which it never resumes
		}
		if slices.ContainsFunc(f.entries, entryIs(of.is)) {
			there = append(there, of.name)
		}
	}
	return there
}

func entryIs(is func(string) bool) func(fs.DirEntry) bool {
	return func(e fs.DirEntry) bool { return is(e.Name()) }
}
