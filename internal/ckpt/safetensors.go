package ckpt

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/safetensors"
)

const (
	safetensorsIndex  = "model.safetensors.index.json"
	safetensorsSingle = "model.safetensors"
	torchIndex        = "pytorch_model.bin.index.json"
	torchSingle       = "pytorch_model.bin"
)

// saveSafetensors reads a folder of safetensors that is nothing else: a model without an epoch.
func saveSafetensors(s *scan, f *folder) bool {
	if !slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool {
		return strings.HasSuffix(e.Name(), ".safetensors") || e.Name() == safetensorsIndex
	}) {
		return false
	}
	b := s.newSave(FormatSafetensors, f.path, model.Optional[int64]{})
	b.readSafetensors(f)
	if len(b.save.Domains) > 1 {
		b.save.Unproven = "nothing says of which save each file is, so that one of an earlier save would leave no trace"
	}
	b.done()
	return true
}

// readSafetensors reads a model in one file, or in those that an index lists.
func (b *builder) readSafetensors(f *folder) {
	switch {
	case f.has(safetensorsIndex):
		b.readIndex(f, safetensorsIndex, b.safetensorsShard)
	case f.has(safetensorsSingle):
		b.safetensorsShard(f.join(safetensorsSingle), nil)
	default:
		b.looseSafetensors(f)
	}
}

// readIndex reads an index of shards, {"weight_map": {tensor: file}}, and every shard.
func (b *builder) readIndex(f *folder, index string, shard func(name string, m *marker) map[string]bool) {
	name := f.join(index)
	i := b.domain(model.DomainCommit, index, name)
	m := b.shard(i, name, 1, nil)
	if m == nil {
		return
	}
	m.close()
	var doc struct {
		Weights map[string]string `json:"weight_map"`
	}
	if err := b.json(name, &doc); err != nil {
		b.unread(i, CheckTorn, name, err)
		return
	}
	if len(doc.Weights) == 0 {
		b.torn(i, CheckTorn, name, "got no weight_map; want the file of each tensor")
		return
	}
	tensors := map[string][]string{}
	for t, file := range doc.Weights {
		tensors[file] = append(tensors[file], t)
	}
	files := make([]string, 0, len(tensors))
	for file := range tensors {
		files = append(files, file)
	}
	slices.Sort(files)
	mark := &marker{name: name, mod: m.mod, reused: !b.save.Epoch.OK}
	for _, file := range files {
		if !fs.ValidPath(file) || strings.Contains(file, "/") {
			b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, name, "got a shard " + quote(file) + "; want one beside the index"})
			continue
		}
		has := shard(f.join(file), mark)
		for _, t := range tensors[file] {
			if has != nil && !has[t] {
				j := b.domain(model.DomainModel, file, f.join(file))
				b.torn(j, CheckShards, f.join(file), "got no tensor %s; want it: %s names it here", quote(t), index)
				break
			}
		}
	}
}

// safetensorsShard looks at one file; it returns the names of its tensors, nil where they can
// not be read.
func (b *builder) safetensorsShard(name string, m *marker) map[string]bool {
	i := b.domain(model.DomainModel, name[strings.LastIndexByte(name, '/')+1:], name)
	f := b.shard(i, name, 8, m)
	if f == nil {
		return nil
	}
	defer f.close()
	h, err := safetensors.Read(f, f.size, safetensors.Limits{})
	if err != nil {
		b.unread(i, CheckSize, name, err)
		return nil
	}
	names := make(map[string]bool, len(h.Tensors))
	for k := range h.Tensors {
		names[h.Tensors[k].Name] = true
	}
	return names
}

// looseSafetensors reads shards without their index: named "model-00001-of-00004", they say
// themselves how many there are.
func (b *builder) looseSafetensors(f *folder) {
	of := int64(0)
	for _, e := range f.entries {
		if !strings.HasSuffix(e.Name(), ".safetensors") {
			continue
		}
		b.safetensorsShard(f.join(e.Name()), nil)
		if _, n, ok := shardOf(e.Name()); ok {
			of = max(of, n)
		}
	}
	if of == 0 {
		return
	}
	i := b.domain(model.DomainCommit, safetensorsIndex, "")
	b.missing(i, CheckShards, f.join(safetensorsIndex), "got no index; want the one of %d shards", of)
}

// shardOf reads "model-00001-of-00004.safetensors".
func shardOf(name string) (k, n int64, ok bool) {
	parts := strings.Split(strings.TrimSuffix(name, ".safetensors"), "-")
	if len(parts) < 4 || parts[len(parts)-2] != "of" {
		return 0, 0, false
	}
	k, ok1 := number(parts[len(parts)-3])
	n, ok2 := number(parts[len(parts)-1])
	return k, n, ok1 && ok2
}
