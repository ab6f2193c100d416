// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

const (
	// bufferSize of the scan: big enough that few events lie across its end.
	bufferSize = 256 << 10
	fileBuffer = 64 << 10
)

// source is a window on the uncompressed bytes.
type source struct {
	ctx      context.Context
	r        io.Reader
	buf      []byte
	pos, end int
	base     int64 // offset of buf[0]
	limit    int   // to which buf may grow
	eof      bool
	err      error // why reading ended, other than eof
}

func newSource(ctx context.Context, r io.Reader, limit int) *source {
	return &source{ctx: ctx, r: r, buf: make([]byte, min(bufferSize, limit)), limit: limit}
}

func (s *source) offset() int64 { return s.base + int64(s.pos) }

func (s *source) window() []byte { return s.buf[s.pos:s.end] }

// more reads further bytes behind the window; it fails when there are none, or
// when the window has reached its limit.
func (s *source) more() error {
	if s.eof {
		return io.ErrUnexpectedEOF
	}
	if s.err != nil {
		return s.err
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if err := s.makeRoom(); err != nil {
		return err
	}
	before := s.end
	s.fill()
	if s.end == before {
		return s.more()
	}
	return nil
}

// maxEmptyReads bounds the reads in a row that bring nothing.
const maxEmptyReads = 100

// fill reads until the buffer is full or the input ends.
func (s *source) fill() {
	for empty := 0; s.end < len(s.buf); {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if n > 0 {
			empty = 0
		} else if empty++; empty > maxEmptyReads && err == nil {
			err = io.ErrNoProgress
		}
		if err != nil {
			if s.eof = errors.Is(err, io.EOF); !s.eof {
				s.err = err
			}
			return
		}
	}
}

var errFull = errors.New("window is full")

func (s *source) makeRoom() error {
	if s.pos > 0 {
		copy(s.buf, s.buf[s.pos:s.end])
		s.base += int64(s.pos)
		s.end -= s.pos
		s.pos = 0
	}
	if s.end < len(s.buf) {
		return nil
	}
	if len(s.buf) >= s.limit {
		return errFull
	}
	grown := make([]byte, min(2*len(s.buf), s.limit))
	copy(grown, s.buf[:s.end])
	s.buf = grown
	return nil
}

// peek returns the next byte that is no white space, without taking it.
func (s *source) peek() (byte, error) {
	for {
		s.pos = min(skipSpace(s.buf[:s.end], s.pos), s.end)
		if s.pos < s.end {
			return s.buf[s.pos], nil
		}
		if err := s.more(); err != nil {
			return 0, err
		}
	}
}

// value calls f with the window until it does not want more bytes. errFull means
// that the value is longer than the window may grow.
func (s *source) value(f func(b []byte) (int, error)) error {
	for {
		n, err := f(s.window())
		if !errors.Is(err, errShort) {
			if err == nil {
				s.pos += n
			}
			return err
		}
		if err := s.more(); err != nil {
			return err
		}
	}
}

// skip passes over the value at the window's start, however long and deep it is.
func (s *source) skip() error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != '{' && c != '[' && c != '"' {
		return s.value(func(b []byte) (int, error) { return skipValue(b, 0) })
	}
	var sk skipper
	for {
		n, done := sk.feed(s.window())
		s.pos += n
		if done {
			return nil
		}
		if err := s.more(); err != nil {
			return err
		}
	}
}

// skipper finds the end of a value of any length and depth, window by window.
type skipper struct {
	depth             int64
	inString, escaped bool
}

// feed returns how many bytes belong to the value, and whether it ends there.
func (k *skipper) feed(b []byte) (n int, done bool) {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case k.escaped:
			k.escaped = false
			continue
		case k.inString && c == '\\':
			k.escaped = true
			continue
		case k.inString && c != '"':
			i += plainText(b[i:]) - 1
			continue
		case c == '"':
			k.inString = !k.inString
		case c == '{' || c == '[':
			k.depth++
		case c == '}' || c == ']':
			k.depth--
		default:
			continue
		}
		if k.depth <= 0 && !k.inString {
			return i + 1, true
		}
	}
	return len(b), false
}

// plainText returns the length of what comes before a quote or a backslash.
func plainText(b []byte) int {
	i := 0
	for i < len(b) && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// counter counts what is read through it.
type counter struct {
	r    io.Reader
	n    int64
	tell func(int64)
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if c.tell != nil && n > 0 {
		c.tell(c.n)
	}
	return n, err
}

// bounded reads as many bytes as are left, and fails where there are more.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left > 0 {
		n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
		return n, err
	}
	n, err := b.r.Read(make([]byte, 1))
	if n > 0 {
		return 0, ErrTooLarge
	}
	return 0, err
}

// uncompressed returns the plain content of r, and whether r is gzip.
func uncompressed(r io.Reader) (plain io.Reader, packed bool, err error) {
	b := bufio.NewReaderSize(r, fileBuffer)
	magic, err := b.Peek(2)
	if err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return b, false, nil //nolint:nilerr // what is wrong, if anything, is said by the scan
	}
	plain, err = gzip.NewReader(b)
	return plain, true, err
}
