// SPDX-License-Identifier: Apache-2.0

package inspector

import "bytes"

// Place is where a line stands in its file.
type Place struct {
	Offset int64 `json:"offset"` // bytes, of the line's beginning
	Number int64 `json:"number"` // of the line, from 1
}

// Line is one line of a file, without its end.
type Line struct {
	Place
	Text []byte // valid until the call ends
	// TooLong: Text is the first bytes of a line that is longer than the limit.
	TooLong bool
	// Gap is how many NUL bytes stand before or in the line. A writer whose file was
	// cut to nothing behind its back goes on at its old place, and leaves a hole.
	Gap int64
	// Torn is how many bytes in front of the gap belonged to a line without an end.
	Torn int
}

// headBytes is how much is kept of a line that is too long: enough to tell what
// kind of line it was.
const headBytes = 256

// SplitState is what a Splitter needs to go on.
type SplitState struct {
	Place
	Gap      int64 `json:"gap,omitempty"`
	Torn     int   `json:"torn,omitempty"`
	Skipping bool  `json:"skipping,omitempty"` // a line that was begun in its middle
}

// Next is the offset of the byte to be fed first.
func (s *SplitState) Next() int64 { return s.Offset + s.Gap + int64(s.Torn) }

// Splitter cuts a stream into lines and holds at most Max bytes.
type Splitter struct {
	Max int

	at       Place // of the line that is incomplete
	buf      []byte
	dropped  int64 // bytes of it that were not kept
	gap      int64
	torn     int
	skipping bool // to the next end of line, without a word
}

// NewSplitter returns a splitter that goes on from a state; the zero state is the
// beginning of a file.
func NewSplitter(limit int, s SplitState) *Splitter {
	if s.Number == 0 {
		s.Number = 1
	}
	return &Splitter{Max: limit, at: s.Place, gap: s.Gap, torn: s.Torn, skipping: s.Skipping}
}

// State is where to go on: an incomplete line is fed again.
func (s *Splitter) State() SplitState {
	return SplitState{Place: s.at, Gap: s.gap, Torn: s.torn, Skipping: s.skipping}
}

// Next is the offset of the next byte to be fed.
func (s *Splitter) Next() int64 {
	return s.at.Offset + s.gap + int64(s.torn) + int64(len(s.buf)) + s.dropped
}

// Pending is how many bytes wait for the end of their line.
func (s *Splitter) Pending() int64 {
	if s.skipping {
		return 0
	}
	return int64(len(s.buf)) + s.dropped
}

// Feed takes the next bytes and calls line for each line that ends in them.
func (s *Splitter) Feed(chunk []byte, line func(Line)) {
	for len(chunk) > 0 {
		i := bytes.IndexByte(chunk, '\n')
		if i < 0 {
			s.take(chunk)
			return
		}
		s.take(chunk[:i])
		s.end(line)
		chunk = chunk[i+1:]
	}
}

func (s *Splitter) take(part []byte) {
	if s.skipping {
		s.dropped += int64(len(part))
		return
	}
	if i := bytes.LastIndexByte(part, 0); i >= 0 {
		text := bytes.Trim(part[:i], "\x00")
		// What was kept before, and what stands among the NULs, has no end.
		s.torn += len(s.buf) + int(s.dropped) + len(text)
		s.gap += int64(i + 1 - len(text))
		s.buf, s.dropped = s.buf[:0], 0
		part = part[i+1:]
	}
	room := s.Max - len(s.buf)
	if s.dropped > 0 {
		room = 0
	}
	if len(part) > room {
		s.dropped += int64(len(part) - room)
		part = part[:room]
	}
	s.buf = append(s.buf, part...)
}

func (s *Splitter) end(line func(Line)) {
	next := Place{s.Next() + 1, s.at.Number + 1}
	if !s.skipping && (len(s.buf) > 0 || s.gap > 0) {
		l := Line{Place: s.at, Text: bytes.TrimSuffix(s.buf, []byte{'\r'}), Gap: s.gap, Torn: s.torn}
		if s.dropped > 0 {
			l.TooLong, l.Text = true, s.buf[:min(len(s.buf), headBytes)]
		}
		line(l)
	}
	s.at, s.buf, s.dropped, s.gap, s.torn, s.skipping = next, s.buf[:0], 0, 0, 0, false
}
