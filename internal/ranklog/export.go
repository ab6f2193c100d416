// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxCollected bounds the bytes of an export that is sorted in memory.
const maxCollected = 256 << 20

// isLoki reports whether content begins as an answer of Loki.
func isLoki(head []byte) bool {
	return bytes.HasPrefix(head, []byte("{")) && bytes.Contains(head, []byte(`"data"`)) && bytes.Contains(head, []byte(`"result"`)) && bytes.Contains(head, []byte(`"stream`))
}

// isExport reports whether content begins as an array of objects.
func isExport(head []byte) bool {
	rest, ok := bytes.CutPrefix(head, []byte("["))
	if !ok {
		return false
	}
	if rest = bytes.TrimLeft(rest, " \t\r\n"); !bytes.HasPrefix(rest, []byte("{")) {
		return false
	}
	var raw map[string]json.RawMessage
	if json.NewDecoder(bytes.NewReader(rest)).Decode(&raw) != nil {
		return false
	}
	_, ok = ofMembers(membersOf(raw))
	return ok
}

// columns are the columns of a table of lines: of the text, and of those that say more.
func columnsOf(head []byte) (names []string, ok bool) {
	first, _, _ := bytes.Cut(head, []byte("\n"))
	if bytes.IndexByte(first, ',') < 0 || len(first) > maxLabel {
		return nil, false
	}
	r := csv.NewReader(bytes.NewReader(first))
	names, err := r.Read()
	if err != nil {
		return nil, false
	}
	m := members{}
	for i, name := range names {
		names[i] = strings.ToLower(strings.TrimSpace(name))
		m[names[i]] = nil
	}
	has := func(name string) bool { _, ok := m[name]; return ok }
	return names, slices.ContainsFunc(messageKeys, has) && slices.ContainsFunc(companions, has)
}

// errDocument says that an export cannot be read.
var errDocument = errors.New("want an array of objects, an answer of Loki, a table with a header, or one object a line")

// export reads the lines of an export that is one document: an answer of Loki, an array of objects or a
// table. ok is false where content begins as none.
func export(r *bufio.Reader, limit int64) (lines []collected, ok bool, err error) {
	head, _ := r.Peek(maxLine)
	start := bytes.TrimLeft(head, " \t\r\n")
	in := &io.LimitedReader{R: r, N: limit + 1}
	switch names, table := columnsOf(start); {
	case isLoki(start):
		lines, err = ofLoki(in)
	case isExport(start):
		lines, err = ofArray(in)
	case table:
		lines, err = ofTable(in, names)
	case descends(head):
		lines, err = ofObjects(in)
	default:
		return nil, false, nil
	}
	if err == nil && in.N <= 0 {
		err = fmt.Errorf("got more than %d MiB; %w", limit>>20, errDocument)
	}
	if err != nil {
		err = fmt.Errorf("read export of logs: %w", err)
	}
	return lines, true, err
}

// descends reports whether content begins as objects of JSON, one a line, from the newest to the oldest.
func descends(head []byte) bool {
	if len(head) == 0 || head[0] != '{' {
		return false
	}
	first, rest, _ := bytes.Cut(head, []byte("\n"))
	a, ok := collectedOf(first)
	if !ok {
		return false
	}
	whole := rest[:max(bytes.LastIndexByte(rest, '\n'), 0)]
	b, ok := collectedOf(whole[bytes.LastIndexByte(whole, '\n')+1:])
	return ok && len(a.time) == len(b.time) && a.time > b.time
}

// ofObjects reads objects of JSON, one a line.
func ofObjects(r io.Reader) (lines []collected, err error) {
	err = eachLine(r, func(_ int64, line []byte) {
		c, ok := collectedOf(line)
		if !ok {
			c.text = bytes.Clone(line)
		}
		lines = append(lines, c)
	})
	return lines, err
}

func ofLoki(r io.Reader) (lines []collected, err error) {
	var answer struct {
		Data struct {
			Result []struct {
				Stream map[string]json.RawMessage `json:"stream"`
				Values [][]json.RawMessage        `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	d := json.NewDecoder(r)
	if err := d.Decode(&answer); err != nil {
		return nil, errExport(err)
	}
	for i := range answer.Data.Result {
		stream := &answer.Data.Result[i]
		from := membersOf(stream.Stream).from()
		for _, v := range stream.Values {
			c := collected{from: from}
			var text string
			if len(v) < 2 || json.Unmarshal(v[0], &c.time) != nil || json.Unmarshal(v[1], &text) != nil {
				continue
			}
			c.text = []byte(text)
			lines = append(lines, c)
		}
	}
	slices.SortStableFunc(lines, func(a, b collected) int {
		return cmp.Or(len(a.time)-len(b.time), strings.Compare(a.time, b.time)) // whole numbers
	})
	return lines, noMore(d)
}

func ofArray(r io.Reader) (lines []collected, err error) {
	d := json.NewDecoder(r)
	if _, err := d.Token(); err != nil {
		return nil, errExport(err)
	}
	for d.More() {
		var raw map[string]json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return lines, errExport(err)
		}
		if c, ok := ofMembers(membersOf(raw)); ok {
			lines = append(lines, c)
		}
	}
	if _, err := d.Token(); err != nil {
		return lines, errExport(err)
	}
	return lines, noMore(d)
}

// noMore refuses what follows a document: it would be lost.
func noMore(d *json.Decoder) error {
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("got text behind the document; %w", errDocument)
	}
	return nil
}

// errExport says what is wrong with an export, without the words of encoding/json.
func errExport(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("got a document that is cut, or of more than %d MiB; %w", maxCollected>>20, errDocument)
	}
	return fmt.Errorf("got damaged JSON; %w", errDocument)
}

func ofTable(in io.Reader, names []string) (lines []collected, err error) {
	r := csv.NewReader(in)
	r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = true, -1, true
	if _, err := r.Read(); err != nil {
		return nil, fmt.Errorf("got a damaged header; %w", errDocument)
	}
	for {
		values, err := r.Read()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return lines, fmt.Errorf("got a damaged table; %w", errDocument)
		}
		m := members{}
		for i, v := range values[:min(len(values), len(names))] {
			raw := json.RawMessage(v) // labels are an object of JSON
			if !json.Valid(raw) || raw[0] != '{' {
				raw, _ = json.Marshal(v) // a string always encodes
			}
			m[names[i]] = raw
		}
		if c, ok := ofMembers(m); ok {
			lines = append(lines, c)
		}
	}
}

// inOrder turns lines round that are exported from the newest to the oldest.
func inOrder(lines []collected) (turned bool) {
	n := len(lines)
	if n < 2 || len(lines[0].time) != len(lines[n-1].time) || lines[0].time <= lines[n-1].time {
		return false
	}
	slices.Reverse(lines)
	return true
}
