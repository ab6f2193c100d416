package ckpt

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Dir is a folder of the file system as an fs.FS. Links that lead out of it are refused by
// the kernel's own walk of the path, and opening a pipe does not wait for a writer.
type Dir struct{ root *os.Root }

// OpenDir opens the folder at path, following links on the way to it.
func OpenDir(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open folder of checkpoints: %w", err)
	}
	return &Dir{root}, nil
}

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
