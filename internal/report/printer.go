// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Printer renders into memory, in its Style: a report is some tens of kilobytes, and one
// write of it cannot tear.
type Printer struct {
	bytes.Buffer
	Style
}

// Line prints a line.
func (p *Printer) Line(format string, args ...any) {
	fmt.Fprintf(&p.Buffer, format+"\n", args...)
}

// Paragraph prints text in lines that are no wider than the style says.
func (p *Printer) Paragraph(text string) {
	for _, l := range Wrap(text, p.Columns()) {
		p.Line("%s", l)
	}
}

// labelWidth is the column of the values in a list of label and text.
const labelWidth = 14

// Field prints a label and its text, wrapped under itself.
func (p *Printer) Field(label, text string) {
	for i, l := range Wrap(Cut(text, MaxText), p.Columns()-labelWidth-2) {
		if i > 0 {
			label = ""
		}
		p.Line("  %s%s", p.Paint(Dim, PadRight(label, labelWidth)), l)
	}
}

// Optional prints a label and its text, where there is one.
func (p *Printer) Optional(label, text string) {
	if text != "" {
		p.Field(label, text)
	}
}

// gridGap is between the columns of a grid, columns.
const gridGap = 2

// Grid prints rows in columns as wide as their cells; the first row is the head. Columns
// that are empty in every row are left out.
func (p *Printer) Grid(rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows[1:] {
		for i, c := range row {
			if c != "" {
				widths[i] = max(widths[i], utf8.RuneCountInString(c), utf8.RuneCountInString(rows[0][i]))
			}
		}
	}
	for n, row := range rows {
		var b strings.Builder
		for i, c := range row {
			if widths[i] > 0 {
				b.WriteString(PadRight(c, widths[i]+gridGap))
			}
		}
		text := strings.TrimRight(b.String(), " ")
		if n == 0 {
			text = p.Paint(Bold, text)
		}
		p.Line("%s", text)
	}
}
