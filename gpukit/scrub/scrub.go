// SPDX-License-Identifier: Apache-2.0

// Package scrub replaces what names a machine, its devices, its users or what it runs by
// constants of the same length and shape, so that evidence of a machine can be published
// and still be read by what reads the original.
package scrub

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// minSecret is how long a value is, bytes, that is looked for within other words: a
// shorter one, such as the bus "19", is part of other numbers.
const minSecret = 6

// minName is how long a machine's name is, bytes, that tells it from others.
const minName = 3

// shaped are values that name a device wherever they are: a UUID, a PCI address, an
// address of a network device.
var shaped = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b|\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b`)

var uuid = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// empty are values that name nothing.
var empty = map[string]bool{"": true, "N/A": true, "None": true, "Not Supported": true, "[N/A]": true, "localhost": true}

// Scrubber replaces values. Equal values get equal constants, different ones different,
// in all texts. Its methods may be called from several goroutines.
type Scrubber struct {
	mu        sync.Mutex
	constants map[string]string // by value
	words     map[string]bool   // values that are replaced where they are a word
}

// New returns a scrubber that knows these names. They are replaced where they are words.
func New(names ...string) *Scrubber {
	s := &Scrubber{constants: map[string]string{}, words: map[string]bool{}}
	for _, v := range names {
		s.Learn(v)
	}
	return s
}

// Learn has a name replaced from now on, where it is a word. A name that is too short to
// tell one machine from others is left out. Of a UUID the 16 bytes are replaced, too.
func (s *Scrubber) Learn(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if empty[name] || len(name) < minName {
		return
	}
	s.words[name] = true
	s.constant(name)
	if text := uuid.FindString(name); text != "" {
		s.binary(text)
	}
}

// binary has the 16 bytes of a UUID replaced by those of its constant.
func (s *Scrubber) binary(text string) {
	from, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil {
		return
	}
	to, err := hex.DecodeString(strings.ReplaceAll(s.constant(text), "-", ""))
	if err == nil {
		s.constants[string(from)] = string(to)
	}
}

// Text returns a text, or any bytes, of the same length without the values that are
// known and those that have the shape of an address. The error says how many are left.
func (s *Scrubber) Text(b []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text(b)
}

func (s *Scrubber) text(b []byte) ([]byte, error) {
	b = bytes.Clone(b)
	for _, value := range slices.SortedFunc(maps.Keys(s.words), longest) {
		replaceWords(b, []byte(value), []byte(s.constants[value]))
	}
	known := s.known()
	for _, value := range known {
		b = bytes.ReplaceAll(b, []byte(value), []byte(s.constants[value]))
	}
	made := map[string]bool{}
	for _, c := range s.constants {
		made[c] = true
	}
	eachAddress(b, func(v []byte) {
		if made[string(v)] || made["GPU-"+string(v)] {
			return
		}
		c := s.constant(string(v))
		made[c] = true
		copy(v, c)
	})
	if n := s.left(b, known); n > 0 {
		return nil, fmt.Errorf("scrub text: got %d values that name the machine; want none", n)
	}
	return b, nil
}

// replaceWords puts a constant of the same length in place of a value, where no letter or
// digit beside it makes it part of a longer word.
func replaceWords(b, value, constant []byte) {
	for at := 0; ; {
		i := bytes.Index(b[at:], value)
		if i < 0 {
			return
		}
		from, to := at+i, at+i+len(value)
		before := from > 0 && inWord(b[from-1]) && inWord(b[from])
		after := to < len(b) && inWord(b[to]) && inWord(b[to-1])
		if before || after {
			at = from + 1
			continue
		}
		copy(b[from:], constant)
		at = to
	}
}

func inWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// inAddress says whether an address has such bytes.
func inAddress(c byte) bool {
	return c == '-' || c == ':' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// minAddress is the length of the shortest address that has a shape, 0000:00:00.0.
const minAddress = 12

// eachAddress calls f with each part of b that has the shape of an address. Only runs of
// the bytes of addresses are matched, since rings are tens of megabytes.
func eachAddress(b []byte, f func([]byte)) {
	for from := 0; from < len(b); {
		if !inAddress(b[from]) {
			from++
			continue
		}
		to := from
		for to < len(b) && inAddress(b[to]) {
			to++
		}
		if to-from >= minAddress {
			// With the bytes beside it, which may make it part of a longer word.
			run := b[max(from-1, 0):min(to+1, len(b))]
			for _, m := range shaped.FindAllIndex(run, -1) {
				f(run[m[0]:m[1]])
			}
		}
		from = to
	}
}

// constant returns what takes the value's place: letters and digits are 0, and the last
// digits number the values.
func (s *Scrubber) constant(value string) string {
	if empty[value] {
		return value
	}
	if c, ok := s.constants[value]; ok {
		return c
	}
	out := []byte(value)
	start := 0
	for _, prefix := range []string{"GPU-", "MIG-", "0x", "0X"} {
		if strings.HasPrefix(value, prefix) {
			start = len(prefix)
		}
	}
	number := strconv.FormatInt(int64(len(s.constants)+1), 16)
	for i := len(out) - 1; i >= start; i-- {
		switch c := out[i]; {
		case c == '-' || c == ':' || c == '.' || c == '/' || c == ' ' || c == '_':
		case number != "":
			out[i], number = number[len(number)-1], number[:len(number)-1]
		default:
			out[i] = '0'
		}
	}
	s.constants[value] = string(out)
	return string(out)
}

func longest(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }

// known returns the values that are looked for everywhere, the longest first.
func (s *Scrubber) known() []string {
	values := slices.DeleteFunc(slices.Collect(maps.Keys(s.constants)), func(v string) bool {
		return len(v) < minSecret || s.words[v]
	})
	slices.SortFunc(values, longest)
	return values
}

// left counts the values in a text. One that is its own constant names nothing.
func (s *Scrubber) left(b []byte, values []string) (n int) {
	for _, v := range values {
		if s.constants[v] != v && bytes.Contains(b, []byte(v)) {
			n++
		}
	}
	return n
}
