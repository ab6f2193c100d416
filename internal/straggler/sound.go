// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// A stamp can be believable by itself and absurd beside those of the other ranks: one of
// 20 h in a step of 57 ms would make the step that long, and everything else in it worth
// nothing. Who is held up for so long holds up all others, and the typical rank with them.
const (
	// absurdTimes is how many times longer than the typical rank's step nothing in a step
	// lasts, and absurdLeast what is never called absurd: a stall of a minute is to be told.
	absurdTimes = 1000
	absurdLeast = int64(time.Minute)
)

// absurd returns how long nothing in a step lasts of which ranks' parts are so long.
func absurd(lengths []int64) int64 {
	slices.Sort(lengths)
	typical := stats.MedianLow(lengths)
	return max(absurdLeast, absurdTimes*min(typical, int64(maxOpTime)/absurdTimes))
}

// leaveOutAbsurd takes from a step what lasts longer than anything in it can.
func (j *job) leaveOutAbsurd(s *openStep) {
	lengths := make([]int64, 0, len(s.ranks))
	longest := int64(0)
	for _, rs := range s.ranks {
		lengths = append(lengths, rs.end-rs.start)
		longest = max(longest, rs.end-rs.start, rs.longest)
	}
	if longest <= absurdLeast {
		return
	}
	limit := absurd(lengths)
	for _, rank := range sorted(s.ranks) {
		if n := s.ranks[rank].leaveOutLonger(limit); n > 0 {
			j.e.stats.OpsUnsound += n
			j.faults.leaveOut(n, fmt.Sprintf("of rank %d in step %d, longer than %v", rank, s.step, time.Duration(limit)))
		}
	}
}

// leaveOutLonger takes operations beyond the limit from a rank's step, and returns how
// many. A step that is too long itself lasts as long as what is left in it.
func (rs *rankStep) leaveOutLonger(limit int64) (n int64) {
	if rs.longest > limit {
		before := rs.size()
		rs.acts = slices.DeleteFunc(rs.acts, func(a activity) bool {
			return (a.kind == actCompute || a.kind == actCopy) && a.end-a.start > limit
		})
		rs.comms = slices.DeleteFunc(rs.comms, func(c commOp) bool { return c.end-c.start > limit })
		n = int64(before - rs.size())
	}
	if rs.end-rs.start > limit {
		if rs.marked {
			n++
		}
		rs.start, rs.end = rs.extent()
	}
	return n
}

// extent returns when the first operation of the rank's step began and the last ended.
func (rs *rankStep) extent() (start, end int64) {
	start, end = rs.start, rs.start
	first := true
	each := func(from, to int64) {
		if first {
			start, end, first = from, to, false
		}
		start, end = min(start, from), max(end, to)
	}
	for i := range rs.acts {
		each(rs.acts[i].start, rs.acts[i].end)
	}
	for i := range rs.comms {
		each(rs.comms[i].start, rs.comms[i].end)
	}
	return start, end
}

// astray returns the ranks that begin the step so far from the typical one that their
// clocks cannot be right.
func (rec *record) astray() map[int]bool {
	starts, lengths := make([]int64, 0, len(rec.ranks)), make([]int64, 0, len(rec.ranks))
	for i := range rec.ranks {
		starts = append(starts, rec.ranks[i].start)
		lengths = append(lengths, rec.ranks[i].end-rec.ranks[i].start)
	}
	slices.Sort(starts)
	if len(starts) < 3 || starts[len(starts)-1]-starts[0] <= absurdLeast {
		return nil // of two nobody can say which is right
	}
	typical, limit := stats.MedianHigh(starts), absurd(lengths)
	out := map[int]bool{}
	for i := range rec.ranks {
		if d := rec.ranks[i].start - typical; d > limit || d < -limit {
			out[i] = true
		}
	}
	return out
}
