// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// siblings are what the saves of a folder have, each by its name in the save, with the path of the save
// that has it.
type siblings map[string]string

// siblingsOf lists what any of the saves has that the layout knows.
func (s *scan) siblingsOf(paths []string, known func(name string) bool) siblings {
	have := siblings{}
	for _, p := range paths {
		f, err := s.folder(p)
		if err != nil {
			continue
		}
		for _, e := range f.entries {
			if name := e.Name(); known(name) && have[name] == "" {
				have[name] = p
			}
		}
	}
	return have
}

// expectSiblings notes what a save lacks and another of its folder has.
func (b *builder) expectSiblings(f *folder, have siblings, kind func(name string) model.DomainKind) {
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if !f.has(name) {
			b.missing(b.domain(kind(name), name, ""), CheckRetention, f.join(name), "got no such file; want it, as in %s", have[name])
		}
	}
}

// subfolder lists a folder of a save; what can not be looked into is in doubt.
func (b *builder) subfolder(path, id string, kind model.DomainKind) *folder {
	f, err := b.folder(path)
	if err != nil {
		i := b.domain(kind, id, path)
		b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, path, err.Error()})
		return nil
	}
	if f.cut {
		i := b.domain(kind, id, path)
		b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, path, "got more entries than are read; want fewer"})
	}
	return f
}

// within reads a folder of this save as a save of its own format, whose parts become parts of this one.
func (b *builder) within(f *folder, format Format, id string, read func(*builder, *folder)) *builder {
	inner := b.newPart(format, f.path, b.save.Epoch)
	read(inner, f)
	b.take(inner, id)
	return inner
}

// agreeSteps doubts an optimizer that counts another number of steps than the first of its kind: all began
// together, so that its shard is of another save.
func (b *builder) agreeSteps(steps []innerStep) {
	first := slices.IndexFunc(steps, func(s innerStep) bool { return s.known })
	if first < 0 {
		return
	}
	for _, s := range steps[first+1:] {
		if s.known && s.step != steps[first].step {
			b.torn(s.domain, CheckWitness, s.file, "got an optimizer that counts %d steps; want %d, as in %s: it is of another save", s.step, steps[first].step, steps[first].file)
		}
	}
}

// countedShard reads a file of torch.save with the state of an optimizer.
func (b *builder) countedShard(i int, name string) innerStep {
	z := b.torchShard(i, name, nil)
	if z == nil {
		return innerStep{domain: i, file: name}
	}
	z.wantOptimizer(z.root, true)
	n, ok := z.innerStep()
	return innerStep{domain: i, step: n, known: ok, file: name, bare: z.lacksAverages(z.root)}
}

// maxProbes is how many saves are looked into for the layout that they are of: on a disk over the network
// each costs a millisecond.
const maxProbes = 32

// anySave reports whether any of the newest saves is of a layout. One that can not be looked into is of none.
func (s *scan) anySave(saves []dated, is func(*folder) bool) bool {
	saves = saves[max(0, len(saves)-maxProbes):]
	return slices.ContainsFunc(saves, func(d dated) bool {
		f, err := s.folderOf(d)
		return err == nil && is(f)
	})
}

// eachFolder calls do for each folder in a folder.
func (s *scan) eachFolder(f *folder, do func(e fs.DirEntry)) {
	for _, e := range f.entries {
		if s.isFolder(f, e) {
			do(e)
		}
	}
}

// readEach reads each of the saves of a folder.
func (s *scan) readEach(format Format, saves []dated, read func(*builder, *folder)) {
	for _, d := range saves {
		f, err := s.folderOf(d)
		if err != nil {
			s.unreadable(format, d, err)
			continue
		}
		b := s.newSave(format, d.path, model.Some(d.epoch))
		read(b, f)
		b.done()
	}
}

// highest is the resume of a loader that takes the save with the highest number.
func (s *scan) highest(saves []dated, by string) {
	last := saves[len(saves)-1]
	s.root.Resumes = append(s.root.Resumes, Resume{Path: last.path, Epoch: model.Some(last.epoch), By: by})
}
