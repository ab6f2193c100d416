// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
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
// same name with another number. Runs that were moved or renamed have the names of their saves still.
func savedElsewhere(b *builder, commit int, f *folder, name string, saved []string) {
	here := pathParts(f.path)
	if f.path == "." {
		if !b.save.Epoch.OK || b.name == "" {
			return
		}
		here = []string{b.name}
	}
	for len(here) > 0 && len(saved) > 0 {
		want, got := here[len(here)-1], saved[len(saved)-1]
		if got == want {
			here, saved = here[:len(here)-1], saved[:len(saved)-1]
			continue
		}
		if numberIn.ReplaceAllString(got, "#") == numberIn.ReplaceAllString(want, "#") {
			b.doubt(commit, model.DomainTentative, Problem{
				CheckWitness, Suspect, name,
				"got metadata that was written for a save in " + quote(got) + "; want " + quote(want) + ": it was copied from that save, alone or with its shards",
			})
		}
		return
	}
}
