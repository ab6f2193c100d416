// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// sureOfUnclear is the confidence that a rank ended by itself whose error may be a result of
// another's end, where no other rank is known that may be the reason.
const sureOfUnclear = 0.7

// exited reports whether a launcher says that a rank ended by itself.
func (s *Set) exited(rank int64) bool {
	r, e := s.ranks[rank], s.exits[rank]
	switch {
	case !e.own():
		return false
	case r == nil:
		return true
	}
	return !r.order.given() && (e.code < 0 || r.fault.weight != weightResult)
}

// allEnded lists the ranks that ended by themselves.
func (s *Set) allEnded() []int64 {
	all := slices.AppendSeq(slices.Collect(maps.Keys(s.ranks)), maps.Keys(s.exits))
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(rank int64) bool { return !s.ended(rank) })
}

// end is when a rank ended, by the best that is known of it.
type end struct {
	rank   int64
	time   time.Time // zero: unknown
	report place     // of a launcher that writes no times; file -1: none
	fault  place     // in a log that ranks wrote together; file -1: none
	stamp  moment    // of the error's own line; 0: it has none
}

// leaveOutLater leaves out the ends of ranks that follow another one's: these are its results. Times
// decide, and without them the order of lines in one log.
func (s *Set) leaveOutLater() {
	var all []end
	var first firsts
	first.reports, first.faults = map[int]int64{}, map[int]int64{}
	merged := s.merged()
	for _, rank := range s.allEnded() {
		e := s.endOf(rank, merged)
		if !e.time.IsZero() && (first.time.IsZero() || e.time.Before(first.time)) {
			first.time = e.time
		}
		if e.stamp > 0 && (first.stamp == 0 || e.stamp < first.stamp) {
			first.stamp = e.stamp
		}
		least(first.reports, e.report)
		least(first.faults, e.fault)
		all = append(all, e)
	}
	for i := range all {
		if e := &all[i]; e.follows(&first) {
			s.isResult(e.rank)
		}
	}
}

// least notes a line as the first one of its file.
func least(lines map[int]int64, at place) {
	if old, ok := lines[at.file]; !ok || at.line < old {
		lines[at.file] = at.line
	}
}

func (s *Set) endOf(rank int64, merged map[int]bool) end {
	out := end{rank: rank, report: place{file: -1}, fault: place{file: -1}}
	if e, ok := s.exits[rank]; ok {
		out.time, _ = time.Parse("2006-01-02_15:04:05", e.time) // zero: not written
		if e.own() && out.time.IsZero() {
			out.report = e.at
		}
	}
	if r := s.ranks[rank]; r != nil && r.fault.weight > weightResult && !r.fault.caught {
		out.stamp = r.fault.stamp
		if merged[r.fault.first.file] {
			out.fault = r.fault.first
		}
	}
	return out
}

// firsts are the earliest of several ends: by times, and by lines of files.
type firsts struct {
	time            time.Time
	stamp           moment
	reports, faults map[int]int64
}

// follows reports whether an earlier end is known. Times are of whole seconds, and a launcher may
// see two ends of one moment one after the other. Times of two zones are further apart than the ends of one
// job.
func (e *end) follows(first *firsts) bool {
	switch {
	case !e.time.IsZero():
		return e.time.Sub(first.time) > time.Second
	case e.report.file >= 0:
		return first.reports[e.report.file] < e.report.line
	case e.fault.file >= 0:
		return first.faults[e.fault.file] < e.fault.line
	}
	const most = 600 * second
	apart := e.stamp - first.stamp
	return e.stamp > 0 && apart > second && apart < most
}

// isResult takes the end of a rank as a result of another's.
func (s *Set) isResult(rank int64) {
	if e, ok := s.exits[rank]; ok {
		e.root = false
		s.exits[rank] = e
	}
	if r := s.ranks[rank]; r != nil {
		r.fault.weight = min(r.fault.weight, weightResult)
	}
}

// merged are the files with lines of several ranks in the order in which they were written: in
// those that were put together afterwards the lines of each rank are a block.
func (s *Set) merged() map[int]bool {
	type block struct{ first, last place }
	var blocks []block
	for _, r := range s.ranks {
		if r.first.file == r.last.file {
			blocks = append(blocks, block{r.first, r.last})
		}
	}
	slices.SortFunc(blocks, func(a, b block) int {
		return cmp.Or(a.first.file-b.first.file, cmp.Compare(a.first.line, b.first.line))
	})
	out, reach := map[int]bool{}, place{file: -1}
	for _, b := range blocks {
		if b.first.file == reach.file && b.first.line < reach.line {
			out[reach.file] = true
		}
		if b.last.file != reach.file || b.last.line > reach.line {
			reach = b.last
		}
	}
	return out
}

// unsure reports whether a rank ended by an error that another's end may have caused.
func (s *Set) unsure(rank int64) bool {
	r := s.ranks[rank]
	return r != nil && r.fault.weight == weightUnclear && !s.exited(rank)
}

// doubt marks the errors that may be results, where another rank may be the reason: one that ended,
// is silent, or has such an error, too.
func (s *Set) doubt(world int64) {
	var unclear []*record
	for rank, r := range s.ranks {
		if s.mayBeResult(rank) {
			unclear = append(unclear, r)
		}
	}
	if len(unclear) == 1 && !s.otherMissing(world) {
		return
	}
	for _, r := range unclear {
		r.fault.doubted = true
	}
}

// mayBeResult reports whether the log of a rank ends with an error that may be a result.
func (s *Set) mayBeResult(rank int64) bool {
	r := s.ranks[rank]
	return len(r.waits) == 0 && s.unsure(rank) && !r.fault.caught
}

// otherMissing reports whether a rank ended by itself or is silent.
func (s *Set) otherMissing(world int64) bool {
	for rank := range world {
		r := s.ranks[rank]
		if r == nil || s.exited(rank) || len(r.waits) == 0 && !s.mayBeResult(rank) && (r.fault.weight != weightResult || r.fault.caught) {
			return true
		}
	}
	return false
}

// weigh lowers the confidence in a rank whose error may be a result of another's end, and lists
// candidates with such an error first.
func (s *Set) weigh(f *model.Finding) {
	if f.Class == model.ClassProcessDead && f.Rank.OK && s.unsure(f.Rank.V) {
		f.Confidence = min(f.Confidence, sureOfUnclear)
	}
	first := func(rank int64) int {
		if s.unsure(rank) && !s.ranks[rank].fault.caught {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(f.Candidates, func(a, b int64) int { return first(a) - first(b) })
}
