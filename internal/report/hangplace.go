// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// HangPlace names what a finding of a hang is about.
func HangPlace(f *model.Finding) string {
	switch {
	case f.Rank.OK:
		return fmt.Sprintf("rank %d", f.Rank.V) + onHost(f)
	case len(f.Ranks) > 0:
		return SpansOf(f.Ranks, f.RanksCount)
	case len(f.Candidates) == 1 && f.CandidatesCount.Or(1) == 1:
		return fmt.Sprintf("perhaps rank %d", f.Candidates[0])
	case len(f.Candidates) > 0:
		return "one of " + Plural(f.CandidatesCount.Or(int64(len(f.Candidates))), "rank")
	case f.RanksCount.Or(0) > 0 && f.Host != "": // no rank of the job is known
		return "a process on " + ShortName(f.Host)
	case f.RanksCount.Or(0) > 0:
		return Thousands(f.RanksCount.V) + " processes"
	}
	return "no rank"
}

// namesProcess reports whether a finding of a hang names ranks or processes, and no candidates alone.
func namesProcess(f *model.Finding) bool {
	return f.Rank.OK || len(f.Ranks) > 0 || len(f.Candidates) == 0 && f.RanksCount.Or(0) > 0
}

// CauseText returns the cause of a finding; "" where it is unknown.
func CauseText(f *model.Finding) string {
	if f.Cause == model.CauseUnknown {
		return ""
	}
	return f.Cause
}

// CandidatesText lists the ranks between which the evidence of a hang does not decide.
func CandidatesText(f *model.Finding) string {
	switch {
	case len(f.Candidates) == 0:
		return ""
	case len(f.Ranks) > 0:
		return "likeliest first: " + SpansOf(f.Candidates, f.CandidatesCount)
	case f.CandidatesCount.Or(int64(len(f.Candidates))) == 1:
		return fmt.Sprintf("rank %d; the evidence does not decide whether it is at fault", f.Candidates[0])
	}
	return "the evidence does not decide between " + SpansOf(f.Candidates, f.CandidatesCount)
}

// WaitingText says who waits for the place itself, and how many through others.
func WaitingText(f *model.Finding) string {
	var parts []string
	switch n := f.WaitingCount.Or(int64(len(f.Waiting))); {
	case n == 1 && len(f.Waiting) == 1:
		parts = append(parts, fmt.Sprintf("rank %d waits for it itself", f.Waiting[0]))
	case n == 1 && len(f.Waiting) == 0:
		parts = append(parts, "1 process waits for it itself")
	case n > 0 && len(f.Waiting) == 0:
		parts = append(parts, fmt.Sprintf("%s processes wait for it themselves", Thousands(n)))
	case n > 0:
		parts = append(parts, SpansOf(f.Waiting, f.WaitingCount)+" wait for it themselves")
	}
	if f.Through.V > 0 {
		parts = append(parts, Thousands(f.Through.V)+" more through others")
	}
	return strings.Join(parts, "; ")
}
