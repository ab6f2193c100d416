// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// NameFunc tells the rank that a file's name speaks of and what precedes it; false where
// the name tells none.
type NameFunc func(path string) (rank int64, prefix string, ok bool)

// File is a file whose name is that of a rank's dump.
type File struct {
	Path   string
	Prefix string // of the path, in front of the rank
	Rank   int64
	Size   int64
	Time   time.Time // of its last change
	// Regular: it is neither a link nor a pipe nor the like.
	Regular bool
}

// Finder lists dumps.
type Finder struct {
	// Include are files, folders and globs of both, Exclude globs of names, or of paths where
	// they hold a separator.
	Include, Exclude []string
	Name             NameFunc
	MaxFiles         int

	maxNames int // of one folder; 0: maxNames
}

// Listing is what one look found.
type Listing struct {
	Files []File // by path
	// Ignored counts those that MaxFiles left out, Nameless those whose names tell no rank.
	Ignored, Nameless int
	// Cut counts the folders that hold more names than are looked at.
	Cut int
	// Outside counts the files whose ranks no job has.
	Outside int
	// Unreadable is why folders can not be listed, those of the first 65.
	Unreadable []error
	// Problems are folders that can not be listed whole, and names that tell no possible rank,
	// in words.
	Problems []string
}

// maxNames bounds the names that one folder is asked for: others than dumps lie there, too.
const maxNames = 1 << 18

// maxUnreadable bounds the folders of a listing that can not be listed. It is one more than health names,
// so that health reports that there are more.
const maxUnreadable = 65

// List looks once. Patterns that match nothing yet are none of its problems.
func (f *Finder) List() Listing {
	var all []Listing
	for _, pattern := range f.Include {
		all = append(all, f.Of(pattern))
	}
	return f.Join(all)
}

// Of looks once for one pattern.
func (f *Finder) Of(pattern string) (l Listing) {
	f.pattern(pattern, &l, map[string]bool{})
	return l
}

// Join makes one of what was found of several patterns: a file that several match is one.
func (f *Finder) Join(of []Listing) (all Listing) {
	seen := map[string]bool{}
	for i := range of {
		l := &of[i]
		all.Ignored += l.Ignored
		all.Nameless += l.Nameless
		all.Cut += l.Cut
		all.Outside += l.Outside
		all.Problems = append(all.Problems, l.Problems...)
		for _, file := range l.Files {
			switch {
			case seen[file.Path]:
			case len(all.Files) >= f.MaxFiles:
				all.Ignored++
			default:
				seen[file.Path] = true
				all.Files = append(all.Files, file)
			}
		}
	}
	slices.SortFunc(all.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func (f *Finder) pattern(pattern string, l *Listing, seen map[string]bool) {
	if info, err := os.Stat(pattern); err == nil {
		f.path(filepath.Clean(pattern), info.IsDir(), l, seen)
		return
	} else if !errors.Is(err, fs.ErrNotExist) {
		l.Problems = append(l.Problems, fmt.Sprintf("find dumps: %v", err))
		return
	}
	for _, m := range f.matches(filepath.Clean(pattern), l) {
		info, err := os.Stat(m)
		f.path(m, err == nil && info.IsDir(), l, seen)
	}
}

// matches are the paths that a pattern matches: of each folder on the way at most as many names
// are looked at as of any, and those that can not be read are told.
func (f *Finder) matches(pattern string, l *Listing) (out []string) {
	if !strings.ContainsAny(pattern, `*?[\`) {
		if _, err := os.Lstat(pattern); err == nil {
			out = append(out, pattern)
		}
		return out
	}
	dir, name := filepath.Split(pattern)
	folders := []string{"."}
	if dir != "" {
		folders = f.matches(filepath.Clean(dir), l)
	}
	for _, folder := range folders {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			continue
		}
		for _, n := range f.names(folder, l) {
			ok, err := filepath.Match(name, n)
			switch {
			case err != nil:
				l.Problems = append(l.Problems, fmt.Sprintf("find dumps of %q: %v", pattern, err))
				return out
			case !ok:
			case len(out) >= f.most():
				l.Cut++
				l.Problems = append(l.Problems, fmt.Sprintf("find dumps of %q: got more than %d matches; want at most that: the others are not looked at", pattern, f.most()))
				return out
			default:
				out = append(out, filepath.Join(folder, n))
			}
		}
	}
	return out
}

func (f *Finder) path(path string, dir bool, l *Listing, seen map[string]bool) {
	if !dir {
		f.add(path, l, seen)
		return
	}
	for _, name := range f.names(path, l) {
		f.add(filepath.Join(path, name), l, seen)
	}
}

// most is how many names of a folder are looked at.
func (f *Finder) most() int {
	if f.maxNames == 0 {
		return maxNames
	}
	return f.maxNames
}

// names are those in a folder, in order.
func (f *Finder) names(path string, l *Listing) []string {
	d, err := os.Open(path)
	if err != nil {
		l.unreadable(err)
		return nil
	}
	defer func() { _ = d.Close() }() // it was only read
	limit := f.most()
	names, err := d.Readdirnames(limit)
	if err != nil && !errors.Is(err, io.EOF) {
		l.unreadable(err)
	}
	if more, _ := d.Readdirnames(1); len(more) > 0 {
		l.Cut++
		l.Problems = append(l.Problems, fmt.Sprintf("list folder %s: got more than %d names; want at most that: the others are not looked at", path, limit))
	}
	slices.Sort(names)
	return names
}

func (l *Listing) unreadable(err error) {
	l.Problems = append(l.Problems, fmt.Sprintf("list folder: %v", err))
	if len(l.Unreadable) < maxUnreadable {
		l.Unreadable = append(l.Unreadable, err)
	}
}

func (f *Finder) add(path string, l *Listing, seen map[string]bool) {
	if seen[path] || f.excluded(path) || strings.HasSuffix(path, PipeSuffix) {
		return
	}
	seen[path] = true
	info, err := os.Lstat(path)
	if err != nil || info.IsDir() {
		return // gone since it was listed, or no file
	}
	rank, prefix, ok := f.Name(path)
	switch {
	case !ok:
		l.Nameless++
	case rank < 0 || rank >= MaxRanks:
		if l.Outside++; l.Outside == 1 { // one tells of all
			l.Problems = append(l.Problems, fmt.Sprintf("read rank in name of %s: got %d; want 0 to %d", path, rank, MaxRanks-1))
		}
	case len(l.Files) >= f.MaxFiles:
		l.Ignored++
	default:
		l.Files = append(l.Files, File{
			Path: path, Prefix: prefix, Rank: rank, Size: info.Size(), Time: info.ModTime(), Regular: info.Mode().IsRegular(),
		})
	}
}

func (f *Finder) excluded(path string) bool {
	return slices.ContainsFunc(f.Exclude, func(glob string) bool {
		name := filepath.Base(path)
		if strings.ContainsRune(glob, filepath.Separator) {
			name, glob = path, filepath.Clean(glob)
		}
		ok, err := filepath.Match(glob, name)
		return err == nil && ok
	})
}
