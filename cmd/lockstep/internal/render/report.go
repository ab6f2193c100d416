// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// Input is all that one report speaks of.
type Input struct {
	Files    int
	Bytes    int64 // as stored
	Ops      int64
	Jobs     []straggler.JobReport
	Problems []model.Problem
	// ProblemsOmitted counts problems beyond those listed.
	ProblemsOmitted int64
	Stats           straggler.Stats
	// Method is evidence.Method*; "" is the default.
	Method string
	// RawClock: stamps were compared as they are.
	RawClock bool
	// Heatmap and Frequency draw the ranks' rhythms of operations.
	Heatmap, Frequency bool
}

// printer prints the reports of engines with the means of package report.
type printer struct{ report.Printer }

func newPrinter(style report.Style) *printer { return &printer{report.Printer{Style: style}} }

// Write renders the report: what was read; for every job its verdict, the table
// of ranks, and the findings or how it was judged that there is none; then the
// problems.
func Write(w io.Writer, in *Input, style report.Style) error {
	p := newPrinter(style)
	switch {
	case len(in.Jobs) > 0:
		p.input(in)
	default: // why, is all that is left to say
		for _, loss := range losses(&in.Stats) {
			p.Field("lost", loss)
		}
	}
	for i := range in.Jobs {
		p.job(&in.Jobs[i], in)
	}
	p.problems(in)
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (p *printer) job(j *straggler.JobReport, in *Input) {
	p.header(j)
	p.table(j)
	if in.Heatmap {
		p.heatmap(&j.Heatmap)
	}
	if in.Frequency {
		p.frequency(&j.Frequency)
	}
	if len(j.Verdicts) == 0 {
		p.noFinding(j)
		return
	}
	for i := range j.Verdicts {
		p.verdict(j, i)
	}
}

// input says once what was read for all jobs.
func (p *printer) input(in *Input) {
	p.Field("input", fmt.Sprintf("%s, %s, %s", report.Plural(int64(in.Files), "file"), report.Bytes(in.Bytes), report.Plural(in.Ops, "operation")))
	if in.Method == evidence.MethodKAIR {
		p.Field("method", "kair, the published statistics: a baseline that asks no limit of cost or chance, names victims, too, and by three standard deviations nobody among ten ranks or fewer")
	}
	if in.RawClock {
		p.Field("clocks", "compared as recorded: offsets are shown and not applied")
	}
	for _, loss := range losses(&in.Stats) {
		p.Field("lost", loss)
	}
	if n := int64(len(in.Problems)) + in.ProblemsOmitted; n > 0 {
		p.Field("problems", fmt.Sprintf("%s, listed at the end", report.Plural(n, "problem")))
	}
	p.Line("")
}

func (p *printer) header(j *straggler.JobReport) {
	p.Line("%s", p.Paint(report.Bold, "job "+jobName(j)))
	text, colour := verdictText(j)
	for _, l := range report.Wrap(text, p.Columns()) {
		p.Line("%s", p.Paint(colour, l))
	}
	p.Field("ranks", seenRanks(j))
	p.Field("steps", stepsText(j))
	if len(j.Apart) > 0 {
		p.Field("apart", apartText(j.Apart))
	}
	p.Line("")
}

func jobName(j *straggler.JobReport) string {
	name := j.JobName
	if name == "" {
		name = j.JobID
	}
	if name == "" {
		name = "(unnamed)"
	}
	if j.Incarnation != "" {
		name = report.ShortName(name) + ", incarnation " + report.ShortName(j.Incarnation)
	}
	return report.Clean(name)
}

func seenRanks(j *straggler.JobReport) string {
	if len(j.Missing) == 0 {
		return strconv.Itoa(len(j.Ranks))
	}
	return fmt.Sprintf("%d of %d; missing: %s", len(j.Ranks), len(j.Ranks)+j.MissingCount, report.SomeRanks(j.Missing, j.MissingCount))
}

func stepsText(j *straggler.JobReport) string {
	if j.Steps == 0 {
		return "none"
	}
	return fmt.Sprintf("%s, %s on average", report.Thousands(int64(j.Steps)), report.Duration(j.StepTime/time.Duration(j.Steps)))
}

// losses says what the engine refused or cut, in words.
func losses(s *straggler.Stats) []string {
	var out []string
	for _, l := range []struct {
		n    int64
		noun string
		why  string
	}{
		{s.OpsDropped, "operation", "beyond the limit per rank and step"},
		{s.OpsWithoutStep, "operation", "without a step"},
		{s.OpsWithoutRank, "operation", "without a rank"},
		{s.OpsUnsound, "operation", "whose stamps cannot be true"},
		{s.OpsMiscounted, "collective", "of ranks that count differently from the others"},
		{s.LaunchesContradicted, "step", "of ranks without their launches, which come after what they launched"},
		{s.HostsContradicted, "step", "of ranks without what their hosts tell, which contradicts their operations"},
		{s.StepsOffUnit, "step", "of ranks whose stamps are hardly nanoseconds since 1970"},
		{s.OpsOfTwins, "operation", "of a second process that says it is a rank which another has"},
		{s.StepsEvicted, "step", "judged before they were complete: too many were open"},
		{s.JobsEvicted, "job", "given up: too many at once"},
		{s.LateOps, "operation", "for a step that had been closed"},
		{s.RanksRefused, "batch", "of ranks beyond the limit"},
		{s.PlacesOverflowed, "operation", "under no name of its own: too many names"},
		{s.StepsForgotten, "step", "forgotten before their time: too many members of collectives"},
		{s.ConclusionsDropped, "place", "that stood out beside too many others, and were not looked into"},
		{s.FindingsWithheld, "finding", "for which there was no room beside those that are open"},
		{s.WorldsCapped, "batch", "of a world beyond the limit of ranks"},
		{s.WorldsContradicted, "batch", "that stated a world size which others contradict"},
	} {
		if l.n > 0 {
			out = append(out, report.Plural(l.n, l.noun)+" "+l.why)
		}
	}
	return out
}

// noFinding says how it was judged that nobody is named.
func (p *printer) noFinding(j *straggler.JobReport) {
	if VerdictOf(*j) == None || j.Abstained.Undecided() {
		p.Field("judged over", judgedText(j))
	}
	if a := j.Abstained; a != nil {
		p.Field("strongest", candidate(a))
	}
	p.Optional("most awaited", unexplained(j))
	if len(j.Missing) > 0 {
		p.Field("missing", report.SomeRanks(j.Missing, j.MissingCount)+" not seen: waits that may be owed to one not seen are owed to nobody")
	}
	p.Line("")
}

func candidate(a *straggler.Abstention) string {
	gate := gateMeaning(a.Gate)
	var who string
	save := "Mending it would save"
	switch {
	case a.Link && a.Rank < 0:
		who, gate = "a link, which is not named", linkGateMeaning(a.Gate)
	case a.Link:
		who, gate = fmt.Sprintf("the link behind rank %d, which is not named", a.Rank), linkGateMeaning(a.Gate)
	case a.Rank < 0 && a.Class != "":
		who = fmt.Sprintf("a place of class %s, which is not told", report.Clean(a.Class))
	case a.Rank < 0:
		who = "a place that is no rank, which is not told"
	default:
		who = fmt.Sprintf("rank %d, which caused %s of all wait and is not named", a.Rank, report.Share(a.WaitShare))
		if n := len(a.Ranks); n > 1 {
			who, save = fmt.Sprintf("%s, which caused %s of all wait and are not named", report.SomeRanks(a.Ranks, n), report.Share(a.WaitShare)), "Mending them would save at most"
		}
		if a.Class != "" {
			who += " (it would be class " + report.Clean(a.Class) + ")"
		}
	}
	return fmt.Sprintf("%s: %s (gate %s: got %s; limit %s). %s %s of the step",
		who, gate, report.Clean(a.Gate), report.Significant(a.Got), report.Significant(a.Want), save, report.Share(a.CostShare))
}

func linkGateMeaning(gate string) string {
	if gate == "excess_share" {
		return "its transfers take hardly longer than its peers'"
	}
	return gateMeaning(gate)
}

// gateMeaning says in words what failing a gate of the engine means.
func gateMeaning(gate string) string {
	switch gate {
	case "false_alarm":
		return "chance alone does as much too often"
	case "excess_share":
		return "it is hardly slower than its peers by itself"
	case "link":
		return "a slow link may be all that makes it seem slower, since what its device did was not recorded"
	case "unseen":
		return "it may itself have waited, and for longer, for a rank that was not seen"
	case "late":
		return "its rank is late by far more, and who comes last sends while all others wait"
	case "few_steps":
		return "too few steps were recorded to tell it from chance"
	case "pair":
		return "of two that differ nobody says which is as it should be"
	case "half":
		return "half or more of the ranks that do the same are slower than the rest, and nobody says which are as they should be"
	case "steadiness":
		return "what it takes longer varies too much from step to step"
	case "work_unknown":
		return "it takes longer only for what its peers sent it, and nothing recorded says how much that was"
	case "cost_share":
		return "mending it would save too little"
	}
	return "the evidence does not suffice"
}

// maxProblemsShown bounds the problems that the text lists.
const maxProblemsShown = 20

func (p *printer) problems(in *Input) {
	total := int64(len(in.Problems)) + in.ProblemsOmitted
	if total == 0 {
		return
	}
	p.Line("%s", p.Paint(report.Yellow, report.Plural(total, "problem")+" in the input:"))
	shown := min(len(in.Problems), maxProblemsShown)
	for i := range in.Problems[:shown] {
		for k, l := range report.Wrap(problemText(&in.Problems[i]), p.Columns()-4) {
			lead := "    "
			if k == 0 {
				lead = "  - "
			}
			p.Line("%s%s", lead, l)
		}
	}
	if rest := total - int64(shown); rest > 0 {
		p.Line("  - and %s more", report.Thousands(rest))
	}
}

func problemText(pr *model.Problem) string {
	text := ""
	if pr.File != "" {
		text = pr.File + ": "
	}
	if pr.Offset >= 0 {
		text += fmt.Sprintf("at byte %d: ", pr.Offset)
	}
	text += pr.What
	if pr.Rank != nil {
		text += fmt.Sprintf(" (rank %d)", *pr.Rank)
	}
	return report.Cut(report.Clean(text), report.MaxText)
}
