// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Dir is a folder of the file system as an fs.FS. Links that lead out of it are refused, but for those of a
// snapshot in a cache of the Hugging Face hub to its blobs. Opening a pipe does not wait for a writer.
type Dir struct {
	root   *os.Root
	name   string
	places []string  // its absolute paths; the last is where it lies
	hub    *hubBlobs // nil where it is no snapshot of a hub cache
}

// OpenDir opens the folder at path, following links on the way to it.
func OpenDir(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open folder of checkpoints: %w", err)
	}
	d := &Dir{root: root, places: places(path)}
	if n := len(d.places); n > 0 {
		d.name = filepath.Base(d.places[n-1])
		d.hub = hubBlobsOf(d.places[n-1])
	}
	return d, nil
}

// Name returns what the folder is called where it lies, whatever link or relative path leads to it; "" where
// that is not known.
func (d *Dir) Name() string { return d.name }

// Close closes the folder.
func (d *Dir) Close() error {
	if d.hub != nil {
		return errors.Join(d.root.Close(), d.hub.root.Close())
	}
	return d.root.Close()
}

// Open implements fs.FS.
func (d *Dir) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	f, err := d.root.OpenFile(name, flags, 0)
	if err != nil {
		var root *os.Root
		var rel string
		if root, rel, err = d.otherwise("open", name, err); err == nil {
			f, err = root.OpenFile(rel, flags, 0)
		}
	}
	if err != nil {
		return nil, err
	}
	return dirFile{f}, nil
}

// Stat implements fs.StatFS.
func (d *Dir) Stat(name string) (fs.FileInfo, error) {
	info, err := d.root.Stat(name)
	if err != nil {
		var root *os.Root
		var rel string
		if root, rel, err = d.otherwise("stat", name, err); err == nil {
			return root.Stat(rel)
		}
	}
	return info, err
}

// ReadLink returns what a link leads to, as it says it.
func (d *Dir) ReadLink(name string) (string, error) { return d.root.Readlink(name) }

// otherwise resolves a path that the root refuses, as it has a link that is absolute or leads out of it.
func (d *Dir) otherwise(op, name string, refused error) (*os.Root, string, error) {
	if errors.Is(refused, fs.ErrNotExist) || len(d.places) == 0 {
		return nil, "", refused
	}
	root, rel, err := d.follow(name)
	switch {
	case err != nil:
		return nil, "", &fs.PathError{Op: op, Path: name, Err: err}
	case root == d.root && rel == name: // it has no link, so that another is the reason
		return nil, "", refused
	}
	return root, rel, nil
}

type dirFile struct{ *os.File }
