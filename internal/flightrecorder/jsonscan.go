// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// scan walks JSON that lies whole in memory. Nothing is kept of what is passed over.
type scan struct {
	b     []byte
	i     int
	depth int // of objects and lists within each other
	limit pickle.Limits
}

// syntax is a fault of the JSON.
func (s *scan) syntax(want string) error {
	if s.i >= len(s.b) {
		return fmt.Errorf("offset %d: got no more bytes; want %s: %w", s.i, want, pickle.ErrTruncated)
	}
	return fmt.Errorf("offset %d: got %q; want %s", s.i, s.b[s.i], want)
}

// peek returns the next byte that is no space; 0 at the end.
func (s *scan) peek() byte {
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; c {
		case ' ', '\n', '\r', '\t':
		default:
			return c
		}
	}
	return 0
}

func (s *scan) expect(c byte) error {
	if s.peek() != c {
		return s.syntax(string(rune(c)))
	}
	s.i++
	return nil
}

// string reads a string: a part of the input, unless it has escapes.
func (s *scan) string() ([]byte, error) {
	if s.peek() != '"' {
		return nil, s.syntax("a string")
	}
	start := s.i
	for i := start + 1; ; {
		j := bytes.IndexByte(s.b[i:], '"')
		if j < 0 {
			s.i = len(s.b)
			return nil, s.syntax("the end of a string")
		}
		i += j + 1
		back := i - 2
		for back > start && s.b[back] == '\\' {
			back--
		}
		if (i-2-back)%2 == 0 {
			s.i = i
			return s.unquote(start, i)
		}
	}
}

func (s *scan) unquote(start, end int) ([]byte, error) {
	text := s.b[start+1 : end-1]
	if len(text) > s.limit.Text {
		return nil, fmt.Errorf("offset %d: got a string of %d bytes; want at most %d", start, len(text), s.limit.Text)
	}
	if bytes.IndexByte(text, '\\') < 0 {
		return text, nil
	}
	var out string
	if err := json.Unmarshal(s.b[start:end], &out); err != nil {
		return nil, fmt.Errorf("offset %d: got a bad escape; want a string of JSON", start)
	}
	return []byte(out), nil
}

// maxNumber bounds the text of a number: those of doubles have 24 bytes.
const maxNumber = 40

// number returns the text of a number.
func (s *scan) number() ([]byte, error) {
	s.peek()
	start := s.i
	for s.i < len(s.b) {
		c := s.b[s.i]
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			break
		}
		s.i++
	}
	switch n := s.i - start; {
	case s.i == len(s.b) || n == 0:
		return nil, s.syntax("a value")
	case n > maxNumber:
		return nil, fmt.Errorf("offset %d: got a number of %d bytes; want at most %d", start, n, maxNumber)
	}
	return s.b[start:s.i], nil
}

var literals = [...]string{"true", "false", "null"}

func (s *scan) literal() (string, error) {
	s.peek()
	rest := s.b[s.i:]
	for _, l := range literals {
		if n := min(len(l), len(rest)); n > 0 && string(rest[:n]) == l[:n] {
			if s.i += n; n < len(l) {
				return "", s.syntax("a value")
			}
			return l, nil
		}
	}
	return "", s.syntax("a value")
}

func (s *scan) open(c byte) error {
	if err := s.expect(c); err != nil {
		return err
	}
	if s.depth++; s.depth > s.limit.Depth {
		return fmt.Errorf("offset %d: got values nested deeper than %d; want at most that", s.i-1, s.limit.Depth)
	}
	return nil
}

// object calls member for each key, which must read the value.
func (s *scan) object(member func(key []byte) error) error {
	if err := s.open('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		if c := s.peek(); c == '}' && first {
			break
		}
		name, err := s.string()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
		if s.peek() == ',' {
			s.i++
			continue
		}
		if s.peek() != '}' {
			return s.syntax("',' or '}'")
		}
		break
	}
	s.i++
	s.depth--
	return nil
}

// list calls element for each, which must read it.
func (s *scan) list(element func() error) error {
	if err := s.open('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		if c := s.peek(); c == ']' && first {
			break
		}
		if err := element(); err != nil {
			return err
		}
		if s.peek() == ',' {
			s.i++
			continue
		}
		if s.peek() != ']' {
			return s.syntax("',' or ']'")
		}
		break
	}
	s.i++
	s.depth--
	return nil
}

// skip passes over a value and returns how many members or elements it has, 1 for
// anything else.
func (s *scan) skip() (n int, err error) {
	switch c := s.peek(); {
	case c == '{':
		err = s.object(func([]byte) error { n++; _, err := s.skip(); return err })
		return n, err
	case c == '[':
		err = s.list(func() error { n++; _, err := s.skip(); return err })
		return n, err
	case c == '"':
		_, err = s.string()
	case c == '-' || c >= '0' && c <= '9':
		_, err = s.number()
	default:
		_, err = s.literal()
	}
	return 1, err
}

// field is a number, text or truth that stands for a field of an entry.
type field struct {
	kind byte // '"', '0' a number, 't', 'f', 'n', or the bracket of what was passed over
	text []byte
}

func (s *scan) field() (f field, err error) {
	switch c := s.peek(); {
	case c == '"':
		f.kind = '"'
		f.text, err = s.string()
	case c == '-' || c >= '0' && c <= '9':
		f.kind = '0'
		f.text, err = s.number()
	case c == '{' || c == '[':
		f.kind = c
		_, err = s.skip()
	default:
		var l string
		if l, err = s.literal(); err == nil {
			f.kind = l[0]
		}
	}
	return f, err
}

// int returns a whole number, written as such or as a string.
func (f field) int() (int64, bool) {
	if f.kind != '0' && f.kind != '"' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(f.text), 10, 64)
	return n, err == nil
}

func (f field) float() (float64, bool) {
	if f.kind != '0' {
		return 0, false
	}
	x, err := strconv.ParseFloat(string(f.text), 64)
	return x, err == nil && !math.IsInf(x, 0)
}
