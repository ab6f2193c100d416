// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// Nothing begins before it was launched. Where a rank's operations do, two clocks stamped
// them: the launches say nothing then, neither of the host nor of work that nobody recorded.
// What the device did is as long as it was. A host runs ahead of its device, so that a clock
// that is late shows in few operations, those that follow a synchronisation.
const (
	leastContradict = 3
	contradictShare = 0.05 // of the operations whose launches are known
)

// contradicted is what launches said that cannot be.
type contradicted struct {
	steps            int64 // of ranks
	rank, step, late int64 // the last one, and by how much its launches come after
}

// launchOf returns when the operation was launched, 0 where that is not known: nothing lies
// longer between a launch and what it launched than an operation lasts.
func launchOf(op *model.Op) int64 {
	if at := op.Launch.Or(0); at > 0 && at-op.Start <= int64(maxOpTime) && op.Start-at <= int64(maxOpTime) {
		return at
	}
	return 0
}

// doubtLaunch notes a launch that cannot be true.
func (j *job) doubtLaunch(rs *rankStep, op *model.Op) {
	if op.Launch.Or(0) == 0 || launchOf(op) != 0 {
		return
	}
	rs.badLaunches = true
	f := &j.faults
	if f.badLaunches++; f.firstLaunch == "" {
		f.firstLaunch = fmt.Sprintf("of %q of rank %d in step %d", op.Name, rs.rank.Rank, op.Step.V)
	}
}

// contradicts returns by how much launches of the rank come after their operations began,
// typically; 0 where they do not.
func (v *rankView) contradicts() int64 {
	known := 0
	var late []int64
	count := func(start, launch int64) {
		if launch == 0 {
			return
		}
		if known++; launch-start > launchLatency {
			late = append(late, launch-start)
		}
	}
	for i := range v.acts {
		if a := &v.acts[i]; a.kind == actCompute || a.kind == actCopy {
			count(a.start, a.launch)
		}
	}
	for i := range v.comms {
		count(v.comms[i].start, v.launchOf(&v.comms[i]))
	}
	if len(late) < leastContradict || float64(len(late)) < contradictShare*float64(known) {
		return 0
	}
	slices.Sort(late)
	return stats.MedianMidpoint(late)
}

// doubtLaunches leaves out launches that contradict their operations. Those of a few ranks
// are compared by all of their idleness then, whose it is. Where it is half of all or more,
// nobody's launches count.
func (j *job) doubtLaunches(step int64, views []*rankView) {
	var wrong []*rankView
	for _, v := range views {
		late := v.contradicts()
		if late != 0 || v.badLaunches {
			j.e.stats.LaunchesContradicted++
		}
		if late == 0 {
			continue
		}
		wrong = append(wrong, v)
		f := &j.faults.launches
		f.steps++
		f.rank, f.step, f.late = v.rank.Rank, step, late
	}
	if len(wrong) == 0 {
		return
	}
	if 2*len(wrong) >= len(views) {
		wrong = views
	}
	for _, v := range wrong {
		v.forgetLaunches()
	}
}

func (v *rankView) forgetLaunches() {
	v.unlaunched = true
	for i := range v.acts {
		v.acts[i].launch = 0
	}
	for i := range v.comms {
		v.comms[i].launch = 0
	}
}

func (c *contradicted) by() time.Duration { return time.Duration(c.late).Round(time.Microsecond) }
