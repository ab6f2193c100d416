// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// private are names of elements in what nvidia-smi prints that name one machine, one
// device or what it runs.
var private = regexp.MustCompile(`(?i)serial|uuid|guid|board_id|process_name|^pci_(bus|device|domain)$|bus_id|^host_?(name|id)$|^(slot_number|tray_index)$`)

// SMI returns the answer of nvidia-smi -q -x without what names the machine. The error
// names what could not be removed; then nothing is returned.
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
