// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// extent is what part of a rank's life a file covers.
type extent struct {
	start, end          int64 // Unix ns
	firstStep, lastStep int64
	steps               bool // some operation has a step
	any                 bool
}

func extentOf(t *kineto.Trace) extent {
	var e extent
	for op := range t.Ops() {
		e.add(&op)
	}
	return e
}

func (e *extent) add(op *model.Op) {
	if !e.any {
		e.any, e.start, e.end = true, op.Start, op.End
	}
	e.start, e.end = min(e.start, op.Start), max(e.end, op.End)
	if !op.Step.OK {
		return
	}
	if !e.steps {
		e.steps, e.firstStep, e.lastStep = true, op.Step.V, op.Step.V
	}
	e.firstStep, e.lastStep = min(e.firstStep, op.Step.V), max(e.lastStep, op.Step.V)
}

// overlaps reports whether both files can not be true of one rank: it is in one
// place at a time, and takes a step once. A profiler with a schedule writes
// several files per rank that follow one another, and those do not overlap.
func (e *extent) overlaps(o *extent) bool {
	if !e.any || !o.any {
		return false
	}
	if e.start < o.end && o.start < e.end {
		return true
	}
	return e.steps && o.steps && e.firstStep <= o.lastStep && o.firstStep <= e.lastStep
}
