package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// Verdict is what a job, or several, came to.
type Verdict string

// The verdicts. CannotTell is not None: where no wait is owed to anybody, a
// straggler would not have shown.
const (
	Found      Verdict = "findings"
	None       Verdict = "none"
	CannotTell Verdict = "cannot_tell"
)

// VerdictOf returns the verdict over jobs: findings where any has one, none
// where in any something could be compared.
func VerdictOf(jobs ...straggler.JobReport) Verdict {
	verdict := CannotTell
	for i := range jobs {
		switch {
		case len(jobs[i].Verdicts) > 0:
			return Found
		case jobs[i].Attributed > 0:
			verdict = None
		}
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
		return "Cannot tell: " + cannotTell(j), yellow
	case None:
		if j.MissingCount > 0 {
			return fmt.Sprintf("No straggler found among the %s ranks that were seen.", ofWorld(j)), green
		}
		return "No straggler found.", green
	}
	f := &j.Verdicts[0].Finding
	text = plural(int64(len(j.Verdicts)), "finding") + ": " + place(f)
	if f.CostSeconds.OK {
		verb := "costs"
		if several(f) {
			verb = "cost"
		}
		text += fmt.Sprintf(", which %s %s per step", verb, Seconds(f.CostSeconds.V))
	}
	if n := int64(len(j.Verdicts)) - 1; n > 0 {
		text += fmt.Sprintf(", and %s more", thousands(n))
	}
	return clean(text) + ".", red
}

func ofWorld(j *straggler.JobReport) string {
	return fmt.Sprintf("%s of %s", thousands(int64(len(j.Ranks))), thousands(int64(len(j.Ranks)+j.MissingCount)))
}

// cannotTell says why no rank could be compared with others.
func cannotTell(j *straggler.JobReport) string {
	seen := plural(int64(len(j.Ranks)), "rank") + " seen"
	if j.MissingCount > 0 {
		seen = ofWorld(j) + " ranks seen"
	}
	switch {
	case j.Steps == 0:
		return seen + ", and no step."
	case j.Meetings == 0 && operations(j) == 0:
		return seen + ", and no collective."
	case j.Meetings == 0:
		return fmt.Sprintf("%s, and %s, but of none more than one member.", seen, plural(operations(j), "collective"))
	}
	return fmt.Sprintf("%s, and %s, but of none can it be told who was waited for: "+
		"members were not seen, clocks cannot be compared, or members need not wait.",
		seen, plural(int64(j.Meetings), "collective"))
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
	text := fmt.Sprintf("%s and %s", plural(int64(j.Steps), "step"), plural(int64(j.Meetings), "collective"))
	if rest := j.Meetings - j.Attributed; rest > 0 {
		text += fmt.Sprintf("; of %s no wait is owed to anybody", thousands(int64(rest)))
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
	return ranks(apart, len(apart)) + verb + " no collective with the others: " + apartWhy
}
