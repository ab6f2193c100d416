// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"slices"
)

// A rank that takes part in its collectives twice, at different times, while the others take
// part once, is two processes under one number, of which nothing else tells. What either did
// cannot be said, and the sum of both is nobody's time.

// mixedShare is how much of a rank's communication must have come twice: all of a second
// process is half of it, and one that came for a part of the step only is less. A stamp
// that was delivered again with another time is one of many.
const mixedShare = 0.25

// mixed counts steps of ranks in which two processes bore one number.
type mixed struct {
	steps      int64
	rank, step int64 // the last one
}

// leaveOutMixed returns the ranks without those that are two, and takes these from the step.
func (j *job) leaveOutMixed(s *openStep, views []*rankView) []*rankView {
	double := 0
	for _, v := range views {
		if v.mixed() {
			double++
		}
	}
	if double == 0 || 2*double >= len(views) { // groups that share a name are so for most
		return views
	}
	out := slices.DeleteFunc(slices.Clone(views), (*rankView).mixed)
	for _, v := range views {
		if v.mixed() {
			delete(s.ranks, v.rank.Rank)
			f := &j.faults.mixed
			f.steps++
			f.rank, f.step = v.rank.Rank, s.step
			j.e.stats.OpsOfTwins += int64(v.size())
		}
	}
	for i, v := range out {
		v.index = i
	}
	return out
}

func (v *rankView) mixed() bool {
	return v.twice > 0 && float64(v.twice) >= mixedShare*float64(len(v.comms))
}

func (f *mixed) say() string {
	return fmt.Sprintf("in %d steps of ranks one was in collectives twice, at different times: its operations were left out, as whose they are cannot be told; the last: rank %d in step %d. Do two processes bear one rank?", f.steps, f.rank, f.step)
}
