// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/preflight"
	"github.com/lockstep-otel/lockstep/internal/report"
)

// Rows of a preflight that fit on a screen together; --json has all.
const (
	maxDoubtsShown       = 12
	maxPreflightProblems = 12
	maxSavesShown        = 8
)

// WritePreflight renders the answer to whether a job may resume: one sentence, what decided
// it, and the saves that there are.
func WritePreflight(w io.Writer, r *preflight.Result, style report.Style) error {
	p := newPrinter(style)
	colour := report.Green
	var text string
	switch {
	case r.Verdict == preflight.Empty:
		text = "No checkpoint: first start. The folder is empty, as --allow-empty accepts."
	case r.OK():
		text = "Safe to resume" + fromEpoch(r.Epoch) + ": " + allConfirm(r.Judged) + "."
	default:
		colour, text = report.Red, "Not safe to resume"+fromEpoch(r.Epoch)+": "+r.Why+"."
		if r.Next != "" {
			text += " " + strings.ToUpper(r.Next[:1]) + r.Next[1:] + "."
		}
	}
	for _, l := range report.Wrap(report.Clean(text), p.Columns()) {
		p.Line("%s", p.Paint(colour, l))
	}
	p.Field("verdict", preflightVerdict(r))
	if r.By != "" {
		p.Field("judged by", report.Clean(r.By))
	}
	p.Field("newest safe", frontierText(r))
	if r.Judged != nil {
		p.judged(r.Judged)
	}
	p.saves(r)
	p.preflightProblems(r)
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func fromEpoch(e model.Optional[int64]) string {
	if !e.OK {
		return ""
	}
	return " from epoch " + strconv.FormatInt(e.V, 10)
}

func allConfirm(s *preflight.Save) string {
	n := int64(s.Judgement.Domains)
	text := "all " + report.Plural(n, "domain") + " confirm it"
	if n == 1 {
		text = "its one domain confirms it"
	}
	if !s.Epoch.OK {
		text += "; nothing in it says of which epoch it is"
	}
	if s.IsWeightsOnly() {
		text += "; weights only: " + s.WeightsOnly
	}
	return text
}

func preflightVerdict(r *preflight.Result) string {
	switch r.Verdict {
	case preflight.WeightsOnly:
		return "complete, weights only: cannot resume training"
	case preflight.Empty:
		return "empty: no checkpoint, first start"
	case epoch.Converged:
		return "converged: every domain holds this epoch, and is whole"
	case epoch.MixedEpoch:
		return "mixed: a job that resumes would run on different epochs"
	case epoch.Converging:
		return "converging: some domains confirm it, others do not (yet); it is being written, or was cut off"
	case epoch.Revoked:
		return "revoked: it was whole, and parts of it are gone"
	case epoch.Unknown:
	}
	return "unknown: what is there does not decide"
}

func frontierText(r *preflight.Result) string {
	switch {
	case !r.Frontier.OK && slices.ContainsFunc(r.Saves, func(s preflight.Save) bool { return s.Verdict() == preflight.WeightsOnly }):
		return "none: no save that is whole can be resumed from"
	case !r.Frontier.OK:
		return "none: no epoch is confirmed by every domain"
	case r.OK() && !r.Lagging:
		return fmt.Sprintf("epoch %d, this one", r.Frontier.V)
	}
	return fmt.Sprintf("epoch %d", r.Frontier.V)
}

// judged tells which domains of a save hold what.
func (p *printer) judged(s *preflight.Save) {
	j := &s.Judgement
	for i := range s.Paths {
		if i == maxSavesShown {
			p.Field("", fmt.Sprintf("and %d more", len(s.Paths)-i))
			break
		}
		label := ""
		if i == 0 {
			label = "save"
		}
		text := report.Clean(s.Paths[i])
		if len(s.Paths) == 1 {
			text += " (" + string(s.Format) + ")"
		}
		p.Field(label, text)
	}
	for i, h := range j.Held {
		label := ""
		if i == 0 {
			label = "hold"
		}
		text := fmt.Sprintf("%d: %s", h.Epoch, report.Plural(int64(h.Count), "domain"))
		if len(j.Held) > 1 { // one that all hold needs no list
			text += ", " + p.domains(h.Domains, h.Count)
		}
		p.Field(label, text)
	}
	for i, d := range j.Missing {
		label := ""
		if i == 0 {
			label = "in doubt"
		}
		if i == maxDoubtsShown {
			break
		}
		p.Field(label, domainText(d.Domain)+": "+string(d.State))
	}
	if rest := j.MissingCount - min(len(j.Missing), maxDoubtsShown); rest > 0 {
		p.Field("", "and "+report.Plural(int64(rest), "more domain"))
	}
}

func (p *printer) domains(ds []model.Domain, count int) string {
	const shown = 4 // a line of each epoch
	var names []string
	for _, d := range ds[:min(len(ds), shown)] {
		names = append(names, domainText(d))
	}
	text := strings.Join(names, ", ")
	if rest := count - len(names); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

func domainText(d model.Domain) string {
	if d.ID == "" {
		return string(d.Kind)
	}
	return string(d.Kind) + " " + report.Clean(d.ID)
}

// saves is the table of all saves, newest first.
func (p *printer) saves(r *preflight.Result) {
	if len(r.Saves) < 2 {
		return
	}
	rows := [][]string{{"epoch", "verdict", "domains", "save"}}
	for i := range r.Saves {
		if i == maxSavesShown {
			break
		}
		s := &r.Saves[i]
		name, path := "?", ""
		if s.Epoch.OK {
			name = strconv.FormatInt(s.Epoch.V, 10)
		}
		if len(s.Paths) > 0 {
			path = report.CutMiddle(report.Clean(s.Paths[0]), 40)
		}
		rows = append(rows, []string{name, string(s.Verdict()), strconv.Itoa(s.Judgement.Domains), path})
	}
	p.Line("")
	p.Grid(rows)
	if rest := len(r.Saves) - maxSavesShown; rest > 0 {
		p.Line("%s", p.Paint(report.Dim, "and "+report.Plural(int64(rest), "older save")+"; all are in --json"))
	}
}

// preflightProblems lists what is wrong with the save that was judged and with the places.
func (p *printer) preflightProblems(r *preflight.Result) {
	problems := r.Problems
	if r.Judged != nil {
		problems = append(append([]preflight.Problem{}, r.Judged.Problems...), problems...)
	}
	if len(problems) == 0 {
		return
	}
	p.Line("")
	p.Line("%s", p.Paint(report.Bold, "problems"))
	for i := range problems {
		if i == maxPreflightProblems {
			p.Line("  and %d more; all are in --json", len(problems)-i)
			break
		}
		q := &problems[i]
		where := q.File
		if where == "" || where == "." {
			where = q.Place
		}
		p.Field(string(q.Check), report.Clean(where)+": "+report.Clean(q.What))
	}
}
