package torchtracereceiver

import (
	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// rankKey is one rank of one life of one job.
type rankKey struct {
	job, incarnation string
	rank             int64
}

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

// claims knows which file speaks for which part of which rank. It holds at most
// one claim per known file, whose number max_files bounds.
type claims struct {
	byRank map[rankKey]map[string]extent // file to extent
	byFile map[string]rankKey
}

func newClaims() *claims {
	return &claims{byRank: map[rankKey]map[string]extent{}, byFile: map[string]rankKey{}}
}

// take gives the file its part of the rank, or names the file that has it. A
// file read again replaces its own claim.
func (c *claims) take(file string, r *model.Rank, e extent) (holder string, ok bool) {
	c.forget(file)
	key := rankKey{r.JobID, r.Incarnation, r.Rank}
	for other, held := range c.byRank[key] {
		if held.overlaps(&e) && (holder == "" || other < holder) {
			holder = other
		}
	}
	if holder != "" {
		return holder, false
	}
	if c.byRank[key] == nil {
		c.byRank[key] = map[string]extent{}
	}
	c.byRank[key][file] = e
	c.byFile[file] = key
	return "", true
}

// forget gives up what a file that is gone had claimed.
func (c *claims) forget(file string) {
	key, ok := c.byFile[file]
	if !ok {
		return
	}
	delete(c.byFile, file)
	delete(c.byRank[key], file)
	if len(c.byRank[key]) == 0 {
		delete(c.byRank, key)
	}
}
