// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
)

// Kind is a category of change.
type Kind string

// Kinds of changes.
const (
	// Threshold multiplies a number by 1.2 or 0.8 that is compared with, is declared as a
	// constant or package variable, sets a field, or is an argument of min or max.
	Threshold Kind = "threshold"
	// Number multiplies any other number by 1.2 or 0.8.
	Number Kind = "number"
	// Boundary adds equality to an order comparison, or takes it away.
	Boundary Kind = "boundary"
	// Negation turns a comparison into its opposite.
	Negation Kind = "negation"
	// Arithmetic swaps + and -, or * and /.
	Arithmetic Kind = "arithmetic"
	// Logic swaps && and ||.
	Logic Kind = "logic"
	// Drop removes a call, or an assignment to a field.
	Drop Kind = "drop"
	// NilError returns nil in place of an error.
	NilError Kind = "nil error"
	// Boolean swaps true and false.
	Boolean Kind = "boolean"
)

// Kinds lists all kinds in the order of a report.
var Kinds = []Kind{Threshold, Number, Boundary, Negation, Arithmetic, Logic, Drop, NilError, Boolean}

// Mutant is one change of one file.
type Mutant struct {
	Package string `json:"package"` // import path
	File    string `json:"file"`    // relative to the module's root, with forward slashes
	Line    int    `json:"line"`    // from 1
	Column  int    `json:"column"`  // from 1, in bytes
	Kind    Kind   `json:"kind"`
	// Before and After are the line at Line without and with the change, without indent.
	Before string `json:"before"`
	After  string `json:"after"`

	file       *source
	start, end int // offsets of the replaced bytes
	text       string
}

// ID identifies the mutant among those of the same sources.
func (m Mutant) ID() string {
	return fmt.Sprintf("%s:%d:%d %s: %s", m.File, m.Line, m.Column, m.Kind, m.After)
}

// content returns the whole file with the change.
func (m Mutant) content() []byte {
	text := m.file.text
	changed := make([]byte, 0, len(text)+len(m.text))
	changed = append(changed, text[:m.start]...)
	changed = append(changed, m.text...)
	return append(changed, text[m.end:]...)
}

// source is one file of a package.
type source struct {
	path   string // absolute
	name   string // relative to the module's root, with forward slashes
	text   []byte
	syntax *ast.File
}

// line returns the line of text at offset, without indent.
func line(text []byte, offset int) string {
	start := bytes.LastIndexByte(text[:offset], '\n') + 1
	rest, _, _ := bytes.Cut(text[start:], []byte("\n"))
	return string(bytes.TrimSpace(rest))
}

// mutate returns the mutant that replaces the bytes between pos and end by text.
func (p *Package) mutate(file *source, kind Kind, pos, end token.Pos, text string) Mutant {
	at := p.fset.Position(pos)
	m := Mutant{
		Package: p.Path, File: file.name, Line: at.Line, Column: at.Column, Kind: kind,
		file: file, start: at.Offset, end: p.fset.Position(end).Offset, text: text,
	}
	m.Before = line(file.text, m.start)
	m.After = line(m.content(), m.start)
	return m
}
