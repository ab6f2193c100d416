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
	is := false
	withDescriptor(w, func(fd int) { is = term.IsTerminal(fd) })
	return is
}

// withDescriptor calls use where w is a file. It does without [os.File.Fd], which makes writes to a pipe
// block the thread: closing the file does not end them then.
func withDescriptor(w io.Writer, use func(fd int)) {
	f, ok := w.(*os.File)
	if !ok {
		return
	}
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { use(int(fd)) })
	}
}

// StyleOf returns how to render for w: in colour only on a terminal that has
// it, and not where NO_COLOR is set (no-color.org); as wide as COLUMNS, else
// as the terminal is.
func StyleOf(w io.Writer, env func(string) string) report.Style {
	var s report.Style
	if Is(w) {
		s.Color = env("NO_COLOR") == "" && env("TERM") != "dumb"
		withDescriptor(w, func(fd int) { s.Width, _, _ = term.GetSize(fd) })
	}
	if n, err := strconv.Atoi(env("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	return s
}
