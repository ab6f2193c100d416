// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Dir is a folder of the file system as an fs.FS. Links that lead out of it are refused by
// the kernel's own walk of the path, and opening a pipe does not wait for a writer.
type Dir struct {
	root *os.Root
	name string
}

// OpenDir opens the folder at path, following links on the way to it.
func OpenDir(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open folder of checkpoints: %w", err)
	}
	return &Dir{root, baseOf(path)}, nil
}

// baseOf is what a folder is called where it lies, whatever link or relative path leads to it; "" where
// that can not be told.
func baseOf(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	if to, err := filepath.EvalSymlinks(abs); err == nil {
		abs = to
	}
	return filepath.Base(abs)
}

// Name is what the folder is called.
func (d *Dir) Name() string { return d.name }

// Close closes the folder.
func (d *Dir) Close() error { return d.root.Close() }

// Open implements fs.FS.
func (d *Dir) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return dirFile{f}, nil
}

// Stat implements fs.StatFS.
func (d *Dir) Stat(name string) (fs.FileInfo, error) { return d.root.Stat(name) }

type dirFile struct{ *os.File }
