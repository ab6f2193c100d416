// SPDX-License-Identifier: Apache-2.0

package rasset

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/ras"
)

// numbered numbers the answers of each file.
func numbered(answers []Answer) []Answer {
	of := map[string]int{}
	for _, a := range answers {
		of[a.Path]++
	}
	out, next := slices.Clone(answers), map[string]int{}
	for i := range out {
		a := &out[i]
		a.number, a.several = next[a.Path], of[a.Path] > 1
		next[a.Path]++
	}
	return out
}

// place gives answers their times: their own, where all have one, else those of the files. Answers
// of one file that have their own are as far apart as these say, and others one behind another. It
// reports whether all times are the answers' own.
func place(answers []Answer) (own bool) {
	last := map[string]int64{} // of a file: the newest time of its answers
	for i := range answers {
		a := &answers[i]
		at, err := time.Parse(time.DateTime, a.Status.Taken)
		if a.timed = err == nil; a.timed {
			a.at = at.UnixNano()
			last[a.Path] = max(last[a.Path], a.at)
		}
	}
	own = !slices.ContainsFunc(answers, func(a Answer) bool { return !a.timed })
	for i := range answers {
		a := &answers[i]
		switch {
		case own:
		case a.timed:
			a.at += a.Written - last[a.Path]
		default:
			a.at = a.Written
		}
		a.at += int64(a.number)
	}
	return own
}

// text names an answer by its file, and by its number where that has several.
func (a *Answer) text() string {
	name := filepath.Base(a.Path)
	if a.several {
		return "answer " + strconv.Itoa(a.number+1) + " of " + name
	}
	return name
}

// lack says why an answer lists launches of no rank; empty where it lists some.
func (a *Answer) lack() string {
	var silent []string
	for i := range a.Status.Comms {
		c := &a.Status.Comms[i]
		if slices.ContainsFunc(c.Ranks, func(r ras.Rank) bool { return len(r.Counts) > 0 }) {
			return ""
		}
		for k := range c.Missing {
			if n := strconv.Itoa(c.Missing[k].Rank); !slices.Contains(silent, n) && len(silent) < maxRemarks {
				silent = append(silent, n)
			}
		}
	}
	switch {
	case len(silent) == 1:
		return "rank " + silent[0] + " does not answer, and launches of the others are not listed"
	case len(silent) > 1:
		return "ranks " + strings.Join(silent, ", ") + " do not answer, and launches of the others are not listed"
	case a.Status.Cut():
		return "says " + a.Status.Flagged + " and ends before it says which ranks"
	case len(a.Status.Comms) == 0 && a.Status.Prose:
		return "lists no communicator, as none differs"
	case len(a.Status.Comms) == 0:
		return "lists no communicator"
	}
	return "lists launches of no rank"
}

// oneMoment says why answers show what ranks launched at one time alone, and what decides.
func oneMoment(answers []Answer, own bool) string {
	const passing = "ranks of a job that runs differ for a moment as well: "
	const hung = ", or --hung where you know that the job hung"
	const second = "a second ncclras some seconds later beside it decides" + hung
	const two = "two whole answers (ncclras -v) some seconds apart decide" + hung
	var full []*Answer
	var lacking []string
	for i := range answers {
		switch why := answers[i].lack(); {
		case why == "":
			full = append(full, &answers[i])
		case len(lacking) < maxRemarks:
			lacking = append(lacking, answers[i].text()+": "+why)
		}
	}
	lacks := strings.Join(lacking, "; ")
	switch {
	case len(answers) == 1 && lacks == "":
		return "this is one answer of NCCL's RAS, and " + passing + second
	case len(answers) == 1:
		return "this is one answer of NCCL's RAS, and it lists launches of no rank (" + lacks + "): " + two
	case len(full) == 0:
		return fmt.Sprintf("none of the %d answers of NCCL's RAS lists launches of ranks (%s): %s", len(answers), lacks, two)
	case len(full) == 1:
		return fmt.Sprintf("of the %d answers of NCCL's RAS %s alone lists launches of ranks (%s), and %s%s", len(answers), full[0].text(), lacks, passing, second)
	}
	byTime := func(a, b *Answer) int { return cmp.Compare(a.at, b.at) }
	first, last := slices.MinFunc(full, byTime), slices.MaxFunc(full, byTime)
	if first == last {
		last = full[1]
	}
	apart := time.Duration(last.at - first.at).Round(time.Second)
	which := "the times of their files"
	if own {
		which = "their timestamps"
	}
	if apart < desync.SavedApart {
		return fmt.Sprintf("%s and %s are %.0f s apart by %s; want %.0f s, as %s%s", first.text(), last.text(), apart.Seconds(), which, desync.SavedApart.Seconds(), passing, second)
	}
	return fmt.Sprintf("the %d answers of NCCL's RAS have no rank in common of which they list launches, and %s%s", len(answers), passing, two)
}
