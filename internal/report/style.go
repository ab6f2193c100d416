// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Width limits, columns. Below 80 the table of ranks does not fit, and 80 is what
// files and pagers are read in; above 120 lines are hard to follow.
const (
	MinWidth     = 80
	DefaultWidth = 80
	MaxWidth     = 120
)

// Style says how to render.
type Style struct {
	Width int // columns; 0 is DefaultWidth, others are clamped to the limits
	Color bool
}

// Columns returns how wide lines are.
func (s Style) Columns() int {
	if s.Width == 0 {
		return DefaultWidth
	}
	return min(max(s.Width, MinWidth), MaxWidth)
}

// Attributes of Paint: SGR parameters of ECMA-48 that every terminal knows.
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "1;31"
	Green  = "1;32"
	Yellow = "33"
)

// Paint wraps text in a terminal attribute. Without colour it returns the text as it is.
func (s Style) Paint(sgr, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

// Wrap breaks text between words so that no line exceeds width, in columns, which a
// single longer word may. It returns at least one line.
func Wrap(text string, width int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case used == 0:
			line, used = word, n
		case used+1+n > width:
			lines = append(lines, line)
			line, used = word, n
		default:
			line, used = line+" "+word, used+1+n
		}
	}
	return append(lines, line)
}

// Clean replaces characters that control, or that nobody sees and that turn the
// direction of what follows: names come from files that others wrote, and must
// not drive the terminal, nor show another order than they have.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}

// Cut shortens s to at most n columns, from 1.
func Cut(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Limits of what others wrote, columns. A C++ kernel's name with its template
// arguments runs to kilobytes and says what it is in its first words; a text of
// 1,200 columns fills half a screen.
const (
	MaxName = 120
	MaxText = 1200
)

// ShortName shortens the name of an operation, a host or a communicator.
func ShortName(s string) string { return Cut(s, MaxName) }

// PadLeft puts spaces before s, so that it has n columns or more.
func PadLeft(s string, n int) string {
	return strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s))) + s
}

// PadRight puts spaces behind s, so that it has n columns or more.
func PadRight(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}

// CutMiddle shortens a name and keeps its end, where the number stands that tells it from
// others of the same description.
func CutMiddle(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	end := n / 3
	return string(runes[:n-end-1]) + "…" + string(runes[len(runes)-end:])
}
