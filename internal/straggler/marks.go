// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// An operation belongs to the step in which its host launched it: it does not begin before that
// step, and was launched in it. Where a rank's operations say otherwise, another clock stamped
// the step and all else that its host tells. The step lasts as long as its operations then.

// misplaced is what steps said that cannot be.
type misplaced struct {
	steps          int64 // of ranks
	rank, step, by int64 // the last one, and by how much its operations lie outside
}

// outside returns by how much operations, or their launches, lie outside of the rank's step,
// typically; 0 where they do not.
func (v *rankView) outside() int64 {
	if !v.marked || v.dark {
		return 0
	}
	var by []int64
	count := func(start, launch int64) {
		far := v.start - start
		if launch != 0 {
			far = max(far, v.start-launch, launch-v.end)
		}
		if far > launchLatency {
			by = append(by, far)
		}
	}
	known := len(v.comms)
	for i := range v.acts {
		if a := &v.acts[i]; a.kind <= actCopy {
			known++
			count(a.start, a.launch)
		}
	}
	for i := range v.comms {
		count(v.comms[i].start, v.launchOf(&v.comms[i]))
	}
	if len(by) < leastContradict || float64(len(by)) < contradictShare*float64(known) {
		return 0
	}
	slices.Sort(by)
	return stats.MedianMidpoint(by)
}

// doubtMarks leaves out what hosts say of steps in which their operations cannot have been.
// Where it is half of the ranks or more, that is how their source marks steps.
func (j *job) doubtMarks(step int64, views []*rankView) {
	var wrong []*rankView
	by := int64(0)
	for _, v := range views {
		if far := v.outside(); far != 0 {
			wrong, by = append(wrong, v), far
		}
	}
	if len(wrong) == 0 || 2*len(wrong) >= len(views) {
		return
	}
	for _, v := range wrong {
		v.forgetHost()
		j.e.stats.HostsContradicted++
	}
	f := &j.faults.marks
	f.steps += int64(len(wrong))
	f.rank, f.step, f.by = wrong[len(wrong)-1].rank.Rank, step, by
}

// forgetHost takes what only the host's clock stamped from a rank's step.
func (v *rankView) forgetHost() {
	v.acts = slices.DeleteFunc(v.acts, func(a activity) bool { return a.kind > actCopy })
	v.start, v.end = v.extent()
	v.hostless, v.scopes, v.hosts = true, false, false
}

func (f *misplaced) far() time.Duration { return time.Duration(f.by).Round(time.Microsecond) }

// hostless reports whether in some step the stamps of the rank's host were left out.
func (in stretch) hostless(rank int64) bool {
	return slices.ContainsFunc(in, func(rec *record) bool {
		i, ok := rec.index[rank]
		return ok && rec.ranks[i].hostless
	})
}

func (f *misplaced) say() string {
	return fmt.Sprintf("in %d steps of ranks operations begin before their step, or were launched outside of it: what their hosts tell was left out, and their steps last as long as their operations; the last: rank %d in step %d, by %v. Do two clocks stamp them?",
		f.steps, f.rank, f.step, f.far())
}
