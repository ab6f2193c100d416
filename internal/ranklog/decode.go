// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrBlank says that a log has NUL bytes alone: a file system or a rotation lost its content.
var ErrBlank = errors.New("got NUL bytes alone, as a crash of the node or logrotate's copytruncate leaves them; want text: take the rotated log or that of the container")

// Decode returns the text of a log: UTF-16 with a byte order mark as UTF-8, without the mark and without
// NUL bytes.
func Decode(r io.Reader) io.Reader { return newDecoder(r) }

func newDecoder(r io.Reader) *decoder {
	d := &decoder{in: bufio.NewReaderSize(r, maxLine)}
	mark, _ := d.in.Peek(3)
	switch {
	case bytes.HasPrefix(mark, []byte{0xff, 0xfe}):
		d.wide, d.high = true, 1
	case bytes.HasPrefix(mark, []byte{0xfe, 0xff}):
		d.wide, d.high = true, 0
	case bytes.Equal(mark, []byte("\xef\xbb\xbf")):
		_, _ = d.in.Discard(len(mark)) // it was read
	}
	if d.wide {
		_, _ = d.in.Discard(2)
	}
	return d
}

// decoder reads text.
type decoder struct {
	in   *bufio.Reader
	wide bool // UTF-16; high: the place of the higher byte of a unit
	high int
	nuls bool   // it left out some
	some bool   // it returned some
	last rune   // the first half of a character of two units; 0: none
	rest []byte // of a character that found no room
}

// Read implements io.Reader.
func (d *decoder) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil && len(p) > 0 {
		switch {
		case len(d.rest) > 0:
			n = copy(p, d.rest)
			d.rest = d.rest[n:]
		case d.wide && len(p) < utf8.UTFMax:
			var char [utf8.UTFMax]byte
			n, err = d.units(char[:])
			d.rest, n = char[:n], 0
		case d.wide:
			n, err = d.units(p)
		default:
			n, err = d.in.Read(p)
			n = d.withoutNULs(p[:n])
		}
	}
	d.some = d.some || n > 0
	return n, err
}

// blank reports whether there were NUL bytes alone.
func (d *decoder) blank() bool { return d.nuls && !d.some }

func (d *decoder) withoutNULs(p []byte) int {
	first := bytes.IndexByte(p, 0)
	if first < 0 {
		return len(p)
	}
	d.nuls = true
	n := first
	for _, c := range p[first:] {
		if c != 0 {
			p[n] = c
			n++
		}
	}
	return n
}

// units decodes as many units as are there and find room. p has room for a character.
func (d *decoder) units(p []byte) (n int, err error) {
	if _, err := d.in.Peek(2); err != nil { // an odd byte at the end is of a unit that is cut
		return 0, err
	}
	have, _ := d.in.Peek(min(d.in.Buffered(), len(p)) &^ 1)
	used := 0
	for used+1 < len(have) && n+utf8.UTFMax <= len(p) {
		c := rune(have[used+d.high])<<8 | rune(have[used+1-d.high])
		used += 2
		switch {
		case utf16.IsSurrogate(c) && d.last == 0:
			d.last = c
			continue
		case d.last != 0:
			c = utf16.DecodeRune(d.last, c)
			d.last = 0
		}
		if c == 0 {
			d.nuls = true
			continue
		}
		n += utf8.EncodeRune(p[n:], c)
	}
	_, err = d.in.Discard(used)
	return n, err
}
