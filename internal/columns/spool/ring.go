// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Modes of files and folders: others of the group may read them.
const (
	fileMode   = 0o640
	folderMode = 0o750
)

// File is a file of the spool.
type File struct {
	Path string // below the directory, with slashes
	Size int64  // bytes
	// Earlier is true where an earlier run wrote the file, and may have uploaded it.
	Earlier bool

	number int64
	sent   bool
}

// ring is the files of a directory, the oldest first. It is safe for concurrent use.
type ring struct {
	directory string
	limit     int64
	most      int // files
	deleted   func(reason string)

	mu    sync.Mutex
	files []*File
	size  int64
	next  int64 // number of the next file, at least
}

// Reasons for which a file is deleted.
const (
	// Limit is of a file that made room for newer ones, by its bytes or as one of too many files.
	Limit = "ring_limit"
	// LimitBeforeUpload is of a file that made room, and that was not uploaded yet.
	LimitBeforeUpload = "ring_limit_before_upload"
	// Leftover is of a temporary file of a process that was killed.
	Leftover = "leftover"
)

// maxFiles bounds the files of a directory: each takes memory, and a name in its folder.
const maxFiles = 1 << 16

// scan finds the files of a directory, and removes the temporary ones.
func (r *ring) scan() error {
	err := filepath.WalkDir(r.directory, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if strings.HasSuffix(d.Name(), temporary) {
			r.deleted(Leftover)
			return os.Remove(path)
		}
		number, ok := numberOf(d.Name())
		if !ok {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(r.directory, path)
		if err != nil {
			return err
		}
		r.files = append(r.files, &File{Path: filepath.ToSlash(rel), Size: info.Size(), Earlier: true, number: number})
		r.size += info.Size()
		r.next = max(r.next, number+1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("find files of earlier runs: %w", err)
	}
	slices.SortFunc(r.files, func(a, b *File) int { return cmp.Compare(a.number, b.number) })
	return nil
}

// makeRoom deletes the oldest files until a file of so many bytes more is within the limits.
func (r *ring) makeRoom(more int64, uploads bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.files) > 0 && (r.size+more > r.limit || len(r.files) >= r.most) {
		oldest := r.files[0]
		path := r.path(oldest)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete oldest file: %w", err)
		}
		r.forget(0)
		reason := Limit
		if uploads && !oldest.sent {
			reason = LimitBeforeUpload
		}
		r.deleted(reason)
		// A folder that is not empty stays.
		for dir := filepath.Dir(path); dir != r.directory && os.Remove(dir) == nil; {
			dir = filepath.Dir(dir)
		}
	}
	return nil
}

func (r *ring) path(f *File) string { return filepath.Join(r.directory, filepath.FromSlash(f.Path)) }

func (r *ring) forget(i int) {
	r.size -= r.files[i].Size
	r.files = slices.Delete(r.files, i, i+1)
}

func (r *ring) add(f *File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files = append(r.files, f)
	r.size += f.Size
}

// number returns a number above all others: that of the time, or one more than the last.
func (r *ring) number(millis int64) int64 {
	r.next = max(r.next, millis)
	r.next++
	return r.next - 1
}

func (r *ring) bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size
}

// unsent returns the oldest file that was not uploaded, and how many there are.
func (r *ring) unsent() (oldest File, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.files {
		if f.sent {
			continue
		}
		if n++; n == 1 {
			oldest = *f
		}
	}
	return oldest, n
}

// markSent notes that a file was uploaded, or is not there any more.
func (r *ring) markSent(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.files {
		if f.Path == path {
			f.sent = true
			return
		}
	}
}
