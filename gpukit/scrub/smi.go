// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// private are names of elements in what nvidia-smi prints that name one machine or one
// device; running those that name what it runs, which stands for something else in
// other texts.
var (
	private = regexp.MustCompile(`(?i)serial|uuid|guid|board_id|^pci_(bus|device|domain)$|bus_id|^host_?(name|id)$|^(slot_number|tray_index)$`)
	running = regexp.MustCompile(`(?i)process_name`)
)

// SMI returns the answer of nvidia-smi -q -x without what names the machine. What it
// finds in private elements is replaced in other texts, too. The error names what could
// not be removed; then nothing is returned.
func (s *Scrubber) SMI(answer []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	scrubbed, err := s.elements(answer)
	if err != nil {
		return nil, err
	}
	return s.text(scrubbed)
}

// elements replaces the texts of private elements and the ids of GPUs.
func (s *Scrubber) elements(answer []byte) ([]byte, error) {
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
					raw = bytes.ReplaceAll(raw, []byte(a.Value), []byte(s.element(a.Value)))
				}
			}
		case xml.EndElement:
			name = ""
		case xml.CharData:
			value := string(bytes.TrimSpace(raw))
			switch {
			case value == "":
			case running.MatchString(name):
				if path := string(bytes.TrimSpace(t)); telling(path) {
					s.everywhere(path)
				}
				raw = bytes.Replace(raw, []byte(value), []byte(numbered(value, "")), 1)
			case private.MatchString(name):
				raw = bytes.Replace(raw, []byte(value), []byte(s.element(value)), 1)
			}
		}
		out.Write(raw)
	}
}

// element returns what takes the place of a private value, which is replaced in other
// texts from now on if it is long enough to be no other's part.
func (s *Scrubber) element(value string) string {
	rest := bare(value)
	if len(rest) >= minSecret {
		s.everywhere(rest)
	}
	return strings.TrimSuffix(value, rest) + s.constant(rest)
}
