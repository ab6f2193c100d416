// SPDX-License-Identifier: Apache-2.0

package otlpfile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// value is one top-level JSON value, or what stood in the place of one.
type value struct {
	offset int64 // of its first byte
	data   []byte
	err    error // why data is not whole
}

// splitter cuts a stream into its top-level JSON values by counting braces. It
// holds one value at a time, of at most limit bytes.
type splitter struct {
	r       *bufio.Reader
	limit   int
	offset  int64
	buf     []byte
	depth   int
	quoted  bool
	escaped bool
	start   int64
	long    bool // the value exceeds the limit and is passed over
}

// readAhead must hold lineStart.
const readAhead = 256 << 10

// lineStart begins a batch of the file exporter. Raw newlines cannot stand in a
// JSON string, and an indented file has none of it at the start of a line: so
// within a value it shows that the value was cut short.
var lineStart = []byte(`{"resource`)

func newSplitter(r io.Reader, limit int) *splitter {
	return &splitter{r: bufio.NewReaderSize(r, readAhead), limit: limit}
}

// next returns the next value; its data is valid until the call after. The
// error is io.EOF at the end, else that of the reader.
func (s *splitter) next() (value, error) {
	s.buf, s.long = s.buf[:0], false
	for {
		b, err := s.r.ReadByte()
		if err != nil {
			return s.last(err)
		}
		s.offset++
		if s.depth == 0 {
			if v, ok := s.open(b); ok {
				return v, nil
			}
			continue
		}
		if b == '\n' && s.cutShort() {
			return s.take(fmt.Errorf("split value: it is cut short by the next line")), nil
		}
		s.keep(b)
		if s.step(b); s.depth == 0 {
			return s.take(s.tooLong()), nil
		}
	}
}

// open handles a byte between values; true where it is one that must not be there.
func (s *splitter) open(b byte) (value, bool) {
	switch b {
	case ' ', '\t', '\r', '\n', ',':
	case '{', '[':
		s.start, s.depth = s.offset-1, 1
		s.keep(b)
	default:
		at := s.offset - 1
		s.skipLine()
		return value{offset: at, err: fmt.Errorf("split value: got byte %q; want '{'", b)}, true
	}
	return value{}, false
}

// skipLine leaves what is no JSON up to the end of its line.
func (s *splitter) skipLine() {
	for {
		line, err := s.r.ReadSlice('\n')
		s.offset += int64(len(line))
		if err != bufio.ErrBufferFull { //nolint:errorlint // returned bare by bufio
			return
		}
	}
}

func (s *splitter) cutShort() bool {
	ahead, err := s.r.Peek(len(lineStart))
	return err == nil && bytes.Equal(ahead, lineStart)
}

// step follows quotes and braces.
func (s *splitter) step(b byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.quoted:
		s.escaped = b == '\\'
		s.quoted = b != '"'
	case b == '"':
		s.quoted = true
	case b == '{' || b == '[':
		s.depth++
	case b == '}' || b == ']':
		s.depth--
	}
}

func (s *splitter) keep(b byte) {
	if len(s.buf) >= s.limit {
		s.long = true
		return
	}
	s.buf = append(s.buf, b)
}

func (s *splitter) tooLong() error {
	if !s.long {
		return nil
	}
	return fmt.Errorf("split value: got more than %d bytes in one JSON value; want at most that: write smaller batches", s.limit)
}

// take ends the current value.
func (s *splitter) take(err error) value {
	s.depth, s.quoted, s.escaped = 0, false, false
	return value{offset: s.start, data: s.buf, err: err}
}

func (s *splitter) last(err error) (value, error) {
	if s.depth == 0 {
		return value{}, err
	}
	if err == io.EOF { //nolint:errorlint // returned bare by io.Reader
		return s.take(fmt.Errorf("split value: the file ends within it, at byte %d", s.offset)), nil
	}
	return s.take(fmt.Errorf("split value: %w", err)), nil
}
