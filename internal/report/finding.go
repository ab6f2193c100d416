// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// TitleOf returns the title of finding i, counted from 0, of so many.
func TitleOf(i, of int) string { return fmt.Sprintf("Finding %d of %d", i+1, of) }

// Finding prints a finding, one of so many that are printed together, under its title.
func (p *Printer) Finding(f *model.Finding, title string, of int) {
	switch f.Kind {
	case model.FindingStraggler:
		p.straggler(f, title, of)
	case model.FindingDesync:
		p.hangFinding(f, title)
	default:
		p.other(f, title)
	}
}

func (p *Printer) headline(title, text string) {
	for _, l := range Wrap(Clean(title+": "+text), p.Columns()) {
		p.Line("%s", p.Paint(Red, l))
	}
}

func (p *Printer) straggler(f *model.Finding, title string, of int) {
	ev, ok := evidence.StragglerOf(f.Evidence)
	p.headline(title, stragglerHeadline(f, ev))
	p.Optional("its ranks", concerned(f))
	p.Optional("where", where(f, ev))
	p.Optional("wait caused", waitText(f, ev))
	p.Optional("path", pathText(f, ev))
	p.Optional("cost", costText(f, ev, of))
	p.Optional("next", nextText(ev))
	p.Optional("when", whenText(f, ev))
	p.Optional("compared with", comparedText(ev))
	p.Optional("gates", kairGates(ev))
	p.Field("confidence", confidenceText(f, ev))
	p.Optional("missing", missingText(ev))
	p.Optional("what to do", actionText(f))
	p.raw(f, !ok)
}

// other prints a finding of a kind of which the sentence has what there is.
func (p *Printer) other(f *model.Finding, title string) {
	p.headline(title, Sentence(f))
	p.Optional("when", whenText(f, &evidence.Straggler{}))
	p.Optional("since", sinceText(f))
	p.Optional("what to do", actionText(f))
	p.raw(f, f.Kind != model.FindingEpoch || epochClaim(f) == "")
}

// raw prints evidence as it came, where it is a text of no known shape.
func (p *Printer) raw(f *model.Finding, unknown bool) {
	if text, came := f.Evidence.(evidence.Text); came && unknown {
		p.Field("evidence", Clean(string(text)))
	}
}

func stragglerHeadline(f *model.Finding, ev *evidence.Straggler) string {
	text := Subject(f) + does(f, ev) + " (class " + f.Class
	if meaning := classMeaning(f, ev); meaning != "" {
		text += ": " + meaning
	}
	if cause := CauseText(f); cause != "" {
		text += "; cause: " + cause
	}
	return text + ")"
}

// does says what the place does to the others. Who keeps them waiting for less than mending it
// saves once others are mended does so only then.
func does(f *model.Finding, ev *evidence.Straggler) string {
	switch {
	case ev.CostBeside > f.CostSeconds.Or(0) && f.WaitCaused.Or(0) < ev.CostBeside && !f.Blameless() && f.Class != model.ClassLink:
		return " would make the others wait once those that are slower are mended"
	case f.Class == model.ClassLink:
		return " lengthens everybody's transfers"
	case f.Class == model.ClassJobWide && f.StepFirst.OK:
		return fmt.Sprintf(" are slower since step %d", f.StepFirst.V)
	case Several(f):
		return " make the others wait"
	}
	return " makes the others wait"
}

// classMeaning returns what a class means beyond what the subject says.
func classMeaning(f *model.Finding, ev *evidence.Straggler) string {
	switch {
	case f.EndDecided():
		return "all of its transfers that way take longer than its peers'"
	case f.Class == model.ClassCompute:
		return "its own computation takes longer than its peers'"
	case f.Class == model.ClassHost && ev.Undivided:
		return "nothing that was recorded ran for longer than on its peers: its host launches work late, or its device does what was not recorded"
	case f.Class == model.ClassHost:
		return "its host launches work late"
	case f.Class == model.ClassLink:
		return "sends wait longer for the wire than its peers', which end is at fault is not decided"
	case f.Blameless() && traitIsSubject(f):
		return blameless
	case f.Blameless():
		return trait(f) + ", " + blameless
	}
	return trait(f)
}

// concerned lists the ranks where the place does not.
func concerned(f *model.Finding) string {
	if len(f.Ranks) == 0 || !structural(f) {
		return ""
	}
	_, list, _ := strings.Cut(SomeRanks(f.Ranks, int(f.RanksCount.Or(int64(len(f.Ranks))))), " ")
	return list
}

// where names the operation, and what shows that it matters.
func where(f *model.Finding, ev *evidence.Straggler) string {
	var parts []string
	if f.Op != "" && f.Class != model.ClassStageImbalance { // there it is the place
		part := fmt.Sprintf("%q", ShortName(f.Op))
		if f.OutsideScopes() {
			part = outsideScopes
		}
		if ev.PlaceExcess != nil {
			part += excessText(f, *ev.PlaceExcess)
		}
		if spread(f, ev) {
			part = fmt.Sprintf("many kernels, %s per step more than its peers' in all; most of it in %s", Seconds(ev.Excess), part)
		}
		parts = append(parts, part)
	}
	if d := ev.Decisive; d != nil && d.Collective != "" {
		part := fmt.Sprintf("it shows best in %s of step %d", ShortName(d.Collective), d.Step)
		if d.Comm != "" {
			part += fmt.Sprintf(" (communicator %s)", ShortName(d.Comm))
		}
		parts = append(parts, part+wireText(f))
	} else if f.CommID != "" {
		parts = append(parts, "communicator "+ShortName(f.CommID))
	}
	return Clean(strings.Join(parts, "; "))
}

// wireText says how long the sends of a slow link waited for the wire.
func wireText(f *model.Finding) string {
	ev, ok := evidence.As[evidence.Link](f.Evidence)
	if !ok || ev.Decisive.PerStep <= 0 {
		return ""
	}
	d := &ev.Decisive
	return fmt.Sprintf(", where each of its %s waited %s for the wire, its peers' %s", Plural(d.Steps, "send"), Seconds(d.PerStep), Seconds(d.PeersStep))
}

// spread reports whether no single kernel holds half of what a slow device takes longer.
func spread(f *model.Finding, ev *evidence.Straggler) bool {
	return f.Class == model.ClassCompute && f.Rank.OK && ev.PlaceExcess != nil && *ev.PlaceExcess > 0 && 2**ev.PlaceExcess < ev.Excess
}

// excessText says beyond what an operation took so long; nothing where it went round and
// is a sum over all ranks.
func excessText(f *model.Finding, seconds float64) string {
	more := fmt.Sprintf(", %s per step more than ", Seconds(seconds))
	switch {
	case f.Class == model.ClassJobWide:
		return more + "before"
	case len(f.Ranks) > 1:
		return more + "their peers' median, summed over them"
	case len(f.Ranks) == 0 && !f.Rank.OK:
		return ""
	}
	return more + "its peers' median"
}

func waitText(f *model.Finding, ev *evidence.Straggler) string {
	if !f.WaitCaused.OK {
		return ""
	}
	text := Seconds(f.WaitCaused.V) + " per step, summed over the others"
	if f.WaitCausedShare.OK {
		text += ": " + Share(f.WaitCausedShare.V) + " of all wait"
	}
	if ev.WaitLeast != nil {
		text += fmt.Sprintf("; for it alone at least %s, as others who were not seen may have been later", Seconds(*ev.WaitLeast))
	}
	if ev.Meetings > 0 {
		text += fmt.Sprintf("; last in %d of %d collectives", ev.LastArrivals, ev.Meetings)
	}
	return text
}

// pathText says how much of the critical path the place holds beyond its peers.
func pathText(f *model.Finding, ev *evidence.Straggler) string {
	if ev.BlameShare <= 0 {
		return ""
	}
	text := fmt.Sprintf("it holds %s of the steps on their critical path, over its peers", Share(ev.BlameShare))
	if ev.BlameOp != "" && ev.BlameOp != f.Op {
		in := fmt.Sprintf("in %q", ShortName(ev.BlameOp))
		if ev.BlameOp == model.OpOther {
			in = outsideScopes
		}
		text += ", most " + in
	}
	return Clean(text)
}

// nextText says who would be last in the decisive collective, and no other: who
// would be in the whole step, the evidence does not say.
func nextText(ev *evidence.Straggler) string {
	if len(ev.NextRanks) == 0 {
		return ""
	}
	text := SomeRanks(ev.NextRanks, len(ev.NextRanks)) + " would be last once it is mended"
	if d := ev.Decisive; d != nil {
		text = "in that collective " + text
		text += fmt.Sprintf("; the second-last came %s before it", Seconds(d.Gap))
	}
	return text
}

// whenText says, too, of how many steps the numbers are: those judged together,
// not always all in which the finding was seen.
func whenText(f *model.Finding, ev *evidence.Straggler) string {
	if !f.StepFirst.OK || !f.StepLast.OK {
		return ""
	}
	text := fmt.Sprintf("steps %d to %d", f.StepFirst.V, f.StepLast.V)
	if f.StepFirst.V == f.StepLast.V {
		text = fmt.Sprintf("step %d", f.StepFirst.V)
	}
	if steps := int64(ev.Steps); steps > 0 && steps != f.StepLast.V-f.StepFirst.V+1 {
		text += "; numbers are of " + Plural(steps, "step")
	}
	if ev.Intermittent {
		text += "; in some of them only"
		// Lengths are those of hosts; what comes in each step is no rhythm.
		law := lawOf(ev)
		if law.Median > 0 && f.Class != model.ClassCompute {
			text += fmt.Sprintf(", for %s", Seconds(law.Median))
		}
		if law.Period > 1 {
			text += fmt.Sprintf(", every %s steps", Significant(law.Period))
		}
	}
	if f.BeforeWindow {
		text += "; " + beforeWindow
	}
	return text
}

// comparedText says who the peers are, and who else the evidence would fit.
func comparedText(ev *evidence.Straggler) string {
	var parts []string
	if ev.CohortRung != "" && ev.Peers > 0 {
		parts = append(parts, fmt.Sprintf("%s: %s", Plural(int64(ev.Peers), "peer"), Clean(ev.CohortRung)))
	}
	return strings.Join(parts, "; ")
}

func confidenceText(f *model.Finding, ev *evidence.Straggler) string {
	if ev.Method == evidence.MethodKAIR {
		return fmt.Sprintf("none: method kair knows no probability of error; the rank was blamed in %s of the recent steps", Share(f.Confidence))
	}
	text := fmt.Sprintf("%.2f of 1", f.Confidence)
	if len(ev.LoweredBy) > 0 {
		text += "; lowered by: " + Clean(strings.Join(ev.LoweredBy, "; "))
	}
	return text
}

// actionText shortens the operation's name, which an action may repeat.
func actionText(f *model.Finding) string {
	if short := ShortName(f.Op); short != f.Op {
		return Clean(strings.ReplaceAll(f.Action, f.Op, short))
	}
	return Clean(f.Action)
}

func missingText(ev *evidence.Straggler) string {
	if len(ev.MissingRanks) == 0 {
		return ""
	}
	return SomeRanks(ev.MissingRanks, max(ev.MissingCount, len(ev.MissingRanks))) + " not seen"
}

// kairGates says by which limits method kair accuses, and which it does not ask.
func kairGates(ev *evidence.Straggler) string {
	n := ev.Numbers
	if ev.Method != evidence.MethodKAIR || n["z_score_limit"] == 0 {
		return ""
	}
	return fmt.Sprintf("z-score %s on average among %s, over %g; blamed in %s of %s recent steps, at least %g and %s of them. "+
		"The rhythm of %s windows accuses nobody. No limit of cost, of excess or of chance is asked.",
		Significant(n["z_score"]), Plural(int64(ev.Peers)+1, "rank"), n["z_score_limit"],
		Thousands(int64(n["steps_blamed"])), Thousands(int64(n["steps_recent"])), n["steps_blamed_limit"], Share(n["steps_blamed_share_limit"]),
		Thousands(int64(n["rhythm_windows"])))
}
