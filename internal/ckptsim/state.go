// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// State is what a disk holds, as an fs.FS. Its files say where data is missing, by a method
// Hole, as those of a real file system do.
type State struct {
	root *stateFile
	// Tick is how many ticks of the clock of modifications one step of the file system's own
	// time has: with more than 1, what was written one after the other has equal times.
	Tick int64
}

type stateFile struct {
	dir     bool
	at      int64
	data    []byte
	there   []bool // of each byte of data, whether it came
	entries map[string]*stateFile
}

func (f *stateFile) add(name string, e *stateFile) {
	if f.entries == nil {
		f.entries = map[string]*stateFile{}
	}
	f.entries[name] = e
}

// put applies the first n bytes of a write.
func (f *stateFile) put(w write, n int) {
	if w.cut {
		f.data, f.there = nil, nil
		return
	}
	if n == 0 {
		return
	}
	f.extend(int(w.off) + n)
	copy(f.data[w.off:], w.data[:n])
	for i := range n {
		f.there[int(w.off)+i] = true
	}
}

func (f *stateFile) extend(size int) {
	if more := size - len(f.data); more > 0 {
		f.data = append(f.data, make([]byte, more)...)
		f.there = append(f.there, make([]bool, more)...)
	}
}

// hole is where the first hole is; the file's end where there is none.
func (f *stateFile) hole() int64 {
	if i := slices.Index(f.there, false); i >= 0 {
		return int64(i)
	}
	return int64(len(f.data))
}

func (s *State) find(name string) (*stateFile, bool) {
	at := s.root
	for part := range splitPath(name) {
		next, ok := at.entries[part]
		if !ok {
			return nil, false
		}
		at = next
	}
	return at, true
}

// Bytes returns what a file holds.
func (s *State) Bytes(name string) ([]byte, bool) {
	f, ok := s.find(name)
	if !ok || f.dir {
		return nil, false
	}
	return f.data, true
}

// Open implements fs.FS.
func (s *State) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, ok := s.find(name)
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &openState{stateInfo: stateInfo{s, name, f}}, nil
}

// String lists the state, a line for each file: for people who look for what went wrong.
func (s *State) String() string {
	var b strings.Builder
	s.list(&b, "", s.root)
	return b.String()
}

// Hash tells states apart: by names, contents, holes, and times.
func (s *State) Hash() uint64 {
	h := fnv.New64a()
	s.hash(h, "", s.root)
	return h.Sum64()
}

func (s *State) hash(h io.Writer, p string, f *stateFile) {
	_, _ = fmt.Fprintf(h, "%s %t %d %d\n", p, f.dir, f.at/s.Tick, f.hole())
	_, _ = h.Write(f.data)
	for _, name := range slices.Sorted(maps.Keys(f.entries)) {
		s.hash(h, p+"/"+name, f.entries[name])
	}
}

func (s *State) list(b *strings.Builder, p string, f *stateFile) {
	if !f.dir {
		fmt.Fprintf(b, "%s: %d bytes, time %d", p, len(f.data), f.at/s.Tick)
		if h := f.hole(); h < int64(len(f.data)) {
			fmt.Fprintf(b, ", hole at %d", h)
		}
		b.WriteByte('\n')
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.entries)) {
		s.list(b, strings.TrimPrefix(p+"/"+name, "/"), f.entries[name])
	}
}

// stateInfo is an entry of a State, for fs.FileInfo and fs.DirEntry.
type stateInfo struct {
	s    *State
	name string
	f    *stateFile
}

func (i stateInfo) Name() string { return i.name[strings.LastIndexByte(i.name, '/')+1:] }
func (i stateInfo) Size() int64  { return int64(len(i.f.data)) }
func (i stateInfo) IsDir() bool  { return i.f.dir }
func (i stateInfo) Sys() any     { return nil }

func (i stateInfo) Mode() fs.FileMode {
	if i.f.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

func (i stateInfo) Type() fs.FileMode          { return i.Mode().Type() }
func (i stateInfo) Info() (fs.FileInfo, error) { return i, nil }

// ModTime implements fs.FileInfo. Steps of time are a microsecond apart.
func (i stateInfo) ModTime() time.Time { return time.UnixMicro(i.f.at / i.s.Tick) }

// openState is an open file or folder of a State.
type openState struct {
	stateInfo
	off    int
	closed bool
}

func (o *openState) Stat() (fs.FileInfo, error) { return o.stateInfo, nil }
func (o *openState) Close() error               { o.closed = true; return nil }

func (o *openState) Read(p []byte) (int, error) {
	n, err := o.ReadAt(p, int64(o.off))
	o.off += n
	if n > 0 {
		err = nil
	}
	return n, err
}

func (o *openState) ReadAt(p []byte, off int64) (int, error) {
	if o.closed {
		return 0, &fs.PathError{Op: "read", Path: o.name, Err: fs.ErrClosed}
	}
	if o.f.dir {
		return 0, &fs.PathError{Op: "read", Path: o.name, Err: fs.ErrInvalid}
	}
	if off >= int64(len(o.f.data)) {
		return 0, io.EOF
	}
	n := copy(p, o.f.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Hole returns where the first hole is, as lseek(2) with SEEK_HOLE does.
func (o *openState) Hole() (int64, error) { return o.f.hole(), nil }

// ReadDir implements fs.ReadDirFile.
func (o *openState) ReadDir(n int) ([]fs.DirEntry, error) {
	if !o.f.dir {
		return nil, &fs.PathError{Op: "readdir", Path: o.name, Err: fs.ErrInvalid}
	}
	names := slices.Sorted(maps.Keys(o.f.entries))
	names = names[min(o.off, len(names)):]
	if n > 0 && len(names) == 0 {
		return nil, io.EOF
	}
	if n > 0 {
		names = names[:min(n, len(names))]
	}
	o.off += len(names)
	out := make([]fs.DirEntry, len(names))
	for i, name := range names {
		out[i] = stateInfo{o.s, name, o.f.entries[name]}
	}
	return out, nil
}
