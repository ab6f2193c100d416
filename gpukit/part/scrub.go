// SPDX-License-Identifier: Apache-2.0

package part

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// minSecret is how long a value is, bytes, that is looked for outside its element: a
// shorter one, such as the bus "19", is part of other numbers.
const minSecret = 6

// private are names of elements in what nvidia-smi prints that name one machine, one
// device or what it runs.
var private = regexp.MustCompile(`(?i)serial|uuid|guid|board_id|process_name|^pci_(bus|device|domain)$|bus_id|^host_?(name|id)$|^(slot_number|tray_index)$`)

// shaped are values that name a device wherever they are: a UUID, a PCI address, an
// InfiniBand GUID, an address of a network device.
var shaped = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b|\b0x[0-9a-f]{16}\b|\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b`)

// empty are values that name nothing.
var empty = map[string]bool{"": true, "N/A": true, "None": true, "Not Supported": true, "[N/A]": true}

// scrubber replaces what names a machine, a device or a program by constants of the same
// shape. Equal values get equal constants, different ones different.
type scrubber struct {
	constants map[string]string         // by value
	words     map[string]*regexp.Regexp // short values that are replaced where they are a word
}

// newScrubber returns one that knows names of this machine.
func newScrubber(names ...string) *scrubber {
	s := &scrubber{constants: map[string]string{}, words: map[string]*regexp.Regexp{}}
	for _, v := range names {
		if s.constant(v); v != "" && len(v) < minSecret {
			s.words[v] = regexp.MustCompile(`\b` + regexp.QuoteMeta(v) + `\b`)
		}
	}
	return s
}

// thisMachine returns a scrubber that knows the names of the machine it runs on.
func thisMachine() *scrubber {
	host, _ := os.Hostname() // empty where there is none
	id, _ := os.ReadFile("/etc/machine-id")
	return newScrubber(host, strings.TrimSpace(string(id)))
}

// Scrub returns a text without the names of this machine and without addresses of
// devices.
func Scrub(text []byte) ([]byte, error) { return thisMachine().text(text) }

// constant returns what takes the value's place: letters and digits are 0, and the last
// digits number the values.
func (s *scrubber) constant(value string) string {
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

// smi returns the answer of nvidia-smi -q -x without what names the machine. The error
// names what could not be removed; then nothing is returned.
func (s *scrubber) smi(answer []byte) ([]byte, error) {
	scrubbed, err := s.elements(answer)
	if err != nil {
		return nil, err
	}
	return s.text(scrubbed)
}

// elements replaces the texts of private elements and the ids of GPUs.
func (s *scrubber) elements(answer []byte) ([]byte, error) {
	var out bytes.Buffer
	d := xml.NewDecoder(bytes.NewReader(answer))
	var name string
	for at := int64(0); ; {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, fmt.Errorf("scrub nvidia-smi: %w", err)
		}
		raw := answer[at:d.InputOffset()]
		at = d.InputOffset()
		switch t := token.(type) {
		case xml.StartElement:
			name = t.Name.Local
			for _, a := range t.Attr {
				if a.Name.Local == "id" {
					raw = bytes.ReplaceAll(raw, []byte(a.Value), []byte(s.constant(a.Value)))
				}
			}
		case xml.EndElement:
			name = ""
		case xml.CharData:
			if value := string(bytes.TrimSpace(raw)); private.MatchString(name) && value != "" {
				s.constant(string(bytes.TrimSpace(t))) // as other texts have it
				raw = bytes.Replace(raw, []byte(value), []byte(s.constant(value)), 1)
			}
		}
		out.Write(raw)
	}
}

// text returns any text without the values that are known and those that have the shape
// of an address. The error says how many are left.
func (s *scrubber) text(b []byte) ([]byte, error) {
	known := s.known()
	for _, value := range known {
		b = bytes.ReplaceAll(b, []byte(value), []byte(s.constants[value]))
	}
	for value, word := range s.words {
		b = word.ReplaceAllLiteral(b, []byte(s.constants[value]))
	}
	made := map[string]bool{}
	for _, c := range s.constants {
		made[c] = true
	}
	b = shaped.ReplaceAllFunc(b, func(v []byte) []byte {
		if made[string(v)] || made["GPU-"+string(v)] {
			return v
		}
		c := s.constant(string(v))
		made[c] = true
		return []byte(c)
	})
	if n := s.left(b, known); n > 0 {
		return nil, fmt.Errorf("scrub text: got %d values that name the machine; want none", n)
	}
	return b, nil
}

// known returns the values that are looked for everywhere, the longest first.
func (s *scrubber) known() []string {
	values := slices.DeleteFunc(slices.Collect(maps.Keys(s.constants)), func(v string) bool { return len(v) < minSecret })
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return values
}

// left counts the values in a text. One that is its own constant names nothing.
func (s *scrubber) left(b []byte, values []string) (n int) {
	for _, v := range values {
		if s.constants[v] != v && bytes.Contains(b, []byte(v)) {
			n++
		}
	}
	return n
}
