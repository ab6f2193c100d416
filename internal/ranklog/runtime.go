// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// eachText calls do for each line that a process wrote, without what a container runtime or a collector of logs
// puts around it: objects of JSON, the marks of CRI, tables. From is where it is from, as far as these say. Lines
// that a runtime cut are joined. Turned is how many lines an export has that begins with the newest; 0: none.
func eachText(r io.Reader, do func(number int64, from string, line []byte)) (turned int64, err error) {
	in := bufio.NewReaderSize(r, maxLine)
	u := unwrapper{do: do, streams: map[streamOf]*cutLine{}}
	lines, ok, err := export(in, maxCollected)
	if !ok {
		err = eachLine(in, u.line)
	}
	if inOrder(lines) {
		turned = int64(len(lines))
	}
	for i := range lines {
		u.collected(int64(i+1), &lines[i])
	}
	u.end()
	return turned, err
}

// maxHeld bounds the bytes of the buffers of all streams. Only an unfinished line has a buffer: the end of the
// line drops it, and a line in one piece needs none.
const maxHeld = 64 << 20

// unwrapper takes the lines of a file.
type unwrapper struct {
	do      func(number int64, from string, line []byte)
	streams map[streamOf]*cutLine
	held    int      // bytes of the buffers of unfinished lines
	open    *cutLine // of which a piece begins this line of the file
	opened  int64
}

// streamOf is a stream of a process.
type streamOf struct {
	from   string
	stderr bool
}

// cutLine is the beginning of a line that goes on.
type cutLine struct {
	from   string
	text   []byte
	number int64
}

func (u *unwrapper) line(number int64, raw []byte) {
	if isDockerLine(raw) {
		text, rest := unescape(raw[len(dockerHead):])
		u.docker(number, "", text, bytes.Contains(rest, []byte(`"stream":"stderr"`)))
		return
	}
	if len(raw) > 0 && raw[0] == '{' {
		if c, ok := collectedOf(raw); ok {
			u.collected(number, &c)
			return
		}
	}
	if at, stderr, whole, ok := criMark(raw); ok {
		to := u.stream("", stderr)
		u.open, u.opened = nil, number
		switch {
		case !whole:
			u.hold(to, number, raw[at:])
			u.open = to
		case len(to.text) > 0:
			u.finish(to, number, raw[at:])
		default:
			u.do(number, "", raw)
		}
		return
	}
	if u.open != nil && number == u.opened { // behind a carriage return
		u.flush(u.open)
		u.hold(u.open, number, raw)
		return
	}
	u.do(number, "", raw)
}

// end passes on what is held of all streams, in the order of their lines.
func (u *unwrapper) end() {
	for _, to := range slices.SortedFunc(maps.Values(u.streams), func(a, b *cutLine) int { return cmp.Compare(a.number, b.number) }) {
		u.flush(to)
	}
	clear(u.streams)
	u.open = nil
}

// stream returns the stream of a process; the one of all, where there are too many. If too much is held, the
// lines that go on end here.
func (u *unwrapper) stream(from string, stderr bool) *cutLine {
	if u.held > maxHeld {
		u.end()
	}
	of := streamOf{from, stderr}
	to := u.streams[of]
	if to == nil {
		if len(u.streams) >= maxLabels {
			of.from = ""
		}
		if to = u.streams[of]; to == nil {
			of.from = strings.Clone(of.from) // it may be a part of a long text
			to = &cutLine{from: of.from}
			u.streams[of] = to
		}
	}
	return to
}

// collected takes a line of a collector of logs. A line feed at its end is left out by most of them; a piece
// is marked.
func (u *unwrapper) collected(number int64, c *collected) {
	to := u.stream(c.from, c.stderr)
	rest := u.lines(to, number, c.text)
	if c.partial {
		u.hold(to, number, rest)
		return
	}
	u.finish(to, number, rest)
}

// docker takes what a process wrote, up to the end of a line or to where Docker cut it.
func (u *unwrapper) docker(number int64, from string, text []byte, stderr bool) {
	to := u.stream(from, stderr)
	u.hold(to, number, u.lines(to, number, text))
}

// lines passes on the lines of a text that end in it, and returns what is behind them.
func (u *unwrapper) lines(to *cutLine, number int64, text []byte) (rest []byte) {
	for {
		end := lineEnd(text, 0)
		if end < 0 {
			return text
		}
		u.finish(to, number, text[:end])
		text = text[end+1:]
	}
}

// finish passes on a line that ends with a piece.
func (u *unwrapper) finish(to *cutLine, number int64, piece []byte) {
	switch {
	case len(to.text) > 0:
		u.hold(to, number, piece)
		u.flush(to)
	case len(piece) > 0:
		u.do(number, to.from, piece)
	}
}

// hold adds a piece. What is held of one line is bounded, as eachLine bounds it.
func (u *unwrapper) hold(to *cutLine, number int64, piece []byte) {
	if len(piece) == 0 {
		return
	}
	room := cap(to.text)
	if len(to.text) > 0 && len(to.text)+len(piece) > maxLine {
		u.do(number, to.from, to.text)
		to.text = append(to.text[:0], to.text[max(0, len(to.text)-overlap):]...)
	}
	to.text, to.number = append(to.text, piece...), number
	u.held += cap(to.text) - room
}

func (u *unwrapper) flush(to *cutLine) {
	if len(to.text) > 0 {
		u.do(to.number, to.from, to.text)
		u.held -= cap(to.text)
		to.text = nil
	}
}

// isDockerLine reports whether a line is one of Docker's json-file driver: a collector of logs adds more.
func isDockerLine(raw []byte) bool {
	return IsDocker(raw) && !bytes.Contains(raw, []byte(`"kubernetes":`)) && !bytes.Contains(raw, []byte(`"logtag":`)) && !bytes.Contains(raw, []byte(`"host`)) && !bytes.Contains(raw, []byte(`"pod`))
}

// dockerHead begins a line of Docker's json-file driver.
const dockerHead = `{"log":"`

// IsDocker reports whether content begins as a log of Docker's json-file driver.
func IsDocker(head []byte) bool { return bytes.HasPrefix(head, []byte(dockerHead)) }

// unescape reads a string of JSON up to its end, or as far as there is one. It changes s.
func unescape(s []byte) (text, rest []byte) {
	n := 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return s[:n], s[i+1:]
		case s[i] != '\\' || i+1 == len(s):
			s[n] = s[i]
			n++
		default:
			i++
			if s[i] == 'u' {
				c, length := codeUnits(s[i+1:])
				n = len(utf8.AppendRune(s[:n], c)) // it takes less than its digits
				i += length
				continue
			}
			s[n] = escaped(s[i])
			n++
		}
	}
	return s[:n], nil
}

// escaped is what follows a backslash.
func escaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return c
}

// codeUnits reads the digits of one unit of UTF-16. Halves of characters have no mark of a watchdog and
// are replaced.
func codeUnits(s []byte) (c rune, length int) {
	const digits = 4
	if len(s) >= digits {
		if n, err := strconv.ParseUint(string(s[:digits]), 16, 16); err == nil {
			return rune(n), digits
		}
	}
	return '?', 0
}

// criMark finds the mark of CRI: "2026-11-20T10:00:00.123456789Z stderr F ". At is where the text begins;
// whole: it goes to the end of its line.
func criMark(s []byte) (at int, stderr, whole, ok bool) {
	const least = len("2026-11-20T10:00:00Z stderr F")
	if len(s) < least || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[0] != '2' {
		return 0, false, false, false
	}
	end := bytes.IndexByte(s[:min(len(s), 2*least)], ' ')
	if end < 0 {
		return 0, false, false, false
	}
	rest := s[end+1:]
	switch {
	case bytes.HasPrefix(rest, []byte("stderr ")):
		stderr = true
	case !bytes.HasPrefix(rest, []byte("stdout ")):
		return 0, false, false, false
	}
	at = end + 1 + len("stderr ")
	if at >= len(s) || s[at] != 'F' && s[at] != 'P' || at+1 < len(s) && s[at+1] != ' ' {
		return 0, false, false, false
	}
	return min(at+2, len(s)), stderr, s[at] == 'F', true
}
