package ckpt

import (
	"io/fs"
	"slices"
	"strings"
)

// families are ways to name what lies in a folder of saves, each of frameworks of its own.
var families = []struct {
	name string
	is   func(name string) bool
}{
	{"Megatron's iter_N", prefixed("iter_")},
	{"torchtitan's step-N", prefixed("step-")},
	{"Hugging Face's checkpoint-N", prefixed(hfPrefix)},
	{"DeepSpeed's global_stepN", prefixed(deepspeedTag)},
	{"Lightning's *.ckpt", func(name string) bool { return strings.HasSuffix(name, lightningExt) }},
	{"DCP's .metadata", func(name string) bool { return name == dcpMetadata }},
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
	if f.has(hfState) && !slices.ContainsFunc(f.entries, entryIs(prefixed(hfPrefix))) {
		return nil
	}
	for _, of := range families {
		if slices.ContainsFunc(f.entries, entryIs(of.is)) {
			there = append(there, of.name)
		}
	}
	return there
}

func entryIs(is func(string) bool) func(fs.DirEntry) bool {
	return func(e fs.DirEntry) bool { return is(e.Name()) }
}
