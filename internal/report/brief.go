// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Finding renders one finding under a title of the caller's, such as "Finding 3".
func Finding(w io.Writer, f *model.Finding, title string, style Style) error {
	p := &Printer{Style: style}
	p.Finding(f, title, 1)
	p.Line("")
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("write finding: %w", err)
	}
	return nil
}

// Brief says in one line what a finding came to: who, which class, at what cost
// per step of those that it was judged by, and since when it is seen.
func Brief(f *model.Finding) string {
	text := Subject(f) + ", " + f.Class
	if cause := CauseText(f); cause != "" {
		text += " (" + cause + ")"
	}
	if f.CostSeconds.OK {
		text += fmt.Sprintf(", cost %s per step", Seconds(f.CostSeconds.V))
		if ev := stragglerEvidence(f); ev.Steps > 0 {
			text += " (" + judged(ev) + ")"
		}
	}
	return Clean(text + seenIn(f))
}

func seenIn(f *model.Finding) string {
	switch {
	case !f.StepFirst.OK:
		return ""
	case f.Status == model.StatusClosed && f.StepLast.OK:
		return fmt.Sprintf("; seen in steps %d to %d", f.StepFirst.V, f.StepLast.V)
	}
	return fmt.Sprintf("; since step %d", f.StepFirst.V)
}

// Paragraph writes text in lines that are no wider than the style says.
func Paragraph(w io.Writer, text string, style Style) error {
	p := &Printer{Style: style}
	p.Paragraph(text)
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("write text: %w", err)
	}
	return nil
}

// Ranks renders a list of at least one rank; of a long one its beginning.
func Ranks(list []int64) string { return SomeRanks(list, len(list)) }

// Findings renders findings alone, most costly first: what is known where only
// the events of a pipeline were seen.
func Findings(w io.Writer, findings []model.Finding, style Style) error {
	p := &Printer{Style: style}
	sorted := slices.Clone(findings)
	slices.SortStableFunc(sorted, MostCostly)
	for i := range sorted {
		p.Finding(&sorted[i], TitleOf(i, len(sorted)), len(sorted))
		p.Line("")
	}
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("write findings: %w", err)
	}
	return nil
}

// MostCostly orders findings by cost per step, highest first; those without a
// cost come last.
func MostCostly(a, b model.Finding) int {
	switch ca, cb := a.CostSeconds.Or(-1), b.CostSeconds.Or(-1); {
	case ca > cb:
		return -1
	case ca < cb:
		return 1
	}
	return 0
}
