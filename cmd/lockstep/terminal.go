package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/lockstep-otel/lockstep/internal/report"
)

// isTerminal reports whether what is written to w is seen at once by a person.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// styleOf returns how to render for w: in colour only on a terminal that has
// it, and not where NO_COLOR is set (no-color.org).
func styleOf(w io.Writer, env func(string) string) report.Style {
	if !isTerminal(w) {
		return report.Style{}
	}
	s := report.Style{Color: env("NO_COLOR") == "" && env("TERM") != "dumb"}
	if f, ok := w.(*os.File); ok {
		s.Width, _, _ = term.GetSize(int(f.Fd()))
	}
	return s
}
