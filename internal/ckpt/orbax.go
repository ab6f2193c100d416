// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"encoding/json"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ocdbt"
)

const (
	orbaxMetadata = "_CHECKPOINT_METADATA"
	orbaxTmp      = ".orbax-checkpoint-tmp"
	orbaxSuccess  = "commit_success.txt"
)

// rootOrbax reads Orbax's folder of steps. A step is written beside under a temporary name,
// and renamed when it is whole. Where one step is of Orbax, each folder that is called so, with the
// same prefix, is one to the loader, empty or not.
func rootOrbax(s *scan, f *folder) bool {
	var steps []dated
	prefixOf, prefixes := map[string]string{}, map[string]bool{}
	found := false
	for _, e := range f.entries {
		if final, _, tmp := strings.Cut(e.Name(), orbaxTmp); tmp {
			prefix, _, _ := orbaxStep(final)
			found, prefixes[prefix] = true, true
			s.problem(nil, Problem{CheckUnfinished, Suspect, f.join(e.Name()), "got a save under its temporary name; want none: it is under way, or was cut off"})
			continue
		}
		prefix, n, ok := orbaxStep(e.Name())
		d := dated{path: f.join(e.Name()), name: e.Name(), epoch: n}
		if overlong(e.Name(), prefix) {
			ok, d.epoch, d.bad = true, math.MaxInt64, errOverlong
		}
		if !ok || !s.isFolder(f, e) {
			continue
		}
		steps = append(steps, d)
		prefixOf[d.name] = prefix
		if sub, err := s.folderOf(d); err == nil && isOrbax(s, sub) {
			found, prefixes[prefix] = true, true
		}
	}
	steps = slices.DeleteFunc(steps, func(d dated) bool { return !prefixes[prefixOf[d.name]] })
	if !found {
		return false
	}
	resume := Resume{By: "the highest step that was renamed"}
	for _, d := range s.newest(steps) {
		sub, err := s.folderOf(d)
		if !resume.Epoch.OK || d.epoch >= resume.Epoch.V {
			resume.Path, resume.Epoch = d.path, model.Some(d.epoch)
		}
		if err != nil {
			s.unreadable(FormatOrbax, d, err)
			continue
		}
		b := s.newSave(FormatOrbax, d.path, model.Some(d.epoch))
		b.readOrbax(sub)
		b.done()
	}
	s.root.Resumes = append(s.root.Resumes, resume)
	return true
}

// orbaxStep reads what a step is called: its number, or that behind a prefix of the user's, as in
// checkpoint_100.
func orbaxStep(name string) (prefix string, n int64, ok bool) {
	if n, ok = number(name); !ok {
		prefix = name[:strings.LastIndexByte(name, '_')+1]
		n, ok = numbered(name, prefix)
	}
	return prefix, n, ok
}

func isOrbax(s *scan, f *folder) bool {
	if f.has(orbaxMetadata) || f.has("_METADATA") || f.has(ocdbt.Manifest) || f.has(orbaxSuccess) {
		return true
	}
	return slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool {
		if !s.isFolder(f, e) {
			return false
		}
		sub, err := s.folder(f.join(e.Name()))
		return err == nil && (sub.has("_METADATA") || sub.has(ocdbt.Manifest))
	})
}

func saveOrbax(s *scan, f *folder) bool {
	if !f.has(orbaxMetadata) && !f.has(ocdbt.Manifest) {
		return false
	}
	b := s.newSave(FormatOrbax, f.path, model.Optional[int64]{})
	b.readOrbax(f)
	b.done()
	return true
}

// readOrbax reads one step: its marker, and an item in each folder.
func (b *builder) readOrbax(f *folder) {
	commit := b.domain(model.DomainCommit, orbaxMetadata, f.join(orbaxMetadata))
	var meta struct {
		Commit *int64          `json:"commit_timestamp_nsecs"`
		Items  json.RawMessage `json:"item_handlers"` // an object, or one handler
	}
	name := f.join(orbaxMetadata)
	if m := b.shard(commit, name, 1, nil); m != nil {
		m.close()
		switch err := b.json(name, &meta); {
		case err != nil:
			b.unread(commit, CheckTorn, name, err)
		case meta.Commit == nil || *meta.Commit <= 0:
			b.torn(commit, CheckUnfinished, name, "got no commit_timestamp_nsecs; want one: the save was not committed")
		}
	}
	var handlers map[string]string
	if json.Unmarshal(meta.Items, &handlers) != nil {
		handlers = nil
	}
	items := 0
	if f.has(ocdbt.Manifest) || f.has("_METADATA") {
		b.orbaxItem(f, "default", "")
		items++
	} else if f.has(orbaxSuccess) {
		b.orbaxMarker(commit, f)
	}
	for _, e := range f.entries {
		if !b.isFolder(f, e) || e.Name() == "d" || e.Name() == orbaxSuccess || strings.HasPrefix(e.Name(), "ocdbt.process_") || e.Name() == "array_metadatas" {
			continue
		}
		sub, err := b.folder(f.join(e.Name()))
		if err != nil {
			i := b.domain(model.DomainModel, e.Name(), f.join(e.Name()))
			b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, f.join(e.Name()), err.Error()})
			continue
		}
		switch {
		case f.has(orbaxSuccess) && !sub.has(orbaxSuccess):
			i := b.domain(orbaxKind(e.Name()), e.Name(), sub.path)
			b.missing(i, CheckUnfinished, sub.join(orbaxSuccess), "got no such file; want it, as the whole save has one")
		case !f.has(orbaxSuccess) && sub.has(orbaxSuccess):
			b.missing(commit, CheckUnfinished, f.join(orbaxSuccess), "got no such file; want it, as item %s has one", quote(e.Name()))
		}
		b.orbaxItem(sub, e.Name(), handlers[e.Name()])
		items++
	}
	for _, item := range slices.Sorted(maps.Keys(handlers)) {
		if !f.has(item) && (items != 1 || item != "default") {
			i := b.domain(orbaxKind(item), item, "")
			b.missing(i, CheckShards, f.join(item), "got no such item; want it: %s lists it", orbaxMetadata)
		}
	}
	if items == 0 {
		i := b.domain(model.DomainModel, "all", f.path)
		b.missing(i, CheckShards, f.path, "got no item; want at least one")
	}
}
