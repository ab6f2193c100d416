// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxHops is how many links one path may lead through, as in Linux.
const maxHops = 40

var errLoop = errors.New("got a loop of links; want a file")

// hubBlobs is the folder blobs of one repository in a cache of the Hugging Face hub. The folder that was given
// is a snapshot of the repository: its files are links to ../../blobs. The root is the folder blobs itself, so
// that a link in it can not lead out of it.
type hubBlobs struct {
	path string // absolute
	root *os.Root
}

// hubBlobsOf opens the blobs of the repository that a folder is a snapshot of:
// DIR/models--ORG--NAME/snapshots/REVISION. Nil where it is none, or where blobs is a link.
func hubBlobsOf(folder string) *hubBlobs {
	parts := strings.Split(filepath.ToSlash(folder), "/")
	for i := len(parts) - 2; i > 0; i-- {
		kind, _, cache := strings.Cut(parts[i-1], "--")
		if parts[i] != "snapshots" || !cache || !slices.Contains([]string{"models", "datasets", "spaces"}, kind) {
			continue
		}
		at := filepath.Join(filepath.FromSlash(strings.Join(parts[:i], "/")), "blobs")
		root, err := openFolder(at)
		if err != nil {
			return nil
		}
		return &hubBlobs{at, root}
	}
	return nil
}

// openFolder opens a folder that is no link.
func openFolder(at string) (*os.Root, error) {
	there, err := os.Lstat(at)
	if err != nil {
		return nil, clause(err)
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return nil, clause(err)
	}
	opened, err := root.Stat(".")
	if err != nil || !os.SameFile(there, opened) { // a link, or changed in the meantime
		return nil, errors.Join(errors.New("got a link; want a folder"), root.Close())
	}
	return root, nil
}

// blob returns a file of the hub's blobs. A blob is never a link.
func (h *hubBlobs) blob(rel string) (*os.Root, string, error) {
	info, err := h.root.Lstat(rel)
	switch {
	case err != nil:
		return nil, "", clause(err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, "", errors.New("got a link in the folder blobs of the hub's cache; want a file there: download the model again, or copy the file")
	}
	return h.root, rel, nil
}

// places are the absolute paths under which a folder is known: as it was given, and where it lies.
func places(folder string) []string {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return nil
	}
	all := []string{abs}
	if to, err := filepath.EvalSymlinks(abs); err == nil && to != abs {
		all = append(all, to)
	}
	return all
}

// below returns the rest of a path below a folder, "." for the folder itself.
func below(folder, abs string) (string, bool) {
	rel, err := filepath.Rel(folder, abs)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// follow resolves the links of a path where one is absolute or leads through a folder above. It returns a
// path without links, and the root of that path. The caller opens the path within this root, so that a link
// that changes in the meantime can not lead out of it.
func (d *Dir) follow(name string) (*os.Root, string, error) {
	done, rest, link := ".", name, ""
	for hops := 0; rest != ""; {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		switch {
		case part == "" || part == ".":
			continue
		case part == ".." && done != ".":
			done = path.Dir(done)
			continue
		}
		at := path.Join(done, part)
		outside := part == ".."
		if !outside {
			info, err := d.root.Lstat(at)
			if err != nil {
				return nil, "", clause(err)
			}
			if info.Mode()&fs.ModeSymlink == 0 {
				done = at
				continue
			}
			if hops++; hops > maxHops {
				return nil, "", errLoop
			}
			if link, err = d.root.Readlink(at); err != nil {
				return nil, "", clause(err)
			}
			if !filepath.IsAbs(link) {
				rest = filepath.ToSlash(link) + "/" + rest
				continue
			}
		}
		abs := filepath.Join(link, filepath.FromSlash(rest))
		if outside {
			abs = filepath.Join(d.places[len(d.places)-1], "..", filepath.FromSlash(rest))
		}
		root, rel, ok := d.within(abs)
		switch {
		case !ok:
			return nil, "", errors.New("got a link to " + quote(link) + ", which lies outside of the folder; want one within it: give the folder that holds both, or copy the file")
		case root != d.root:
			return d.hub.blob(rel)
		}
		done, rest = ".", rel
	}
	return d.root, done, nil
}

// within returns the root that an absolute path lies in, and the path in it. A path may lead there by another
// name of the folder, as /home often is one: its folders are looked up, and nothing is opened.
func (d *Dir) within(abs string) (*os.Root, string, bool) {
	if root, rel, ok := d.named(abs); ok {
		return root, rel, true
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return nil, "", false
	}
	return d.named(filepath.Join(dir, filepath.Base(abs)))
}

// named is within for the names of the folder, and of the blobs of a hub cache, that are known.
func (d *Dir) named(abs string) (*os.Root, string, bool) {
	for _, folder := range d.places {
		if rel, ok := below(folder, abs); ok {
			return d.root, rel, true
		}
	}
	if d.hub != nil {
		if rel, ok := below(d.hub.path, abs); ok {
			return d.hub.root, rel, true
		}
	}
	return nil, "", false
}
