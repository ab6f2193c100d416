// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// unplaced is what lines say of ranks that nothing names.
type unplaced struct {
	waits    int64 // operations that timed out
	stuck    int64 // watchdogs that stood still
	stuckFor int64 // the longest, s; 0: not written
}

// toDecide is what shows more where the logs name no operation.
const toDecide = "the Python stack of such a rank (py-spy dump --pid), the ends of the logs of all ranks or the dumps of the Flight Recorder decide"

// silence says why nothing hangs by the logs, which name no operation of a known rank that timed out.
func (s *Set) silence() string {
	var said []string
	switch n := s.unplaced.waits; {
	case n == 1:
		said = append(said, "an operation timed out on a rank that no line names")
	case n > 1:
		said = append(said, fmt.Sprintf("%d operations timed out on ranks that no line names", n))
	}
	if ranks := slices.Sorted(maps.Keys(s.heard)); len(ranks) > 0 {
		said = append(said, "an operation timed out on "+nameRanks(ranks)+", whose log is not among these or does not have it")
	}
	if ranks := slices.Sorted(maps.Keys(s.nameless)); len(ranks) > 0 {
		of := "ranks that they do not name"
		if ranks[0] >= 0 {
			of = nameRanks(ranks)
		}
		said = append(said, "an operation timed out on "+of+", by lines that are cut in front of its name: get the logs with whole lines")
	}
	var stuck []int64
	longest := s.unplaced.stuckFor
	for rank, r := range s.ranks {
		if r.isStuck {
			stuck = append(stuck, rank)
			longest = max(longest, r.stuckFor)
		}
	}
	slices.Sort(stuck)
	if len(stuck) > 0 || s.unplaced.stuck > 0 {
		said = append(said, stuckText(stuck, longest)+", and no line names the operation")
	}
	if n := s.past; len(said) == 0 && n > 0 {
		of := "an earlier life"
		switch lives := s.lives.count(s); {
		case lives == 0:
			of = "earlier lives"
		case lives > 1:
			of = fmt.Sprintf("%d earlier lives", lives)
		}
		return fmt.Sprintf("the time-outs of %d ranks are of %s of the job; its last life has none: it may run, have ended, or hang since less than a time-out", n, of)
	}
	if len(said) == 0 {
		return "no log says that an operation timed out"
	}
	return strings.Join(said, "; ") + "; " + toDecide
}

// stuckText says whose watchdogs stood still, and for how many seconds.
func stuckText(ranks []int64, seconds int64) string {
	text := "the watchdog of a rank that no line names stood still"
	switch {
	case len(ranks) == 1:
		text = "the watchdog of " + nameRanks(ranks) + " stood still"
	case len(ranks) > 1:
		text = "the watchdogs of " + nameRanks(ranks) + " stood still"
	}
	if seconds > 0 {
		text += fmt.Sprintf(" for %d seconds", seconds)
	}
	return text
}

func nameRanks(ranks []int64) string {
	const most = 12
	parts, listed := model.Spans(ranks, most)
	if listed < len(ranks) {
		parts = append(parts, "...")
	}
	if len(ranks) == 1 {
		return "rank " + parts[0]
	}
	return "ranks " + strings.Join(parts, ", ")
}
