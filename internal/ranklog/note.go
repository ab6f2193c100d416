// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
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

// addNotes puts notes in front of those that the evidence of a finding has.
func addNotes(f *model.Finding, notes []string) {
	if len(notes) == 0 {
		return
	}
	evidence := map[string]json.RawMessage{}
	if f.Evidence != "" && json.Unmarshal([]byte(f.Evidence), &evidence) != nil {
		return
	}
	var had []string
	_ = json.Unmarshal(evidence["notes"], &had) // absent: there are none yet
	text, err := json.Marshal(slices.Concat(notes, had))
	if err != nil {
		return // strings always encode
	}
	evidence["notes"] = text
	if text, err = json.Marshal(evidence); err == nil {
		f.Evidence = string(text)
	}
}
