// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// costText returns what a finding costs, one of so many that are printed together.
func costText(f *model.Finding, ev *evidence.Straggler, of int) string {
	if !f.CostSeconds.OK {
		return ""
	}
	text := costOf(f, ev) + " is " + saving(f) + costBeside(f, ev)
	if of > 1 && f.CostJoint.OK && f.CostJoint.V > f.CostSeconds.V {
		text += fmt.Sprintf("; mending all findings together saves %s", Seconds(f.CostJoint.V))
	}
	return text
}

// costClause returns it as a part of a sentence.
func costClause(f *model.Finding, ev *evidence.Straggler) string {
	if !f.CostSeconds.OK {
		return ""
	}
	verb := remedy(f, "it") + " would save"
	if f.Class == model.ClassJobWide {
		verb = "it adds"
	}
	return "; " + verb + " " + costOf(f, ev) + costBeside(f, ev)
}

// costOf returns the cost with its share of the step.
func costOf(f *model.Finding, ev *evidence.Straggler) string {
	text := ""
	if least, most := costBounds(f, ev); most > f.CostSeconds.V && least >= f.CostSeconds.V {
		text = "at least "
	}
	return text + Seconds(f.CostSeconds.V) + " per step" + shareOf(f.CostShare, "the step")
}

// costBounds returns within what the cost is known, s; 0 where it is not bounded.
func costBounds(f *model.Finding, ev *evidence.Straggler) (least, most float64) {
	if ev.CostLeast != nil {
		least = *ev.CostLeast
	}
	return f.CostLeast.Or(least), f.CostMost.Or(ev.CostMost)
}

// costBeside returns how far the cost may be off, for what was not recorded, and what it is once others
// are fixed.
func costBeside(f *model.Finding, ev *evidence.Straggler) (text string) {
	least, most := costBounds(f, ev)
	if (f.CostLeast.OK || ev.CostLeast != nil) && least < f.CostSeconds.V {
		text = fmt.Sprintf(", or down to %s if a rank that was not seen was late, too", Seconds(least))
	}
	if most > f.CostSeconds.V {
		text += fmt.Sprintf(", or up to %s, since %s", Seconds(most), unseen(ev))
	}
	if ev.CostBeside > f.CostSeconds.V {
		text += fmt.Sprintf(", and %s once the other stragglers are mended", Seconds(ev.CostBeside))
	}
	return text
}

// unseen returns why a cost may be higher.
func unseen(ev *evidence.Straggler) string {
	if ev.Lost > 0 {
		return Share(ev.Lost) + " of its operations were lost"
	}
	return "ranks that were not seen may have waited for it, too"
}

// saving returns what the cost is: the step's time less that without it.
func saving(f *model.Finding) string {
	if f.Class == model.ClassJobWide {
		return "what a step takes longer than before"
	}
	what := "place"
	switch {
	case f.Class == model.ClassLink:
		what = "link"
	case f.Class == model.ClassNode:
		what = "host"
	case f.Rank.OK:
		what = "rank"
	}
	return "all that " + remedy(f, "this "+what) + " would save"
}

// remedy returns what would save the cost.
func remedy(f *model.Finding, what string) string {
	switch f.Class {
	case model.ClassJitter:
		return "being rid of the pauses"
	case model.ClassStageImbalance, model.ClassWorkImbalance:
		return "spreading the work evenly"
	}
	return "mending " + what + " alone"
}

// shareOf returns a share in parentheses; "" where it is not known.
func shareOf(share model.Optional[float64], of string) string {
	if !share.OK {
		return ""
	}
	return " (" + Share(share.V) + " of " + of + ")"
}
