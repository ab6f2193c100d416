// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"bytes"
	"errors"
)

// maxDepth bounds the nesting inside one event. Input Dims of tensor lists nest
// five deep; one bit per level must fit a word.
const maxDepth = 64

var (
	// errShort asks for more bytes: the value does not end in the buffer.
	errShort = errors.New("value is cut off")
	errDeep  = errors.New("value is nested too deeply")
)

// syntaxError is a fault at an offset into the bytes that were scanned.
type syntaxError struct {
	at   int
	what string
}

func (e *syntaxError) Error() string { return e.what }

func unexpected(at int, c byte, want string) error {
	return &syntaxError{at, "invalid JSON: got " + quoteByte(c) + "; want " + want}
}

func quoteByte(c byte) string {
	if c < 0x20 || c > 0x7e {
		const hex = "0123456789abcdef"
		return "byte 0x" + string([]byte{hex[c>>4], hex[c&15]})
	}
	return "'" + string(rune(c)) + "'"
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// shortString is how far a string is searched byte by byte: most keys and values
// are shorter than what a call of IndexByte costs.
const shortString = 16

// skipString returns the index behind the string that begins at b[i] == '"'.
func skipString(b []byte, i int) (int, error) {
	i++
	for end := min(i+shortString, len(b)); i < end && b[i] != '\\'; i++ {
		if b[i] == '"' {
			return i + 1, nil
		}
	}
	return skipLongString(b, i)
}

// skipLongString goes on inside of a string, at a byte that is not escaped.
func skipLongString(b []byte, start int) (int, error) {
	for i := start; ; i++ {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			return 0, errShort
		}
		i += j
		n := i
		for n > start && b[n-1] == '\\' {
			n--
		}
		if (i-n)%2 == 0 {
			return i + 1, nil
		}
	}
}

// skipValue returns the index behind the value that begins at b[i]. Of what is
// nested in it, strings and brackets are checked, the rest is not.
func skipValue(b []byte, i int) (int, error) {
	if i >= len(b) {
		return 0, errShort
	}
	switch c := b[i]; {
	case c == '"':
		return skipString(b, i)
	case c == '{' || c == '[':
		return skipNested(b, i)
	case c == '-' || (c >= '0' && c <= '9'):
		return skipNumber(b, i)
	default:
		return skipLiteral(b, i)
	}
}

func skipNumber(b []byte, i int) (int, error) {
	for i++; i < len(b); i++ {
		if c := b[i]; (c < '0' || c > '9') && c != '.' && c != 'e' && c != 'E' && c != '+' && c != '-' {
			return i, nil
		}
	}
	return 0, errShort
}

// literals include the spellings of numbers that JSON has no word for, and that
// Python and older Kineto write nevertheless.
var literals = [][]byte{[]byte("true"), []byte("false"), []byte("null"), []byte("NaN"), []byte("nan"), []byte("Infinity"), []byte("inf")}

func skipLiteral(b []byte, i int) (int, error) {
	for _, l := range literals {
		if n := min(len(l), len(b)-i); bytes.Equal(b[i:i+n], l[:n]) {
			if n < len(l) {
				return 0, errShort
			}
			return i + n, nil
		}
	}
	return 0, unexpected(i, b[i], "a value")
}

// structural are the bytes that matter to skipNested.
var structural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// skipNested passes over an object or array.
func skipNested(b []byte, i int) (int, error) {
	var stack uint64 // one bit a level: 1 is an object
	depth := 0
	for ; i < len(b); i++ {
		c := b[i]
		if !structural[c] {
			continue
		}
		switch c {
		case '"':
			end, err := skipString(b, i)
			if err != nil {
				return 0, err
			}
			i = end - 1
		case '{', '[':
			if depth == maxDepth {
				return 0, errDeep
			}
			depth++
			stack <<= 1
			if c == '{' {
				stack |= 1
			}
		case '}', ']':
			if (stack&1 == 1) != (c == '}') {
				return 0, unexpected(i, c, "the other closing bracket")
			}
			stack >>= 1
			if depth--; depth == 0 {
				return i + 1, nil
			}
		}
	}
	return 0, errShort
}

// members walks the members of an object that lies whole in b.
type members struct {
	b        []byte
	i        int
	started  bool
	key, val []byte // the key without its quotes, as written
	err      error
}

// next advances to the next member; false at the end, where i stands behind the
// object, or at an error.
func (m *members) next() bool {
	m.i = skipSpace(m.b, m.i)
	if m.i >= len(m.b) {
		return m.fail(errShort)
	}
	c := m.b[m.i]
	switch {
	case c == '}':
		m.i++
		return false
	case !m.started:
		m.started = true
	case c != ',':
		return m.fail(unexpected(m.i, c, "',' or '}'"))
	default:
		m.i = skipSpace(m.b, m.i+1)
	}
	return m.member()
}

func (m *members) member() bool {
	if m.i >= len(m.b) {
		return m.fail(errShort)
	}
	if m.b[m.i] != '"' {
		return m.fail(unexpected(m.i, m.b[m.i], "a key"))
	}
	end, err := skipString(m.b, m.i)
	if err != nil {
		return m.fail(err)
	}
	m.key = m.b[m.i+1 : end-1]
	if m.i = skipSpace(m.b, end); m.i >= len(m.b) {
		return m.fail(errShort)
	}
	if m.b[m.i] != ':' {
		return m.fail(unexpected(m.i, m.b[m.i], "':'"))
	}
	start := skipSpace(m.b, m.i+1)
	if end, err = skipValue(m.b, start); err != nil {
		m.i = start
		return m.fail(err)
	}
	m.val, m.i = m.b[start:end], end
	return true
}

func (m *members) fail(err error) bool {
	m.err = err
	return false
}

// object returns the walk over the object that begins at b[i] == '{'.
func object(b []byte, i int) members { return members{b: b, i: i + 1} }
