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
	"unicode/utf8"
)

const (
	// minName is how long a name is, bytes, that tells one machine or user from others.
	minName = 3
	// minSecret is how long a value is, bytes, that is looked for outside its element,
	// and within other words of what is no text: a shorter one is part of other numbers.
	minSecret = 6
)

// shaped are values that name a device wherever they are: a UUID, a PCI address, an
// address of a network device.
var shaped = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b|\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b`)

var uuid = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

var number = regexp.MustCompile(`^[0-9]*$`)

// common are values that name nothing, and names so common that they tell nothing and
// stand in texts for something else.
var common = map[string]bool{
	"": true, "N/A": true, "None": true, "Not Supported": true, "[N/A]": true,
	"localhost": true, "localdomain": true, "root": true, "user": true, "nobody": true, "ubuntu": true, "debian": true, "linux": true,
	"gpu": true, "node": true, "host": true, "rank": true, "ranks": true, "demo": true, "hangs": true, "nccl": true, "cupti": true,
	"cuda": true, "nvidia": true, "torch": true, "pytorch": true, "python": true, "python3": true, "lockstep": true, "parts": true,
	"name": true, "value": true, "text": true, "checks": true, "status": true, "kernel": true, "driver": true,
}

// prefixes stand before an id that is one without them, too.
var prefixes = []string{"GPU-", "MIG-"}

// Scrubber replaces values. Equal values get equal constants, different ones different,
// in all texts. Its methods may be called from several goroutines.
type Scrubber struct {
	mu        sync.Mutex
	constants map[string]string // by value, without prefix
	taken     map[string]bool   // constants, and values that are real
	everyword map[string]bool   // values that are replaced where they are a word
	raw       map[string]string // bytes of UUIDs
}

// New returns a scrubber that knows these names.
func New(names ...string) *Scrubber {
	s := &Scrubber{constants: map[string]string{}, taken: map[string]bool{}, everyword: map[string]bool{}, raw: map[string]string{}}
	for _, v := range names {
		s.Learn(v)
	}
	return s
}

// Learn has a name replaced from now on, where it is a word. One that tells nothing is
// left out: a common one, a number, one of less than three bytes. Of a UUID the 16 bytes
// are replaced, too.
func (s *Scrubber) Learn(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !common[strings.ToLower(name)] && len(name) >= minName && !number.MatchString(name) {
		s.everywhere(name)
	}
}

// everywhere has a value replaced where it is a word.
func (s *Scrubber) everywhere(value string) {
	value = bare(value)
	if common[value] {
		return
	}
	s.everyword[value] = true
	c := s.constant(value)
	if !uuid.MatchString(value) {
		return
	}
	from, err := hex.DecodeString(strings.ReplaceAll(value, "-", ""))
	to, err2 := hex.DecodeString(strings.ReplaceAll(c, "-", ""))
	if err == nil && err2 == nil {
		s.raw[string(from)] = string(to)
	}
}

// bare returns an id without its prefix.
func bare(value string) string {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(value, p); ok {
			return rest
		}
	}
	return value
}

// Text returns a text, or any bytes, of the same length without the values that are
// known and those that have the shape of an address. The error counts what is left.
func (s *Scrubber) Text(b []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text(b)
}

// String returns a text without what names the machine; where that cannot be had, none
// of it.
func (s *Scrubber) String(text string) string {
	clean, err := s.Text([]byte(text))
	if err != nil {
		return "left out: " + err.Error()
	}
	return string(clean)
}

// match is a part of a text that is replaced.
type match struct {
	from, to int
	constant string
}

func (s *Scrubber) text(b []byte) ([]byte, error) {
	out := bytes.Clone(b)
	end := 0
	for _, m := range s.matches(b) {
		if m.from >= end {
			copy(out[m.from:m.to], m.constant)
			end = m.to
		}
	}
	if n := len(s.known(out)); n > 0 {
		return nil, fmt.Errorf("scrub text: got %d values that name the machine; want none", n)
	}
	return out, nil
}

// matches returns all that is to be replaced, by place, the longest of each place first.
// They are found in the text as it came, so that no constant is taken for a value.
func (s *Scrubber) matches(b []byte) []match {
	found := s.known(b)
	eachAddress(b, func(from, to int) {
		value := string(b[from:to])
		if !s.taken[value] || s.constants[value] != "" {
			found = append(found, match{from, to, s.constant(value)})
		}
	})
	slices.SortFunc(found, func(x, y match) int { return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(y.to, x.to)) })
	return found
}

// known returns where values that are known are.
func (s *Scrubber) known(b []byte) (found []match) {
	text := utf8.Valid(b)
	for value := range maps.Keys(s.everyword) {
		c := s.constants[value]
		if c == value {
			continue
		}
		each(b, value, func(from, to int) {
			if isWord(b, from, to) || !text && len(value) >= minSecret {
				found = append(found, match{from, to, c})
			}
		})
	}
	for value, c := range s.raw {
		each(b, value, func(from, to int) { found = append(found, match{from, to, c}) })
	}
	return found
}

// each calls f with each place of a value.
func each(b []byte, value string, f func(from, to int)) {
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(value))
		if i < 0 {
			return
		}
		f(at+i, at+i+len(value))
		at += i + 1
	}
}

// isWord reports whether no letter or digit beside it makes it part of a longer word.
func isWord(b []byte, from, to int) bool {
	before := from > 0 && alphanumeric(b[from-1]) && alphanumeric(b[from])
	after := to < len(b) && alphanumeric(b[to]) && alphanumeric(b[to-1])
	return !before && !after
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// inAddress reports whether an address has such bytes.
func inAddress(c byte) bool {
	return c == '-' || c == ':' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// minAddress is the length of the shortest address that has a shape, 0000:00:00.0.
const minAddress = 12

// eachAddress calls f with the place of each part of b that has the shape of an address.
// Only runs of the bytes of addresses are matched, since rings are tens of megabytes.
func eachAddress(b []byte, f func(from, to int)) {
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
			first := max(from-1, 0)
			for _, m := range shaped.FindAllIndex(b[first:min(to+1, len(b))], -1) {
				f(first+m[0], first+m[1])
			}
		}
		from = to
	}
}

// constant returns what takes the value's place: letters and digits are 0, and the last
// digits number the values. It is no value that is known.
func (s *Scrubber) constant(value string) string {
	if common[value] {
		return value
	}
	if c, ok := s.constants[value]; ok {
		return c
	}
	s.taken[value] = true
	var c string
	for n := int64(len(s.constants) + 1); ; n++ {
		if c = numbered(value, strconv.FormatInt(n, 16)); !s.taken[c] || n > int64(len(s.constants)+1000) {
			break // a value of few bytes has few constants
		}
	}
	s.taken[c] = true
	s.constants[value] = c
	return c
}

// numbered returns the value with zeroes and a number for its letters and digits.
func numbered(value, number string) string {
	out := []byte(value)
	start := 0
	for _, prefix := range []string{"GPU-", "MIG-", "0x", "0X"} {
		if strings.HasPrefix(value, prefix) {
			start = len(prefix)
		}
	}
	for i := len(out) - 1; i >= start; i-- {
		switch c := out[i]; {
		case c == '-' || c == ':' || c == '.' || c == '/' || c == ' ' || c == '_':
		case number != "":
			out[i], number = number[len(number)-1], number[:len(number)-1]
		default:
			out[i] = '0'
		}
	}
	return string(out)
}
