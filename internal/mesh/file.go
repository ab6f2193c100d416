// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// maxFile is the most that is read: MaxMembers entries of 256 bytes.
const maxFile = 16 << 20

// File is a list in a file: lines as of Parse, with # before comments, or a JSON
// array of objects with node and address. It is read each time, so that a change
// counts however the file was replaced.
type File struct {
	path string
	port uint16
	// text is what last was read from.
	text []byte
	last List
}

// NewFile returns a source that has read nothing.
func NewFile(path string, port uint16) *File { return &File{path: path, port: port} }

// Members reads the file.
func (f *File) Members(context.Context) (List, error) {
	text, err := read(f.path)
	if err != nil {
		return List{}, fmt.Errorf("read members: %w", err)
	}
	if f.text == nil || !bytes.Equal(text, f.text) {
		l, err := parse(f.path, text, f.port)
		if err != nil {
			return List{}, fmt.Errorf("read members: %w", err)
		}
		f.text, f.last = text, l
	}
	l := f.last
	l.Members = slices.Clone(l.Members)
	return l, nil
}

func read(path string) ([]byte, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("read %s: got more than %d bytes", path, maxFile)
	}
	return text, err
}

// parse reads a list; entries that cannot be read are counted and left out.
func parse(name string, text []byte, port uint16) (List, error) {
	var l List
	var err error
	if t := bytes.TrimSpace(text); len(t) > 0 && t[0] == '[' {
		err = l.array(name, text, port)
	} else {
		l.lines(name, text, port)
	}
	l.order()
	if err == nil && len(l.Members) == 0 {
		err = fmt.Errorf("%s: %w", name, l.nobody())
	}
	if err != nil {
		return List{}, err
	}
	return l, nil
}

func (l *List) lines(name string, text []byte, port uint16) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line, _, _ = bytes.Cut(line, []byte("#"))
		if line = bytes.TrimSpace(line); len(line) > 0 {
			m, err := Parse(string(line), port)
			l.add(name, n, m, err)
		}
	}
}

func (l *List) add(name string, line int, m Member, err error) {
	if err != nil {
		l.problem(&l.Bad, fmt.Errorf("%s:%d: %w", name, line, err))
		return
	}
	l.keep(m)
}

func (l *List) array(name string, text []byte, port uint16) error {
	d := json.NewDecoder(bytes.NewReader(text))
	at := lineCounter{text: text}
	if _, err := d.Token(); err != nil { // the bracket
		return fmt.Errorf("%s: %w", name, err)
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return fmt.Errorf("%s:%d: %w", name, at.line(d.InputOffset()), err)
		}
		var e struct{ Node, Address string }
		var m Member
		err := json.Unmarshal(raw, &e)
		if err == nil {
			m, err = member(e.Node, e.Address, port)
		}
		l.add(name, at.line(d.InputOffset()), m, err)
	}
	if _, err := d.Token(); err != nil { // the other bracket
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("%s:%d: %w", name, at.line(d.InputOffset()), err)
	}
	return nil
}

// lineCounter tells lines of offsets that only grow.
type lineCounter struct {
	text []byte
	done int64
	n    int
}

func (c *lineCounter) line(offset int64) int {
	c.n += bytes.Count(c.text[c.done:offset], []byte("\n"))
	c.done = offset
	return c.n + 1
}
