// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// savedTo reads where a save of DCP was written to, by the checkpoint_id in its metadata: the parts of a path, the last
// one last. Older versions name none.
func savedTo(m *pickle.Machine, root pickle.Value) []string {
	meta, _ := m.Get(root, "storage_meta")
	id, ok := m.Get(meta, "checkpoint_id")
	switch {
	case !ok:
		return nil
	case id.Kind() == pickle.String:
		return pathParts(string(m.Text(id)))
	case id.Kind() != pickle.Object:
		return nil
	}
	var parts []string // a path is called with its parts
	for _, arg := range m.Args(id) {
		parts = append(parts, pathParts(string(m.Text(arg)))...)
	}
	return parts
}

func pathParts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// savedElsewhere doubts the metadata of DCP that was written for another save: its path leads through a folder of the
// same name with another number. Of the folder of the save, that number must be its step: runs are copied, moved and
// renamed, and what they have above their saves, or call them otherwise, decides nothing.
func savedElsewhere(b *builder, commit int, f *folder, name string, saved []string) {
	here := withinSave(b, f)
	for n := len(here) - 1; n >= 0 && len(saved) > 0; n-- {
		want, got := here[n], saved[len(saved)-1]
		saved = saved[:len(saved)-1]
		if got == want {
			continue
		}
		if n == 0 && !b.save.Epoch.OK {
			return // nothing of its name is known to be a step
		}
		if otherNumbers(got, want, some(b.save.Epoch.V, n == 0)) {
			b.doubt(commit, model.DomainTentative, Problem{
				CheckWitness, Suspect, name,
				"got metadata that was written for a save in " + quote(got) + "; want " + quote(want) +
					": it was copied from that save, alone or with its shards; where the folder was renamed, give it that name again",
			})
		}
		return
	}
}

// withinSave is the path of a folder from that of its save on, of which it is a part or the whole. The folder of a save
// that has no name is "".
func withinSave(b *builder, f *folder) []string {
	save := cmp.Or(b.of, b.save.Path)
	if save == "." {
		name := ""
		if b.save.Epoch.OK {
			name = b.name
		}
		return append([]string{name}, slices.DeleteFunc(pathParts(f.path), func(part string) bool { return part == "." })...)
	}
	return append([]string{path.Base(save)}, pathParts(strings.TrimPrefix(f.path, save))...)
}
