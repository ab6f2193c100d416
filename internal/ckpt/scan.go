// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// layout reads what one way of saving leaves behind.
type layout struct {
	// root reads the saves of a folder that holds several, and what says which is the newest;
	// false where the folder is none of this layout.
	root func(*scan, *folder) bool
	// save reads a folder that is one save itself; false where it is none of this layout.
	save func(*scan, *folder) bool
}

// layouts are tried in this order: those that can be told most surely come first.
var layouts = []layout{
	{root: rootVerl},
	{root: rootNanotron, save: saveNanotron},
	{root: rootOLMoCore, save: saveOLMoCore},
	{root: rootLevanter, save: saveLevanter},
	{root: rootLitGPT, save: saveLitGPT},
	{root: rootTorchtune},
	{root: rootSwift},
	{root: rootAccelerate, save: saveAccelerate},
	{root: rootMegatron},
	{root: rootTorchtitan},
	{root: rootModelAlone},
	{root: rootHF},
	{save: saveModelAlone},
	{save: saveHF},
	{root: rootDeepSpeed},
	{save: saveDeepSpeed},
	{root: rootLightning},
	{save: saveDCP},
	{save: saveOrbax},
	{root: rootOrbax},
	{save: saveVerl},
	{root: rootDeclined},
	{root: rootAccelerateProject},
	{save: saveSafetensors},
}

// scan is one reading of one root.
type scan struct {
	ctx  context.Context
	fsys fs.FS
	opt  Options
	root *Root
	name string // what the root is called; "" where the file system does not tell
}

// Read reads a folder of checkpoints, or a folder that is one. It never fails as a whole:
// what could not be read is a problem of the save, or of the root.
func Read(ctx context.Context, fsys fs.FS, o Options) *Root {
	o.Limits = o.Limits.or(DefaultLimits())
	s := &scan{ctx: ctx, fsys: fsys, opt: o, root: &Root{}}
	if d, ok := fsys.(interface{ Name() string }); ok {
		s.name = d.Name()
	}
	f, err := s.folder(".")
	if err != nil {
		s.problem(nil, Problem{CheckInput, Unreadable, ".", err.Error()})
		return s.root
	}
	s.noteFamilies(f)
	s.dispatch(f)
	s.compare()
	slices.SortStableFunc(s.root.Saves, func(a, b Save) int {
		switch {
		case a.Epoch.OK != b.Epoch.OK && b.Epoch.OK:
			return -1
		case a.Epoch.OK != b.Epoch.OK:
			return 1
		case a.Epoch.V != b.Epoch.V:
			if a.Epoch.V < b.Epoch.V {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	return s.root
}

func (s *scan) dispatch(f *folder) {
	if !s.layout(f) {
		s.none(f)
		return
	}
	s.modelsOverSaves(f)
}

// layout reads a folder by the first layout that it is of.
func (s *scan) layout(f *folder) bool {
	for _, l := range layouts {
		before := s.root.Counts.SavesLeftOut
		if l.root != nil && l.root(s, f) || l.save != nil && l.save(s, f) {
			return true
		}
		s.root.Counts.SavesLeftOut = before // they were looked for, and are another layout's
	}
	return false
}

// problem notes a problem of a save, or of the root where save is nil.
func (s *scan) problem(save *Save, p Problem) {
	to := &s.root.Problems
	if save != nil {
		to = &save.Problems
	}
	if len(*to) >= s.opt.Limits.Problems {
		s.root.Counts.ProblemsLost++
		return
	}
	*to = append(*to, p)
}

// folder is what a folder holds.
type folder struct {
	path    string
	entries []fs.DirEntry // by name
	cut     bool          // it has more than Limits.Entries
}

// folder lists a folder.
func (s *scan) folder(name string) (*folder, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	f, err := s.fsys.Open(name)
	if err != nil {
		return nil, clause(err)
	}
	defer func() { _ = f.Close() }()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, errors.New("got a file; want a folder")
	}
	s.root.Counts.Folders++
	entries, err := d.ReadDir(s.opt.Limits.Entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, clause(err)
	}
	out := &folder{path: name, entries: entries}
	if len(entries) > s.opt.Limits.Entries {
		out.entries, out.cut = entries[:s.opt.Limits.Entries], true
		s.root.Counts.EntriesLeftOut++
	}
	slices.SortFunc(out.entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// join names an entry of the folder by its path from the root.
func (f *folder) join(name string) string { return path.Join(f.path, name) }

// find returns an entry by name.
func (f *folder) find(name string) (fs.DirEntry, bool) {
	i, ok := slices.BinarySearchFunc(f.entries, name, func(e fs.DirEntry, n string) int { return strings.Compare(e.Name(), n) })
	if !ok {
		return nil, false
	}
	return f.entries[i], true
}

// has reports whether the folder has an entry of that name, of whatever kind.
func (f *folder) has(name string) bool {
	_, ok := f.find(name)
	return ok
}

// isFolder reports whether an entry is a folder, or a link to one within the root. A link of which
// that can not be told, as it leads out of the root or its disk does not answer, may be one: who
// opens it gets the error.
func (s *scan) isFolder(f *folder, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := fs.Stat(s.fsys, f.join(e.Name()))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return info.IsDir()
}

// newest sorts by epoch, and leaves the oldest out where there are too many.
func (s *scan) newest(all []dated) []dated {
	slices.SortFunc(all, func(a, b dated) int {
		return cmp.Or(cmp.Compare(a.epoch, b.epoch), strings.Compare(a.path, b.path))
	})
	if rest := len(all) - s.opt.Limits.Saves; rest > 0 {
		s.root.Counts.SavesLeftOut += int64(rest)
		all = all[rest:]
	}
	return all
}
