// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// ParseAnswers reads the answers of one file, as ncclras prints them, in text or JSON: one behind
// another, or in a list of JSON. Lines that it does not know are passed over. It reads at most limit
// bytes. With an error it returns the answers in front of the fault.
func ParseAnswers(in io.Reader, limit int64) ([]*Status, error) {
	r := answerReader{in: bufio.NewReaderSize(&limited{in: in, left: limit, limit: limit}, maxProseLine)}
	if err := r.all(); err != nil {
		return r.text.all, fmt.Errorf("read status: %w", err)
	}
	if r.text.answered(); len(r.text.all) == 0 {
		return nil, errors.New(`read status: got no answer; want the output of ncclras, which begins with "NCCL version" or, in JSON, has "communicators"`)
	}
	return r.text.all, nil
}

// answerReader divides a file into answers.
type answerReader struct {
	in    *bufio.Reader
	text  proseParser // has the answers in JSON as well
	lines int         // that were read as text
	bytes int64       // that were read in all
	list  bool        // the file is a list in JSON
	open  bool        // its end was not read yet
}

func (r *answerReader) all() error {
	if mark, _ := r.in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		r.discard(3)
	}
	// Only here and behind an answer in JSON may another begin within a line.
	next, err := r.between()
	if next == '[' {
		if r.list = r.opensList(); r.list {
			r.open = true
			r.discard(1)
			next, err = r.between()
		}
	}
	for err == nil {
		if next == '{' && r.begins() {
			if err = r.json(); err == nil {
				next, err = r.between()
			}
			continue
		}
		if err = r.line(); err == nil {
			next, err = r.peek()
		}
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if r.open {
		return fmt.Errorf("got %d answers, and the list has no end: the file is cut off; save the whole output", len(r.text.all))
	}
	return nil
}

func (r *answerReader) discard(n int) {
	_, _ = r.in.Discard(n) // it was peeked at
	r.bytes += int64(n)
}

func (r *answerReader) peek() (byte, error) {
	head, err := r.in.Peek(1)
	if err != nil {
		return 0, err
	}
	return head[0], nil
}

// between passes over blanks, and in a list over what stands between its elements.
func (r *answerReader) between() (byte, error) {
	for {
		b, err := r.peek()
		switch {
		case err != nil:
			return 0, err
		case bytes.IndexByte([]byte(" \t\r\n"), b) >= 0, r.open && b == ',':
		case r.open && b == ']':
			r.open = false
		default:
			return b, nil
		}
		r.discard(1)
	}
}

// opensList reports whether a bracket opens a list of objects: logs begin lines with one as well.
func (r *answerReader) opensList() bool {
	for n := 2; n <= maxProseLine; n++ {
		head, err := r.in.Peek(n)
		if err != nil {
			return false // read as text
		}
		switch head[n-1] {
		case ' ', '\t', '\r', '\n':
		case '{', ']':
			return true
		default:
			return false
		}
	}
	return false
}

// firstKey is how an answer in JSON begins, as ncclras writes it or with its keys sorted.
var firstKey = regexp.MustCompile(`^\{\s*"(?:nccl_version|communicators(?:_count)?|cuda_\w+|timestamp|ras)"`)

// begins reports whether an object is an answer: a file that begins with one is, and all of a list are.
func (r *answerReader) begins() bool {
	if r.list || r.lines == 0 && len(r.text.all) == 0 {
		return true
	}
	const keyWithin = 256
	head, _ := r.in.Peek(keyWithin)
	return firstKey.Match(head)
}

// line reads a line of text.
func (r *answerReader) line() error {
	text, err := r.in.ReadSlice('\n')
	r.bytes += int64(len(text))
	r.lines++
	if err != nil && (len(text) == 0 || !errors.Is(err, io.EOF)) {
		if errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("line %d: got more than %d bytes; want the output of ncclras", r.lines, maxProseLine)
		}
		return err
	}
	if err := r.text.line(strings.TrimRight(string(text), " \t\r\n")); err != nil {
		return fmt.Errorf("line %d: %w", r.lines, err)
	}
	return nil
}

// json reads an answer in JSON.
func (r *answerReader) json() error {
	r.text.answered()
	number := len(r.text.all) + 1
	if number > maxAnswers {
		return fmt.Errorf("got more than %d answers: %w", maxAnswers, errTooLarge)
	}
	at := r.bytes
	value := object{in: r.in}
	s, err := parseObject(&value)
	r.bytes += value.read
	r.lines += value.lines
	if err != nil {
		return fmt.Errorf("answer %d, from byte %d: %w", number, at, inWords(err))
	}
	r.text.all = append(r.text.all, s)
	return nil
}

// inWords says of JSON that cannot be read what a person does.
func inWords(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the file is cut off within it; want the whole output of ncclras -f json: save it once more")
	case errors.As(err, &kind):
		return fmt.Errorf("got a %s as %q; want another kind of value, as ncclras -f json writes it", kind.Value, kind.Field)
	case errors.As(err, &syntax):
		return errors.New("it is damaged; want the whole output of ncclras -f json, with nothing else between its lines")
	}
	return err
}

// object reads the bytes of one JSON object, and none behind it.
type object struct {
	in    *bufio.Reader
	read  int64
	lines int
	depth int
	// within is whether it is within a string, escaped whether the byte before was a backslash there.
	within, escaped, done bool
}

// Read implements io.Reader.
func (o *object) Read(to []byte) (int, error) {
	if o.done {
		return 0, io.EOF
	}
	if _, err := o.in.Peek(1); err != nil {
		return 0, err
	}
	have, _ := o.in.Peek(min(len(to), o.in.Buffered()))
	n := copy(to, have[:o.part(have)])
	_, _ = o.in.Discard(n) // it was peeked at
	o.read += int64(n)
	return n, nil
}

// part returns how many of the bytes belong to the object.
func (o *object) part(have []byte) int {
	for i, b := range have {
		switch {
		case b == '\n':
			o.lines++
			o.escaped = false
		case o.escaped:
			o.escaped = false
		case b == '"':
			o.within = !o.within
		case o.within:
			o.escaped = b == '\\'
		case b == '{', b == '[':
			o.depth++
		case b == '}', b == ']':
			if o.depth--; o.depth <= 0 {
				o.done = true
				return i + 1
			}
		}
	}
	return len(have)
}
