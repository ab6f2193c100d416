// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// Sentence says a finding in one sentence: the place, what it is, the operation,
// the wait it caused and, apart from it, what mending it would save. Of a hang it says what
// was not done, who waits, and since when.
func Sentence(f *model.Finding) string {
	var b strings.Builder
	b.WriteString(place(f))
	fmt.Fprintf(&b, ": %s", f.Kind)
	if f.Class != "" {
		fmt.Fprintf(&b, " (%s)", f.Class)
	}
	if f.Cause != "" && f.Cause != model.CauseUnknown {
		fmt.Fprintf(&b, ", cause %s", f.Cause)
	}
	ev := stragglerEvidence(f)
	b.WriteString(claim(f, ev))
	switch {
	case f.Kind == model.FindingDesync:
		b.WriteString(hang(f))
	case f.Kind == model.FindingEpoch && strings.HasPrefix(f.Op, model.OpLogLine):
		b.WriteString(ofLogLine(f))
	case f.Class == model.ClassFleetMixed:
		b.WriteString(ofFleet(f))
	case f.Kind == model.FindingEpoch && f.Op == model.OpResume:
		b.WriteString(ofResume(f))
	case f.Kind == model.FindingEpoch && f.Op == model.OpFingerprint:
		b.WriteString(ofReplicas(f))
	case f.Kind == model.FindingEpoch:
		b.WriteString(ofEpoch(f))
	case f.OutsideScopes():
		b.WriteString(", outside of any scope")
	case f.Op != "" && f.Class != model.ClassStageImbalance: // there it is the place
		fmt.Fprintf(&b, ", at %s", f.Op)
	}
	writeNumbers(&b, f, ev)
	switch {
	case f.Class == model.ClassLink && !f.EndDecided():
		b.WriteString("; which end is at fault is not decided")
	case f.Blameless():
		b.WriteString("; nobody is at fault")
	}
	if f.BeforeWindow {
		b.WriteString("; the cause precedes the recording")
	}
	fmt.Fprintf(&b, " (%s)", sureness(f, ev))
	return b.String()
}

// sureness returns the confidence; for a straggler also the number of steps that the numbers are of.
func sureness(f *model.Finding, ev *evidence.Straggler) string {
	text := fmt.Sprintf("confidence %.2f", f.Confidence)
	if f.Kind != model.FindingStraggler {
		return text
	}
	if ev.Method == evidence.MethodKAIR { // it knows no probability
		text = "method " + ev.Method
	}
	return text + judged(ev.Steps)
}

// claim says what the classes are that name a structure, or a choice, instead of a
// slow rank.
func claim(f *model.Finding, ev *evidence.Straggler) string {
	switch f.Class {
	case model.ClassNode:
		return ", all of its ranks alike"
	case model.ClassKernelChoice:
		return ", another kernel than its peers' for the same work"
	case model.ClassStageImbalance:
		return ", more work than the other stages"
	case model.ClassWorkImbalance:
		if len(f.Ranks) == 0 && !f.Rank.OK {
			return ", who has more work than its peers changes"
		}
		return ", more work than their peers"
	case model.ClassJitter:
		return pauses(ev)
	case model.ClassJobWide:
		if f.StepFirst.OK {
			return fmt.Sprintf(", all ranks alike since step %d", f.StepFirst.V)
		}
		return ", all ranks alike"
	}
	return ""
}

// pauses says how long the pauses are and how often each rank has one, as far as
// the evidence knows.
func pauses(ev *evidence.Straggler) string {
	text, law := ", pauses", ev.Pauses
	if law != nil && law.Median > 0 {
		text += " of " + seconds(law.Median)
	}
	text += " rotate over the ranks"
	if law != nil && law.Period > 0 {
		text += fmt.Sprintf(", every %.3g steps on each", law.Period)
	}
	return text
}

// judged says of how many steps the numbers are, which are not all in which the
// finding was seen.
func judged(steps int) string {
	switch {
	case steps < 1:
		return ""
	case steps == 1:
		return ", 1 step judged"
	}
	return fmt.Sprintf(", %d steps judged", steps)
}

// stragglerEvidence returns the numbers of a straggler; none of a finding of another kind.
func stragglerEvidence(f *model.Finding) *evidence.Straggler {
	if f.Kind != model.FindingStraggler {
		return &evidence.Straggler{}
	}
	ev, _ := evidence.StragglerOf(f.Evidence)
	return ev
}

func writeNumbers(b *strings.Builder, f *model.Finding, ev *evidence.Straggler) {
	if f.WaitCaused.OK {
		fmt.Fprintf(b, "; the others together waited %s per step for it%s",
			seconds(f.WaitCaused.V), share(f.WaitCausedShare, "all wait"))
	}
	if f.CostSeconds.OK {
		fmt.Fprintf(b, "; %s %s%s per step%s%s",
			saves(f), orMore(f), seconds(f.CostSeconds.V), share(f.CostShare, "the step"), unseenCost(f))
		if ev.CostBeside > f.CostSeconds.V {
			fmt.Fprintf(b, ", and %s once the other stragglers are mended", seconds(ev.CostBeside))
		}
	}
}

// orMore says that the cost is the least that there is.
func orMore(f *model.Finding) string {
	if f.CostMost.OK && f.CostLeast.Or(0) >= f.CostSeconds.V {
		return "at least "
	}
	return ""
}

// unseenCost says how much more or less than told it may be, for what was not recorded.
func unseenCost(f *model.Finding) (text string) {
	if least := f.CostLeast.Or(f.CostSeconds.V); least < f.CostSeconds.V {
		text = fmt.Sprintf(", or down to %s where who was not seen was late, too", seconds(least))
	}
	if most := f.CostMost.Or(0); most > f.CostSeconds.V {
		text += fmt.Sprintf(", or up to %s by way of what was not seen", seconds(most))
	}
	return text
}

// saves says what the cost is: the step's time less that without it.
func saves(f *model.Finding) string {
	switch f.Class {
	case model.ClassStageImbalance, model.ClassWorkImbalance:
		return "spreading the work evenly would save"
	case model.ClassJitter:
		return "being rid of them would save"
	case model.ClassJobWide:
		return "it adds"
	}
	return "mending it alone would save"
}

func place(f *model.Finding) string {
	switch {
	case f.Class == model.ClassFleetMixed && f.CommID != "":
		return fmt.Sprintf("communicator %s of job %s", cmp.Or(f.CommName, f.CommID), f.JobID)
	case f.EndDecided() && f.Host != "":
		return f.Link + " on " + f.Host
	case f.EndDecided():
		return f.Link
	case f.Class == model.ClassLink && f.Link != "" && f.Host != "":
		return fmt.Sprintf("link %s, sent from %s", f.Link, f.Host)
	case f.Class == model.ClassLink && f.Link != "":
		return "link " + f.Link
	case f.Class == model.ClassNode && f.Host != "":
		return "host " + f.Host + ofSoManyRanks(f)
	case f.Class == model.ClassStageImbalance && f.Op != "":
		return f.Op + ofSoManyRanks(f)
	case f.Rank.OK && f.Host != "":
		return fmt.Sprintf("rank %d on %s", f.Rank.V, f.Host)
	case f.Rank.OK:
		return fmt.Sprintf("rank %d", f.Rank.V)
	case len(f.Ranks) > 0 && (f.Kind == model.FindingStraggler || f.Kind == model.FindingDesync):
		return listed(f.Ranks, f.RanksCount)
	case len(f.Ranks) > 0:
		return fmt.Sprintf("%d ranks", f.RanksCount.Or(int64(len(f.Ranks))))
	case f.Host != "":
		return "host " + f.Host
	case f.Link != "":
		return "link " + f.Link
	case f.CommID != "":
		return "communicator " + cmp.Or(f.CommName, f.CommID)
	case f.JobID == "":
		return "a job or host that nothing names"
	default:
		return "job " + f.JobID
	}
}

// ofSoManyRanks says how many ranks a place holds.
func ofSoManyRanks(f *model.Finding) string {
	switch n := f.RanksCount.Or(int64(len(f.Ranks))); n {
	case 0:
		return ""
	case 1:
		return " (1 rank)"
	default:
		return fmt.Sprintf(" (%d ranks)", n)
	}
}

// maxInSentence is the most ranks, or spans of them, that a sentence names; the attributes have
// more.
const maxInSentence = 8

// listed names the first of the ranks; count says how many there are where not all are given.
func listed(ranks []int64, count model.Optional[int64]) string {
	n := count.Or(int64(len(ranks)))
	words, told := model.Spans(ranks, maxInSentence)
	text := "ranks "
	if n == 1 {
		text = "rank "
	}
	text += strings.Join(words, ", ")
	if rest := n - int64(told); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// seconds renders with the microsecond as the least digit: less is noise here.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond).String()
}

func share(o model.Optional[float64], of string) string {
	if !o.OK {
		return ""
	}
	return fmt.Sprintf(" (%.1f %% of %s)", 100*o.V, of)
}
