// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/dumpset"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report"
)

// HangInput is all that a report on hangs speaks of.
type HangInput struct {
	*dumpset.Result
	// Sentence says a finding in one sentence.
	Sentence func(*model.Finding) string
}

// WriteHangs renders what hangs, for each job: one sentence for each root first, for those
// who read no more; then the process groups and their states, what the members of each
// root did, and the call stacks; the problems of files last.
func WriteHangs(w io.Writer, in *HangInput, style report.Style) error {
	p := newPrinter(style)
	if n := fragments(in.Hangs); n > 1 {
		for _, l := range report.Wrap(fmt.Sprintf("There are few dumps each of %d jobs, told apart by their folders and the beginnings of their names. If they are of one job, say so with --job NAME.", n), p.Columns()) {
			p.Line("%s", p.Paint(report.Yellow, l))
		}
		p.Line("")
	}
	for i := range in.Hangs {
		p.hang(&in.Hangs[i], in)
	}
	p.problems(&Input{Problems: in.Problems, ProblemsOmitted: in.ProblemsOmitted})
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// fragments counts the jobs, of several, of most of whose ranks there is no dump.
func fragments(hangs []dumpset.Hang) (n int) {
	seen := map[string]bool{}
	for i := range hangs {
		h := &hangs[i]
		if len(h.Absent) > h.Ranks && !seen[h.Job.Name] {
			seen[h.Job.Name] = true
			n++
		}
	}
	return n
}

// maxRootsShown bounds the roots that are printed, those with the most victims first.
const maxRootsShown = 8

func (p *printer) hang(h *dumpset.Hang, in *HangInput) {
	p.Line("%s", p.Paint(report.Bold, "job "+report.ShortName(report.Clean(h.Job.Name))+incidentText(h)))
	for _, l := range p.sentences(h, in) {
		p.Line("%s", l)
	}
	p.Line("")
	p.facts(h)
	p.Line("")
	p.groups(h.Report)
	for i := range h.Roots[:min(len(h.Roots), maxRootsShown)] {
		p.root(&h.Roots[i], titleOfRoot(i, len(h.Roots)))
	}
	p.stacks(h.Report)
	if h.Logs && h.Verdict == desync.NoData {
		return // the sentence has them
	}
	for _, what := range h.Problems {
		p.Field("contradiction", report.Clean(what))
	}
	if len(h.Problems) > 0 {
		p.Line("")
	}
}

// incidentText tells the incidents of one job apart.
func incidentText(h *dumpset.Hang) string {
	if h.Incidents < 2 {
		return ""
	}
	return fmt.Sprintf(", one of %d incidents, its dumps of %s UTC on", h.Incidents, time.Unix(0, h.Began).UTC().Format(time.DateTime))
}

// sentences say what it came to: one for each root.
func (p *printer) sentences(h *dumpset.Hang, in *HangInput) (lines []string) {
	colour, texts := report.Red, []string(nil)
	switch h.Verdict {
	case desync.Healthy:
		colour, texts = report.Green, []string{"Nothing hangs" + amongSeen(h.Report) + "."}
		if len(h.Problems) > 0 {
			colour, texts = report.Yellow, []string{"Nothing hangs" + amongSeen(h.Report) + ", if the dumps are of one run. " + capital(h.Problems[0]) + "."}
		}
	case desync.NoData:
		colour, texts = report.Yellow, []string{noDataText(h)}
	case desync.Hang:
		texts = stoodStill(h)
	case desync.Undecided:
		colour, texts = report.Yellow, stoodStill(h)
		if h.MayRun != "" {
			texts = []string{"Cannot tell whether anything hangs: " + h.MayRun + "."}
			switch {
			case h.Hung && len(h.Roots) > 0:
				texts[0] = "The dumps do not tell why the job hung: " + h.MayRun + ". Perhaps:"
			case h.Hung:
				texts[0] = "The dumps show no reason for a hang: " + h.MayRun + "."
			case len(h.Roots) > 0:
				texts[0] += " If it does:"
			}
		}
	}
	shown := min(len(h.Roots), maxRootsShown)
	for i := range h.Roots[:shown] {
		texts = append(texts, in.Sentence(&h.Roots[i].Finding))
	}
	if rest := int64(len(h.Roots)-shown) + h.Stats.RootsOmitted; rest > 0 {
		texts = append(texts, "And "+report.Plural(rest, "more root")+"; --json lists those that are kept.")
	}
	if len(texts) == 0 { // nothing is told of it
		colour, texts = report.Yellow, []string{"Something hangs, and the evidence does not tell why."}
	}
	for _, t := range texts {
		for _, l := range report.Wrap(report.Clean(t), p.Columns()) {
			lines = append(lines, p.Paint(colour, l))
		}
	}
	for _, text := range append([]string{h.Times, staleText(h.Absent)}, h.Remarks...) {
		if text != "" {
			for _, l := range report.Wrap(report.Clean(text), p.Columns()) {
				lines = append(lines, p.Paint(report.Yellow, l))
			}
		}
	}
	return lines
}

// staleText says whose dumps were left out.
func staleText(list []model.Absence) string {
	var of []int64
	for _, a := range list {
		if a.Reason == model.AbsentStale {
			of = append(of, a.Rank)
		}
	}
	switch len(of) {
	case 0:
		return ""
	case 1:
		return "The dump of rank " + report.Spans(of) + " is not of this incident, and was left out."
	}
	return "The dumps of ranks " + report.Spans(of) + " are not of this incident, and were left out."
}

// stoodStill says what the sentences rest on where nothing tells when the dumps were taken.
func stoodStill(h *dumpset.Hang) []string {
	if !h.Untimed {
		return nil
	}
	return []string{"If the job stood still when its dumps were taken, which none of them tells:"}
}

// capital begins a sentence.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// noDataText says why nothing can be told.
func noDataText(h *dumpset.Hang) string {
	if h.Logs {
		text := []string{"Cannot tell: " + h.MayRun + "."}
		for _, what := range h.Problems {
			text = append(text, capital(what)+".")
		}
		return strings.Join(text, " ")
	}
	if h.Ranks == 0 {
		return "Cannot tell: no dump could be read."
	}
	if h.Partial > 0 {
		return "Cannot tell: no operation could be read from the dumps, which are not whole."
	}
	return "Cannot tell: the dumps recorded no operation. Was the recorder on (TORCH_FR_BUFFER_SIZE)?"
}

func amongSeen(r *desync.Report) string {
	if len(r.Absent) == 0 {
		return ""
	}
	return fmt.Sprintf(" among the %s whose state is known", report.Plural(int64(r.Ranks), "rank"))
}

// facts are what the verdict rests on.
func (p *printer) facts(h *dumpset.Hang) {
	world := int64(h.Ranks + len(h.Absent))
	ranks := fmt.Sprintf("%s of %s known", report.Thousands(int64(h.Ranks)), report.Thousands(world))
	if h.Unplaced > 0 {
		ranks = fmt.Sprintf("%s known; %s of ranks that nothing tells", report.Thousands(int64(h.Ranks)), report.Plural(int64(h.Unplaced), "log"))
	}
	p.Field("ranks", ranks)
	p.Optional("absent", absentText(h.Absent))
	switch {
	case h.Unlisted && h.SizeRefused:
		p.Field("job size", "recorded nowhere, nor are the members of all groups; the dumps contradict the one that was given")
	case h.Unlisted:
		p.Field("job size", "recorded nowhere, nor are the members of all groups: with --world-size more is decided")
	}
	if h.Since > 0 {
		p.Field("hangs since", time.Unix(0, h.Since).UTC().Format("2006-01-02 15:04:05.000")+" UTC, by the clocks of the ranks")
	}
	if h.Victims > 0 {
		p.Field("waiting", report.Plural(int64(h.Victims), "rank")+" in all, directly or through others")
	}
	switch {
	case h.Logs && h.Entries == 0 && h.MayRun != "": // the sentence says of which nothing can be told
		p.Field("logs", report.Plural(int64(h.Files), "file"))
		return
	case h.Logs:
		p.Field("logs", report.Plural(int64(h.Files), "file")+", "+report.Plural(h.Entries, "time-out")+" of operations")
		return
	}
	p.Field(sourceOf(h), dumpsText(h))
}

// absentText names who is absent, by reason.
func absentText(list []model.Absence) string {
	by := map[model.AbsenceReason][]int64{}
	var order []model.AbsenceReason
	for _, a := range list {
		if by[a.Reason] == nil {
			order = append(order, a.Reason)
		}
		by[a.Reason] = append(by[a.Reason], a.Rank)
	}
	var parts []string
	for _, reason := range order {
		parts = append(parts, string(reason)+": "+report.Spans(by[reason]))
	}
	return strings.Join(parts, "; ")
}

// sourceOf is what the report rests on.
func sourceOf(h *dumpset.Hang) string {
	if h.Answers > 0 {
		return "answers"
	}
	return "dumps"
}

func dumpsText(h *dumpset.Hang) string {
	if h.Answers > 0 {
		text := report.Plural(int64(h.Files), "file") + ", " + report.Plural(int64(h.Answers), "answer") + " of NCCL's RAS"
		if len(h.Libs) > 0 {
			text += "; library " + report.Clean(strings.Join(h.Libs, ", "))
		}
		return text
	}
	text := report.Plural(int64(h.Files), "file") + ", " + report.Plural(h.Entries, "operation") + " recorded"
	if len(h.Versions) > 0 {
		text += "; version " + strings.Join(h.Versions, ", ")
	}
	if len(h.Libs) > 0 {
		text += "; library " + report.Clean(strings.Join(h.Libs, ", "))
	}
	if h.OnlyActive > 0 {
		text += fmt.Sprintf("; %s without what was over", report.Thousands(int64(h.OnlyActive)))
	}
	if h.Partial > 0 {
		text += fmt.Sprintf("; %s not whole", report.Thousands(int64(h.Partial)))
	}
	return text
}
