// SPDX-License-Identifier: Apache-2.0

// Package terminal finds out how to render for a terminal.
package terminal

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"

	"github.com/lockstep-otel/lockstep/internal/report"
)

// Is reports whether what is written to w is seen at once by a person.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// StyleOf returns how to render for w: in colour only on a terminal that has
// it, and not where NO_COLOR is set (no-color.org); as wide as COLUMNS says, else
// as the terminal is.
func StyleOf(w io.Writer, env func(string) string) report.Style {
	var s report.Style
	if Is(w) {
		s.Color = env("NO_COLOR") == "" && env("TERM") != "dumb"
		if f, ok := w.(*os.File); ok {
			s.Width, _, _ = term.GetSize(int(f.Fd()))
		}
	}
	if n, err := strconv.Atoi(env("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	return s
}
