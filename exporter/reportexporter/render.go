// SPDX-License-Identifier: Apache-2.0

package reportexporter

import (
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/report/journal"
)

// render returns the text of news, which ends with a newline.
func (r *reporter) render(n *journal.News) []byte {
	p := &report.Printer{Style: r.style}
	switch {
	case r.config.Format == formatLine:
		p.Line("%s", report.Line(n.Finding))
	case n.First:
		p.Finding(n.Finding, title(n), 1)
		p.Line("")
	default:
		text := report.Update(n.Number, n.Finding) + "."
		if at := report.Time(n.Finding); at != "" {
			text = at + ": " + text
		}
		p.Paragraph(text)
		p.Line("")
	}
	return p.Bytes()
}

// title names a finding with its number, its time and its job.
func title(n *journal.News) string {
	parts := []string{fmt.Sprintf("Finding %d", n.Number)}
	if at := report.Time(n.Finding); at != "" {
		parts = append(parts, at)
	}
	if job := report.Job(n.Finding); job != "" {
		parts = append(parts, "job "+job)
	}
	if n.Finding.Status == model.StatusClosed {
		parts = append(parts, "closed")
	}
	return strings.Join(parts, ", ")
}

func (r *reporter) summary() []byte {
	p := &report.Printer{Style: r.style}
	lines := r.journal.Summary()
	if len(lines) == 0 {
		p.Line("No finding.")
	}
	for _, l := range lines {
		p.Paragraph(l)
	}
	return p.Bytes()
}
