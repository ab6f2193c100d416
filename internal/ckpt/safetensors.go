// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"regexp"
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

// saveSafetensors reads a folder of safetensors that is nothing else: where it has anything that is state
// of a job, it is in doubt. Only its files can say an epoch.
func saveSafetensors(s *scan, f *folder) bool {
	if !slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool {
		return isSafetensors(e) || e.Name() == safetensorsIndex
	}) {
		return false
	}
	b := s.newSave(FormatSafetensors, f.path, model.Optional[int64]{})
	b.save.Export, b.save.WeightsOnly = true, "it is a model in safetensors, with nothing of a job"
	b.weighed = true
	b.readSafetensors(f)
	b.besideSafetensors(f)
	b.save.Epoch = onlyOwn(&b.save)
	b.unnamedFiles(f)
	b.stateBeside(f)
	b.done()
	return true
}

func isSafetensors(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), ".safetensors") }

// besideSafetensors reads the files that lie beside a model's. Where an index lists the shards, one that
// it does not list says that the index may be of another save.
func (b *builder) besideSafetensors(f *folder) {
	for _, e := range f.entries {
		of := model.Domain{Kind: model.DomainModel, ID: e.Name()}
		if _, read := b.at[of]; read || !isSafetensors(e) {
			continue
		}
		name := f.join(e.Name())
		b.safetensorsShard(name, nil)
		if i, ok := b.at[of]; ok && f.has(safetensorsIndex) {
			b.doubt(i, model.DomainTentative, Problem{CheckShards, Suspect, name, "got a file that " + safetensorsIndex + " does not list; want none: it is of another save, or the index is"})
		}
	}
}

// unnamedFiles: what lies in one file is of one save. Of several each must say its step, and an index how
// many there are.
func (b *builder) unnamedFiles(f *folder) {
	if len(b.save.Domains) < 2 {
		return
	}
	b.unnamed()
	if b.save.Unproven == "" && !f.has(safetensorsIndex) {
		b.save.Unproven = "no " + safetensorsIndex + " says how many files there are, so that one that is missing would leave no trace"
	}
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
		Weights  map[string]string `json:"weight_map"`
		Metadata json.RawMessage   `json:"metadata"`
	}
	if err := b.json(name, &doc); err != nil {
		b.unread(i, CheckTorn, name, err)
		return
	}
	if len(doc.Weights) == 0 {
		b.torn(i, CheckTorn, name, "got no weight_map; want the file of each tensor")
		return
	}
	b.holdStep(i, indexMetadata(doc.Metadata), name)
	tensors := map[string][]string{}
	for t, file := range doc.Weights {
		tensors[file] = append(tensors[file], t)
	}
	files := make([]string, 0, len(tensors))
	for file := range tensors {
		files = append(files, file)
	}
	slices.Sort(files)
	// Of safetensors alone nothing is confirmed whose shards do not each say their step. An index of an
	// earlier save that lists just what they hold is as good as theirs, so that equal times do no harm.
	alone := b.save.Format == FormatSafetensors
	mark := &marker{name: name, mod: m.mod, reused: !b.save.Epoch.OK && !alone}
	for _, file := range files {
		if !fs.ValidPath(file) || strings.Contains(file, "/") {
			b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, name, "got a shard " + quote(file) + "; want one beside the index"})
			continue
		}
		has := shard(f.join(file), mark)
		if has == nil {
			continue
		}
		j := b.domain(model.DomainModel, file, f.join(file))
		for _, t := range tensors[file] {
			if !has[t] {
				b.torn(j, CheckShards, f.join(file), "got no tensor %s; want it: %s names it here", quote(t), index)
				break
			}
		}
		if alone && len(has) > len(tensors[file]) {
			b.doubt(j, model.DomainTentative, Problem{CheckShards, Suspect, f.join(file), fmt.Sprintf("got %d tensors; want the %d that %s lists here: it is of another save, or the index is", len(has), len(tensors[file]), index)})
		}
	}
}

// indexMetadata is what an index says beside its weight_map, each value as text.
func indexMetadata(b json.RawMessage) map[string]string {
	var raw map[string]json.RawMessage
	if json.Unmarshal(b, &raw) != nil {
		return nil // it is another's
	}
	texts := make(map[string]string, len(raw))
	for key, value := range raw {
		texts[key] = strings.Trim(string(value), `"`)
	}
	return texts
}

// safetensorsShard looks at one file; it returns the names of its tensors, nil where they can
// not be read.
func (b *builder) safetensorsShard(name string, m *marker) map[string]bool {
	return b.safetensorsPart(b.domain(model.DomainModel, name[strings.LastIndexByte(name, '/')+1:], name), name, m)
}

// safetensorsPart is safetensorsShard for a domain that is known.
func (b *builder) safetensorsPart(i int, name string, m *marker) map[string]bool {
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
	b.holdStep(i, h.Metadata, name)
	wantTensors(b, i, name, h)
	names := make(map[string]bool, len(h.Tensors))
	for k := range h.Tensors {
		names[h.Tensors[k].Name] = true
	}
	return names
}

// stepKeys are the keys of __metadata__ that name the step of the job. Others, such as epoch, count
// something else.
var stepKeys = []string{"step", "global_step", "global_steps", "iteration"}

// holdStep notes the step that the metadata of a file says, in decimal digits. Keys that
// differ, or a number that 64 bits do not hold, put the file in doubt: it may be of either step.
func (b *builder) holdStep(i int, metadata map[string]string, name string) {
	var step model.Optional[int64]
	by := ""
	for _, key := range stepKeys {
		text, ok := metadata[key]
		n, isNumber := number(text)
		switch {
		case !ok, !isNumber && !overlong(text, ""):
		case !isNumber, step.OK && step.V != n:
			b.doubt(i, model.DomainTentative, Problem{CheckWitness, Unreadable, name, "got " + key + " " + quote(text) + " in its metadata; want one step, of at most 64 bits"})
			return
		default:
			step, by = model.Some(n), key
		}
	}
	if step.OK {
		b.hold(i, step.V, by, name)
	}
}

// looseSafetensors reads shards without their index: named "model-00001-of-00004", they say
// themselves how many there are.
func (b *builder) looseSafetensors(f *folder) {
	of := int64(0)
	for _, e := range f.entries {
		if !isSafetensors(e) {
			continue
		}
		b.safetensorsShard(f.join(e.Name()), nil)
		if n, ok := shardOf(e.Name()); ok {
			of = max(of, n, 1) // "of 0" is one all the same
		}
	}
	if of == 0 {
		return
	}
	i := b.domain(model.DomainCommit, safetensorsIndex, "")
	b.missing(i, CheckShards, f.join(safetensorsIndex), "got no index; want the one of %d shards", of)
}

// ofHowMany is how a shard says which it is, and of how many: "model-00001-of-00004.safetensors",
// "model_1-of-4.safetensors".
var ofHowMany = regexp.MustCompile(`\d+-of-(\d+)`)

// shardOf reads of how many a shard is one.
func shardOf(name string) (n int64, ok bool) {
	at := ofHowMany.FindStringSubmatch(name)
	if at == nil {
		return 0, false
	}
	n, ok = number(at[1])
	if !ok {
		n = math.MaxInt64 // more digits than any number of files has
	}
	return n, true
}

// safetensorsAs looks at one file as a domain that the caller names. It returns what the metadata of the file says.
func (b *builder) safetensorsAs(i int, name string) map[string]string {
	f := b.shard(i, name, 8, nil)
	if f == nil {
		return nil
	}
	defer f.close()
	h, err := safetensors.Read(f, f.size, safetensors.Limits{})
	if err != nil {
		b.unread(i, CheckSize, name, err)
		return nil
	}
	b.holdStep(i, h.Metadata, name)
	return h.Metadata
}
