// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// Note adds to the evidence of a finding the last errors of the ranks that it names.
func Note(f *model.Finding, errors map[int64]Error) {
	ranks := slices.Concat(f.Ranks, f.Candidates)
	if f.Rank.OK {
		ranks = append(ranks, f.Rank.V)
	}
	slices.Sort(ranks)
	var notes []string
	for _, rank := range slices.Compact(ranks) {
		if e, ok := errors[rank]; ok && len(notes) < maxNoted {
			notes = append(notes, fmt.Sprintf("last error in the log of rank %d: %s (%s)", rank, e.Text, e.Where))
		}
	}
	addNotes(f, notes)
}

// addNotes puts notes in front of those that the evidence of a hang has.
func addNotes(f *model.Finding, notes []string) {
	of, ok := f.Evidence.(*evidence.Hang)
	if len(notes) > 0 && (ok || f.Evidence == nil) {
		f.Evidence = of.WithNotes(notes)
	}
}
