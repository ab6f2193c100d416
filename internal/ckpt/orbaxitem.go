// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ocdbt"
)

func orbaxKind(item string) model.DomainKind {
	switch {
	case strings.Contains(item, "iter"), strings.Contains(item, "data"):
		return model.DomainDataLoader
	case strings.Contains(item, "opt"):
		return model.DomainOptimizer
	case strings.Contains(item, "rng"):
		return model.DomainRNG
	}
	return model.DomainModel
}

// orbaxItem looks at one item: arrays in OCDBT, JSON, or a file of each process. Of an item of
// another kind nothing says which files it has.
func (b *builder) orbaxItem(f *folder, item, handler string) {
	i := b.domain(orbaxKind(item), item, f.path)
	proven := false
	for _, e := range f.entries {
		name := f.join(e.Name())
		isJSON := e.Name() == "metadata" && strings.Contains(handler, "Json")
		switch {
		case e.Name() == orbaxSuccess:
			b.orbaxMarker(i, f)
		case strings.HasPrefix(e.Name(), ocdbtProcess):
			b.orbaxProcess(i, name)
		case isJSON, orbaxNames(e):
			b.jsonFile(i, name)
			proven = proven || isJSON
		}
	}
	processes := orbaxProcesses(f)
	switch {
	case f.has(ocdbt.Manifest):
		b.ocdbt(i, f.path)
		proven = true
		if !f.has("_METADATA") {
			b.missing(i, CheckShards, f.join("_METADATA"), "got no such file; want it: without it nothing says what the arrays are of")
		}
	case f.has("d") || len(processes) > 0:
		b.missing(i, CheckUnfinished, f.join(ocdbt.Manifest), "got no manifest; want the one that the parts of all processes are merged in")
	}
	proven = b.orbaxWorld(i, f, processes) || proven
	if !slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool { return e.Type().IsRegular() }) && len(processes) == 0 {
		b.missing(i, CheckShards, f.path, "got an item without files; want some")
	}
	if !proven {
		b.save.Unproven = "nothing says which files " + f.path + " has, so that one that is missing would leave no trace"
	}
}

// orbaxNames reports whether an entry is called as JSON of Orbax's is. What it is in truth, opening it
// tells: a loader that finds a folder, a pipe, or a link that leads nowhere under such a name fails. Where
// arrays were (_sharding) may be missing, and must be right where it is there.
func orbaxNames(e fs.DirEntry) bool {
	name := e.Name()
	if strings.HasPrefix(name, "_") && !e.IsDir() {
		return true
	}
	return name == "_METADATA" || name == "_sharding" || strings.HasSuffix(name, ".json")
}

// orbaxMarker opens a commit_success.txt that is there. What it says, no loader reads.
func (b *builder) orbaxMarker(i int, f *folder) {
	if x := b.shard(i, f.join(orbaxSuccess), 0, nil); x != nil {
		x.close()
	}
}

// ocdbtProcess begins the name of the database that one process wrote. It stays when all are
// merged: the merged one refers to it.
const ocdbtProcess = "ocdbt.process_"

func (b *builder) orbaxProcess(i int, name string) {
	f, err := b.folder(name)
	switch {
	case err != nil:
		b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, name, err.Error()})
	case !f.has(ocdbt.Manifest):
		b.missing(i, CheckShards, f.join(ocdbt.Manifest), "got no manifest; want the one of this process")
	default:
		b.ocdbt(i, name)
	}
}

func orbaxProcesses(f *folder) map[string]bool {
	out := map[string]bool{}
	for _, e := range f.entries {
		if n, ok := strings.CutPrefix(e.Name(), ocdbtProcess); ok {
			out[n] = true
		}
	}
	return out
}

// orbaxWorld looks for processes whose files are not there: each wrote its arrays, what
// describes them, and the state of its data ("process_0-of-2.json"), whose names say how many
// there are; it reports whether they do.
func (b *builder) orbaxWorld(i int, f *folder, processes map[string]bool) bool {
	if f.has("array_metadatas") {
		b.orbaxDescribed(i, f.join("array_metadatas"), processes)
	}
	for _, e := range f.entries {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), ".json"), "process_")
		_, of, cut := strings.Cut(rest, "-of-")
		n, isNumber := number(of)
		if !ok || !cut || !isNumber {
			continue
		}
		for k := range min(n, int64(b.opt.Limits.Entries)) {
			if name := fmt.Sprintf("process_%d-of-%d.json", k, n); !f.has(name) {
				b.missing(i, CheckShards, f.join(name), "got no such file; want one of each of %d processes", n)
			}
		}
		return true
	}
	return false
}

func (b *builder) orbaxDescribed(i int, described string, processes map[string]bool) {
	sub, err := b.folder(described)
	if err != nil {
		b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, described, err.Error()})
		return
	}
	for _, e := range sub.entries {
		b.jsonFile(i, sub.join(e.Name()))
	}
	for _, n := range slices.Sorted(maps.Keys(processes)) {
		if !sub.has("process_" + n) {
			b.missing(i, CheckShards, sub.join("process_"+n), "got no such file; want the one of each process that wrote arrays")
		}
	}
}

func (b *builder) jsonFile(i int, name string) {
	x := b.shard(i, name, 1, nil)
	if x == nil {
		return
	}
	x.close()
	var doc any
	if err := b.json(name, &doc); err != nil {
		b.unread(i, CheckTorn, name, err)
	}
}

// ocdbt looks at everything that a database of TensorStore's needs: the nodes of its newest
// tree, which have checksums, and that the files of its values are long enough.
func (b *builder) ocdbt(i int, dir string) {
	ends := map[string]int64{}
	inside := func(name string) error {
		if !fs.ValidPath(name) {
			return fmt.Errorf("got a file %s; want one in the folder of the database", quote(name))
		}
		return nil
	}
	open := func(name string) (io.ReaderAt, int64, error) {
		if err := inside(name); err != nil {
			return nil, 0, err
		}
		f, err := b.open(path.Join(dir, name))
		if err != nil {
			return nil, 0, err
		}
		f.close() // it is opened anew for each node
		return f, f.size, nil
	}
	err := ocdbt.Walk(open, ocdbt.Limits{Nodes: b.opt.Limits.Entries}, func(r ocdbt.Ref) error {
		ends[r.File] = max(ends[r.File], r.Offset+r.Length)
		return inside(r.File)
	})
	if err != nil {
		b.unread(i, CheckTorn, path.Join(dir, ocdbt.Manifest), err)
	}
	for _, name := range slices.Sorted(maps.Keys(ends)) {
		if inside(name) != nil {
			continue
		}
		if x := b.shard(i, path.Join(dir, name), ends[name], nil); x != nil {
			x.close()
		}
	}
}
