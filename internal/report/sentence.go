// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// Sentence returns a finding in one sentence: the place, what it is, the operation,
// the wait it caused and, apart from it, what fixing it would save. Of a hang it names what
// was not done, who waits, and since when. Names in it are as they came: see Clean.
func Sentence(f *model.Finding) string {
	ev := stragglerEvidence(f)
	text := Place(f) + ": " + f.Kind
	if f.Class != "" {
		text += " (" + f.Class + ")"
	}
	if cause := CauseText(f); cause != "" {
		text += ", cause " + cause
	}
	if claim := traitClause(f); claim != "" {
		text += ", " + claim
	}
	text += claimOrOp(f) + waitClause(f) + costClause(f, ev)
	switch {
	case f.Class == model.ClassLink && !f.EndDecided():
		text += "; which end is at fault is not decided"
	case f.Blameless():
		text += "; " + blameless
	}
	if f.BeforeWindow {
		text += "; " + beforeWindow
	}
	return text + " (" + sureness(f, ev) + ")"
}

// traitClause returns what a class is that names no slow rank, and of a whole job since when.
func traitClause(f *model.Finding) string {
	if f.Class == model.ClassJobWide && f.StepFirst.OK {
		return fmt.Sprintf("%s since step %d", trait(f), f.StepFirst.V)
	}
	return trait(f)
}

// claimOrOp returns what a finding claims, by its kind; of a straggler at which operation.
func claimOrOp(f *model.Finding) string {
	switch {
	case f.Kind == model.FindingDesync:
		return hang(f)
	case f.Kind == model.FindingEpoch:
		return epochClaim(f)
	case f.OutsideScopes():
		return ", " + outsideScopes
	case f.Op != "" && f.Class != model.ClassStageImbalance: // there it is the place
		return ", at " + f.Op
	}
	return ""
}

// epochClaim returns what a finding of kind epoch claims; "" where its evidence is of no known shape.
func epochClaim(f *model.Finding) string {
	switch {
	case strings.HasPrefix(f.Op, model.OpLogLine):
		return ofLogLine(f)
	case f.Class == model.ClassFleetMixed:
		return ofFleet(f)
	case f.Op == model.OpResume:
		return ofResume(f)
	case f.Op == model.OpFingerprint:
		return ofReplicas(f)
	}
	return ofEpoch(f)
}

func waitClause(f *model.Finding) string {
	if !f.WaitCaused.OK {
		return ""
	}
	return "; the others together waited " + Seconds(f.WaitCaused.V) + " per step for it" + shareOf(f.WaitCausedShare, "all wait")
}

// sureness returns the confidence; for a straggler also the number of steps that the numbers are of,
// which are not all in which the finding was seen.
func sureness(f *model.Finding, ev *evidence.Straggler) string {
	text := fmt.Sprintf("confidence %.2f", f.Confidence)
	if ev.Method == evidence.MethodKAIR { // it knows no probability
		text = "method " + ev.Method
	}
	if ev.Steps > 0 {
		text += ", " + judged(ev)
	}
	return text
}

// judged returns of how many steps the numbers of a straggler are.
func judged(ev *evidence.Straggler) string { return Plural(int64(ev.Steps), "step") + " judged" }
