// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// lostAndFound is the folder that ext4 makes in each new file system.
const lostAndFound = "lost+found"

// fileSystems are folders that file systems make: those of snapshots are of NetApp, ZFS and others.
var fileSystems = []string{lostAndFound, ".snapshot", ".snapshots", ".zfs"}

// browsers are what file browsers leave that is not hidden: of Windows, macOS, and network disks. Case does not count.
var browsers = []string{
	"thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "__macosx", "@eadir", "#recycle", "#snapshot", "$recycle.bin", "system volume information",
}

const (
	maxBareDepth = 3 // folders within each other that are looked into for files
	maxBelow     = 4 // folders with saves that are named
	maxNamed     = 4 // entries of a folder without saves that are named

	maxBareFolders = 2048 // folders read until a folder is not empty: on a disk over the network each takes milliseconds
)

// isBare reports whether a folder has nothing in it but what file systems, file browsers and tools put there, and
// empty folders.
func (s *scan) isBare(f *folder, depth int) bool {
	if f.cut {
		return false
	}
	for _, e := range f.entries {
		switch name := e.Name(); {
		case e.IsDir() && slices.Contains(fileSystems, name), slices.Contains(browsers, strings.ToLower(name)):
			continue
		case strings.HasPrefix(name, "."):
			if !s.isTools(f, e, maxStateDepth) {
				return false
			}
			continue
		case !e.IsDir() || depth == 0:
			return false
		}
		sub, err := s.folder(f.join(e.Name()))
		if err != nil || !s.isBare(sub, depth-1) {
			return false
		}
	}
	return true
}

// isTools reports whether a hidden entry is a tool's own: neither state of a job by its name, as a copy or a save that is
// under way may be, nor a folder with state or saves in it. What is not looked at is none: a link, which may lead
// elsewhere, and what lies deeper than depth.
func (s *scan) isTools(f *folder, e fs.DirEntry, depth int) bool {
	switch {
	case !e.IsDir() && !e.Type().IsRegular(), isHiddenState(e.Name()):
		return false
	case !e.IsDir():
		return true
	case depth == 0, s.root.Counts.Folders >= maxBareFolders:
		return false
	}
	sub, err := s.folder(f.join(e.Name()))
	return err == nil && !sub.cut && !s.holdsSaves(sub, e.Name()) &&
		!slices.ContainsFunc(sub.entries, func(e fs.DirEntry) bool { return !s.isTools(sub, e, depth-1) })
}

// isHiddenState reports whether a name, of what is hidden or lies in a hidden folder, is that of state of a job: DCP's
// and OLMo-core's metadata, or a name with a dot before it, as rsync and others call what they have not finished.
func isHiddenState(name string) bool {
	bare := strings.TrimLeft(name, ".")
	whole := strings.TrimSuffix(bare, path.Ext(bare)) // without rsync's random end
	return strings.HasPrefix(name, dcpMetadata) || isJobState(bare) || isJobState(whole) || strings.Contains(bare, ".safetensors") ||
		slices.ContainsFunc(families, func(of family) bool { return !of.common && of.is(whole) })
}

// below names the folders one level down that hold saves, or such of a job alone.
func (s *scan) below(f *folder, jobs bool) (names []string) {
	looked := 0
	s.eachFolder(f, func(e fs.DirEntry) {
		if looked++; looked > maxProbes || len(names) >= maxBelow || s.ctx.Err() != nil {
			return
		}
		sub, err := s.folder(f.join(e.Name()))
		if err != nil {
			return
		}
		if saves := s.savesIn(sub, e.Name()); len(saves) > 0 && (!jobs || !saves[0].Export) {
			names = append(names, e.Name())
		}
	})
	return names
}

// modelsOverSaves names the folders with saves that lie below a folder of models, as trainers of adapters leave both.
func (s *scan) modelsOverSaves(f *folder) {
	if len(s.root.Saves) != 1 || s.root.Saves[0].Format != FormatSafetensors {
		return
	}
	if below := s.below(f, true); len(below) > 0 {
		s.root.Saves[0].Unproven = "it holds models, and folders in it hold saves of a job (" + strings.Join(below, ", ") + "); give the one to resume from"
	}
}

// holdsSaves reports whether a folder holds saves, or is one.
func (s *scan) holdsSaves(f *folder, name string) bool { return len(s.savesIn(f, name)) > 0 }

// savesIn are the first saves of a folder.
func (s *scan) savesIn(f *folder, name string) []Save {
	opt := s.opt
	opt.Verify, opt.Limits.Saves = false, 1
	inner := &scan{ctx: s.ctx, fsys: s.fsys, opt: opt, root: &Root{}, name: name}
	inner.layout(f)
	s.root.Counts.Files += inner.root.Counts.Files
	s.root.Counts.Folders += inner.root.Counts.Folders
	s.root.Counts.BytesRead += inner.root.Counts.BytesRead
	return inner.root.Saves
}

// entryNames names what is in a folder, as much as fits a sentence.
func entryNames(f *folder) string {
	var names []string
	for _, e := range f.entries[:min(len(f.entries), maxNamed)] {
		names = append(names, quote(e.Name()))
	}
	if n := len(f.entries) - len(names); n > 0 {
		names = append(names, quantity(int64(n))+" more")
	}
	return strings.Join(names, ", ")
}

// none notes that a folder holds no save, and what it holds instead.
func (s *scan) none(f *folder) {
	s.root.Empty, s.root.Bare = true, s.isBare(f, maxBareDepth)
	what := "got no checkpoint of a known layout, but " + entryNames(f) + "; want a folder of saves, or a save"
	s.root.Unfinished = s.unfinished(f)
	if s.root.Unfinished != "" {
		what = "got a download that was not finished, by " + s.root.Unfinished + "; want all files: run the download again"
	} else if s.root.Bare {
		what = "got an empty folder; want a folder of saves, or --allow-empty at the first start of a job"
	} else if s.root.Below = s.hubSnapshots(f); len(s.root.Below) > 0 {
		what = "got a cache of the Hugging Face hub; want a snapshot in it: give one of " + strings.Join(s.root.Below, ", ")
	} else if s.root.Below = s.below(f, false); len(s.root.Below) > 0 {
		what = "got no checkpoint of its own, but saves in " + strings.Join(s.root.Below, ", ") + "; want a folder of saves, or a save: give one of them"
	}
	s.problem(nil, Problem{CheckInput, Unreadable, f.path, what})
}
