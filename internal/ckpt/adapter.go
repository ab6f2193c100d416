// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"maps"
	"path"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Files of an adapter of PEFT. One that is not called "default" lies in a folder of its name.
const (
	adapterConfig      = "adapter_config.json"
	adapterSafetensors = "adapter_model.safetensors"
	adapterTorch       = "adapter_model.bin"
)

func isAdapter(f *folder) bool {
	return f.has(adapterConfig) || f.has(adapterSafetensors) || f.has(adapterTorch)
}

// adapterFolders are the folders of adapters in a save, and those that may be some but can not be looked into.
func adapterFolders(b *builder, f *folder) (all []*folder, failed map[string]error) {
	failed = map[string]error{}
	for _, e := range f.entries {
		if !b.isFolder(f, e) {
			continue
		}
		switch sub, err := b.folder(f.join(e.Name())); {
		case err != nil:
			failed[f.join(e.Name())] = err
		case isAdapter(sub):
			all = append(all, sub)
		}
	}
	return all, failed
}

func hasAdapters(b *builder, f *folder) bool {
	all, _ := adapterFolders(b, f)
	return len(all) > 0
}

// readAdapters reads the adapters that lie in folders. The loader goes by which have weights, and leaves out others
// without a word. seen are those of older saves, by name, and becomes those of this one too.
func readAdapters(b *builder, f *folder, seen map[string]string) {
	there := map[string]bool{}
	all, failed := adapterFolders(b, f)
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		i := b.domain(model.DomainModel, path.Base(name), name)
		b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, name, failed[name].Error()})
	}
	for _, sub := range all {
		name := path.Base(sub.path)
		there[name] = true
		readAdapter(b, sub, name)
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if !there[name] {
			i := b.domain(model.DomainModel, "adapter "+name, "")
			b.missing(i, CheckRetention, f.join(name), "got no such adapter; want it, as in %s", seen[name])
		}
	}
	for name := range there {
		seen[name] = f.path
	}
}

// readAdapter reads one adapter: its configuration and its weights.
func readAdapter(b *builder, f *folder, name string) {
	i := b.domain(model.DomainModel, "adapter "+name, f.path)
	if !f.has(adapterConfig) {
		b.missing(i, CheckShards, f.join(adapterConfig), "got no such file; want it beside the weights of an adapter")
		return
	}
	b.jsonFile(i, f.join(adapterConfig))
	switch {
	case f.has(adapterSafetensors):
		b.safetensorsPart(i, f.join(adapterSafetensors), nil)
	case f.has(adapterTorch):
		wantStorages(b, i, b.torchShard(i, f.join(adapterTorch), nil))
	default:
		b.missing(i, CheckShards, f.path, "got adapter %s without weights; want %s or %s: the loader leaves such an adapter out without a word", quote(name), adapterSafetensors, adapterTorch)
	}
}
