// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// maxLine bounds what is held of one line. A longer line is read in pieces of this size.
	maxLine = 64 << 10
	// overlap is how much of a piece is read again with the next one, so that no text of the
	// watchdog is lost between two pieces: the longest has less than 1 KiB.
	overlap = 2 << 10
)

// ErrCut says that a compressed log ends in the middle. What it has in front of that is read.
var ErrCut = errors.New("got a compressed file that is cut; want its end: copy it again, or wait until it is written")

// eachLine calls do for each line. Progress bars end their lines with a carriage return alone, so
// that both characters end one; the number counts line feeds only, as editors do.
func eachLine(r io.Reader, do func(number int64, line []byte)) error {
	buf := make([]byte, 0, maxLine)
	number, searched := int64(1), 0 // searched: bytes of buf without an end of a line
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		rest := buf
		for {
			i := lineEnd(rest, searched)
			if i < 0 {
				break
			}
			do(number, rest[:i])
			if rest[i] == '\n' {
				number++
			}
			rest, searched = rest[i+1:], 0
		}
		if len(rest) == cap(buf) {
			do(number, rest)
			rest = rest[len(rest)-overlap:]
		}
		buf = buf[:copy(buf[:cap(buf)], rest)]
		searched = len(buf)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if len(buf) > 0 {
				do(number, buf)
			}
			if !errors.Is(err, io.EOF) {
				return ErrCut
			}
			return nil
		case err != nil:
			return fmt.Errorf("read log: %w", err)
		}
	}
}

// lineEnd returns where the first line ends, of which so many bytes were searched before; -1:
// nowhere.
func lineEnd(s []byte, searched int) int {
	end := bytes.IndexByte(s[searched:], '\n')
	if end >= 0 {
		s = s[:searched+end]
	}
	if bar := bytes.IndexByte(s[searched:], '\r'); bar >= 0 {
		return searched + bar
	}
	if end < 0 {
		return -1
	}
	return searched + end
}

// text returns a line without the colours of a terminal. It changes the line.
func text(line []byte) []byte {
	const escape, bell = 0x1b, 0x07
	if bytes.IndexByte(line, escape) < 0 {
		return line
	}
	out := line[:0]
	for i := 0; i < len(line); i++ {
		if line[i] != escape {
			out = append(out, line[i])
			continue
		}
		if i+1 == len(line) {
			break
		}
		switch line[i+1] {
		case '[':
			i += 2
			for i < len(line) && (line[i] < '@' || line[i] > '~') {
				i++
			}
		case ']': // a link or a title, up to BEL or ESC \
			i += 2
			for i < len(line) && line[i] != bell && line[i] != escape {
				i++
			}
			if i+1 < len(line) && line[i] == escape {
				i++
			}
		}
	}
	return out
}

// number reads the digits at the beginning of s, with a sign.
func number(s []byte) (n int64, length int, ok bool) {
	const most = 18 // digits that an int64 holds
	i, sign := 0, int64(1)
	if len(s) > 0 && s[0] == '-' {
		i, sign = 1, -1
	}
	for first := i; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		if i-first >= most {
			return 0, 0, false
		}
		n, ok = 10*n+int64(s[i]-'0'), true
	}
	return sign * n, i, ok
}

// after returns the number behind the first mark, which may follow spaces.
func after(s []byte, mark string) (int64, bool) {
	i := bytes.Index(s, []byte(mark))
	if i < 0 {
		return 0, false
	}
	n, _, ok := number(bytes.TrimLeft(s[i+len(mark):], " "))
	return n, ok
}
