// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
	"unicode/utf8"
)

// file is a regular file that is open for reading. What is read of it is counted.
type file struct {
	path   string
	size   int64
	mod    time.Time
	from   fs.File
	at     io.ReaderAt
	counts *Counts
	again  func() (*file, error) // opens it anew
	closed bool
}

// open opens a regular file; anything else is refused.
func (s *scan) open(path string) (*file, error) {
	f, err := s.fsys.Open(path)
	if err != nil {
		return nil, clause(err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, clause(err)
	}
	if !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, fmt.Errorf("got %s; want a regular file", kindOf(info.Mode()))
	}
	at, ok := f.(io.ReaderAt)
	if !ok {
		_ = f.Close()
		return nil, errors.New("got a file that can only be read in order; want one with random access")
	}
	s.root.Counts.Files++
	out := &file{
		path: path, size: info.Size(), mod: info.ModTime(), from: f, at: at, counts: &s.root.Counts,
		again: func() (*file, error) { return s.open(path) },
	}
	if err := out.pointer(); err != nil {
		out.close()
		return nil, err
	}
	return out, nil
}

// ReadAt implements io.ReaderAt. A file that was closed is opened anew for the time of the
// read: numbers that lie among the tensors are looked for when their file was left already.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if f.closed {
		g, err := f.again()
		if err != nil {
			return 0, err
		}
		defer g.close()
		if g.size != f.size || !g.mod.Equal(f.mod) {
			return 0, errors.New("got a file that was changed since it was opened; want the same")
		}
		return g.ReadAt(p, off)
	}
	n, err := f.at.ReadAt(p, off)
	f.counts.BytesRead += int64(n)
	return n, err
}

func (f *file) close() {
	f.closed = true
	_ = f.from.Close()
}

// hole returns where data is missing in the middle of the file: what was written there
// before a crash never reached the disk.
func (f *file) hole() (off int64, found bool) {
	h, ok := f.from.(interface{ Hole() (int64, error) })
	if !ok {
		return 0, false
	}
	off, err := h.Hole()
	return off, err == nil && off < f.size
}

// whole reads a file of at most limit bytes.
func (s *scan) whole(path string, limit int64) ([]byte, error) {
	f, err := s.open(path)
	if err != nil {
		return nil, err
	}
	defer f.close()
	return readBounded(f, f.size, limit)
}

// readBounded reads size bytes, at most limit.
func readBounded(r io.ReaderAt, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("got %d bytes; want at most %d: %w", size, limit, errLimit)
	}
	b := make([]byte, size)
	n, err := r.ReadAt(b, 0)
	if err != nil && (!errors.Is(err, io.EOF) || int64(n) != size) {
		return nil, clause(err)
	}
	return b[:n], nil
}

// text reads a tracker or marker: a line of text.
func (s *scan) text(path string) (string, error) {
	b, err := s.whole(path, s.opt.Limits.Text)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		return "", errors.New("got bytes that are no text; want a line of it")
	}
	return string(b), nil
}

// json reads a JSON document into v.
func (s *scan) json(path string, v any) error {
	b, err := s.whole(path, s.opt.Limits.JSON)
	if err != nil {
		return err
	}
	if err := unmarshal(b, v); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	return nil
}

// clause leaves the path out of an error, which stands beside it already.
func clause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}
