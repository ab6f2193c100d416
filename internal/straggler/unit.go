// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// otherUnit is what steps said that looks like stamps in another unit than nanoseconds.
type otherUnit struct {
	short, all       int64 // steps of ranks that last hardly anything
	off              int64 // that do, or last little and lie before 1990 or after 2100
	rank, step, took int64 // the last one
}

// doubtUnit counts steps of ranks whose stamps nobody can have taken in nanoseconds. They are
// compared as they are.
func (j *job) doubtUnit(v *rankView, step int64) {
	f := &j.faults.units
	f.all++
	took := v.end - v.start
	short := took < model.ShortestStep
	if short {
		f.short++
		f.rank, f.step, f.took = v.rank.Rank, step, took
	}
	dated := model.IsTime(v.start) && model.IsTime(v.end)
	if short || !dated {
		j.e.stats.StepsOffUnit++
	}
	if short || !dated && took < millisecond {
		f.off++
	}
}

// millisecond is what a step whose clock began at another time than 1970 takes at least: one
// in microseconds since 1970 lies there, and takes a second where it seems to take less.
const millisecond = int64(time.Millisecond)

// whole is how many steps of ranks there were, if all are in another unit.
func (f *otherUnit) whole() int64 {
	if f.off < f.all {
		return 0
	}
	return f.all
}

// say says that all steps are too short to be true, "" where they are not.
func (f *otherUnit) say() string {
	if f.short == 0 || f.short < f.all {
		return ""
	}
	return fmt.Sprintf("check unit of stamps: got %d steps of ranks that are all shorter than %v, the last of %d ns (rank %d in step %d); want nanoseconds since 1970. Are they microseconds or milliseconds?",
		f.all, time.Duration(model.ShortestStep), f.took, f.rank, f.step)
}
