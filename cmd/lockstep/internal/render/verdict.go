// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// Verdict is what a job, or several, came to.
type Verdict string

// The verdicts. CannotTell is not None: where no wait is owed to anybody, a
// straggler would not have shown, unless it costs too little; and where a rank costs enough,
// and only something to compare it with lacks, it may be one.
const (
	Found      Verdict = "findings"
	None       Verdict = "none"
	CannotTell Verdict = "cannot_tell"
)

// VerdictOf returns the verdict over jobs: findings where any has one, none where in any
// something could be compared, and in none somebody is undecided.
func VerdictOf(jobs ...straggler.JobReport) Verdict {
	verdict, undecided := CannotTell, false
	for i := range jobs {
		switch {
		case len(jobs[i].Verdicts) > 0:
			return Found
		case jobs[i].Abstained.Undecided() || jobs[i].OffUnit > 0:
			undecided = true
		case jobs[i].Attributed > 0 || (jobs[i].Meetings > 0 && jobs[i].Unowed.Harmless()):
			verdict = None
		}
	}
	if undecided {
		return CannotTell
	}
	return verdict
}

// SortJobs puts the job with the costliest finding first, and those without a
// finding last, in the order in which they came.
func SortJobs(jobs []straggler.JobReport) {
	worst := func(j *straggler.JobReport) float64 {
		most := -1.0
		for i := range j.Verdicts {
			most = max(most, j.Verdicts[i].Finding.CostSeconds.Or(0))
		}
		return most
	}
	slices.SortStableFunc(jobs, func(a, b straggler.JobReport) int { return cmp.Compare(worst(&b), worst(&a)) })
}

// verdictText says in one sentence what a job came to.
func verdictText(j *straggler.JobReport) (text, colour string) {
	switch VerdictOf(*j) {
	case CannotTell:
		return "Cannot tell: " + cannotTell(j), report.Yellow
	case None:
		among := ""
		if j.MissingCount > 0 {
			among = fmt.Sprintf(" among the %s ranks that were seen", ofWorld(j))
		}
		if why := doubt(j); why != "" {
			return "No straggler is certain" + among + ": " + why + ".", report.Yellow
		}
		return "No straggler found" + among + ".", report.Green
	}
	f := &j.Verdicts[0].Finding
	text = report.Plural(int64(len(j.Verdicts)), "finding") + ": " + report.Subject(f)
	if f.CostSeconds.OK {
		verb := "costs"
		if report.Several(f) {
			verb = "cost"
		}
		text += fmt.Sprintf(", which %s %s per step", verb, report.Seconds(f.CostSeconds.V))
	}
	if n := int64(len(j.Verdicts)) - 1; n > 0 {
		text += fmt.Sprintf(", and %s more", report.Thousands(n))
	}
	return report.Clean(text) + ".", report.Red
}

func ofWorld(j *straggler.JobReport) string {
	return fmt.Sprintf("%s of %s", report.Thousands(int64(len(j.Ranks))), report.Thousands(int64(len(j.Ranks)+j.MissingCount)))
}

// cannotTell says why no rank could be compared with others.
func cannotTell(j *straggler.JobReport) string {
	seen := report.Plural(int64(len(j.Ranks)), "rank") + " seen"
	if j.MissingCount > 0 {
		seen = ofWorld(j) + " ranks seen"
	}
	switch {
	case j.OffUnit > 0:
		return seen + ", and stamps of another unit than nanoseconds, in which they are compared." + lacks("unit", float64(j.OffUnit), 0, "stamps in nanoseconds since 1970")
	case j.Abstained.Undecided():
		return undecided(j.Abstained)
	case j.Steps == 0:
		return seen + ", and no step." + lacks("steps", 0, 1, "operations with "+semconv.Step)
	case j.Meetings == 0 && operations(j) == 0:
		return seen + ", and no collective." + lacks("collectives", 0, 1, "operations with "+semconv.OpKind+" collective, or messages")
	case j.Meetings == 0:
		return fmt.Sprintf("%s, and %s, but of none more than one member.", seen, report.Plural(operations(j), "collective")) +
			lacks("members", 1, 2, joining(&j.Unjoined))
	}
	return fmt.Sprintf("%s, and %s, but of none can it be told who was waited for: "+
		"members were not seen, clocks cannot be compared, or members need not wait.",
		seen, report.Plural(int64(j.Meetings), "collective")) + unowed(j)
}

// lacks names the gate that was not passed, and what would pass it.
func lacks(gate string, got, want float64, what string) string {
	number := func(v float64) string {
		if v == math.Trunc(v) {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return report.Significant(v)
	}
	return fmt.Sprintf(" (Gate %s: got %s; want %s. What lacks: %s.)", gate, number(got), number(want), what)
}

// joining says what most operations that met nobody would have to have.
func joining(u *straggler.Unjoined) string {
	what, most := "operations of other ranks that agree in "+semconv.CommID+" and "+semconv.CollectiveSeq, u.Alone
	for _, l := range []struct {
		n    int
		what string
	}{
		{u.Scope, semconv.CollectiveSeqScope + " that says over what the ranks count together"},
		{u.Number, semconv.CollectiveSeq},
		{u.Peer, semconv.Peer},
		{u.Crowded, semconv.CommSize + " that is true: more ranks take part"},
		{u.Unlike, "operations of one " + semconv.CollectiveSeq + " that agree in " + semconv.CollectiveName + " and " + semconv.CollectiveBytes},
	} {
		if l.n > most {
			what, most = l.what, l.n
		}
	}
	if most > 0 {
		what += fmt.Sprintf(" (%s joined nothing for this)", report.Plural(int64(most), "operation"))
	}
	return what
}

// absent says whose operations lack, of ranks that were seen.
func absent(j *straggler.JobReport) string {
	var silent []int64
	for i := range j.Ranks {
		if j.Ranks[i].Meetings == 0 {
			silent = append(silent, j.Ranks[i].Rank)
		}
	}
	switch {
	case len(silent) > 0:
		return "communication of " + report.SomeRanks(silent, len(silent)) + ", of which none was recorded"
	case len(j.Apart) > 0:
		return "operations of " + report.SomeRanks(j.Apart, len(j.Apart)) + " that meet those of the others"
	}
	return joining(&j.Unjoined)
}

// unowed says which of the reasons it is, that of most collectives.
func unowed(j *straggler.JobReport) string {
	u := &j.Unowed
	lacking := absent(j)
	if j.MissingCount > 0 {
		lacking = "operations of " + report.SomeRanks(j.Missing, j.MissingCount)
	}
	switch most := max(u.Members, u.Clocks, u.Order, u.Kind); {
	case most == 0:
		return ""
	case u.Members == most && u.Share < 1:
		return fmt.Sprintf(" Nobody who was seen is named, and %s of the step may be waits for who was not.", report.Share(u.Share)) +
			lacks("unseen_share", u.Share, u.Want, lacking)
	case u.Members == most:
		return lacks("unseen_members", float64(u.Members), 0, lacking)
	case u.Order == most:
		return lacks("order", float64(u.Order), 0, "stamps by which nobody leaves a collective before all have come")
	case u.Clocks == most:
		return lacks("clocks", 0, 1, "a common "+semconv.ClockID+", or collectives that relate the clocks")
	}
	return lacks("synchronising", 0, 1, "collectives in which all wait for all, or "+semconv.CollectiveRoot)
}

// operations returns the most collectives that any rank took part in.
func operations(j *straggler.JobReport) int64 {
	var most int
	for i := range j.Ranks {
		most = max(most, j.Ranks[i].Meetings)
	}
	return int64(most)
}

func judgedText(j *straggler.JobReport) string {
	text := fmt.Sprintf("%s and %s", report.Plural(int64(j.Steps), "step"), report.Plural(int64(j.Meetings), "collective"))
	if rest := j.Meetings - j.Attributed; rest > 0 {
		text += fmt.Sprintf("; of %s no wait is owed to anybody", report.Thousands(int64(rest)))
	}
	return text
}

// Apart says that a rank met nobody, and why that may be.
func Apart(rank int64) string {
	return fmt.Sprintf("rank %d shares no collective with the others: %s", rank, apartWhy)
}

const apartWhy = "other step numbers, other process-group names, or another job?"

func apartText(apart []int64) string {
	verb := " share"
	if len(apart) == 1 {
		verb = " shares"
	}
	return report.SomeRanks(apart, len(apart)) + verb + " no collective with the others: " + apartWhy
}

func (p *printer) verdict(j *straggler.JobReport, i int) {
	v := &j.Verdicts[i]
	p.Finding(&v.Finding, report.TitleOf(i, len(j.Verdicts)), len(j.Verdicts))
	p.timeline(v.Decisive)
	p.Line("")
}
