package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// extent is what part of a rank's life a file covers.
type extent struct {
	start, end  int64 // Unix ns
	first, last int64 // steps
	steps, any  bool
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
		e.steps, e.first, e.last = true, op.Step.V, op.Step.V
	}
	e.first, e.last = min(e.first, op.Step.V), max(e.last, op.Step.V)
}

// overlaps reports whether both files cannot be true of one rank, which takes
// a step once. A profiler with a schedule writes several files per rank that
// follow one another; those do not overlap.
func (e *extent) overlaps(o *extent) bool {
	return (e.start < o.end && o.start < e.end) ||
		(e.steps && o.steps && e.first <= o.last && o.first <= e.last)
}

type claim struct {
	file string
	part extent
}

// claims knows which file speaks for which part of which rank; the number of
// files bounds it.
type claims map[rankID][]claim

// take gives a file its part of the rank, or names the file that has it.
func (c claims) take(file string, r *model.Rank, e extent) (holder string) {
	id := rankID{r.Incarnation, r.Rank}
	for _, held := range c[id] {
		if held.part.overlaps(&e) {
			return held.file
		}
	}
	c[id] = append(c[id], claim{file, e})
	return ""
}

// worlds tells the size of a job, by directory, from the names of its files,
// for traces that do not state it.
type worlds map[string]*world

type world struct {
	files, highest int64 // files, and the highest rank that a name states
}

func countWorlds(files []input, pattern *regexp.Regexp) worlds {
	w := worlds{}
	for _, f := range files {
		dir := filepath.Dir(f.path)
		if w[dir] == nil {
			w[dir] = &world{highest: -1}
		}
		w[dir].files++
		w[dir].highest = max(w[dir].highest, namedRank(f.path, pattern))
	}
	return w
}

// namedRank returns the rank that a file's name states, by its last match as
// the reader has it, or -1.
func namedRank(path string, pattern *regexp.Regexp) int64 {
	for _, match := range slices.Backward(pattern.FindAllStringSubmatch(filepath.Base(path), -1)) {
		for _, group := range match[1:] {
			if n, err := strconv.ParseInt(group, 10, 32); err == nil {
				return n
			}
		}
	}
	return -1
}

// alone reports whether a file is the only one of its directory, which then may
// be rank 0 without saying so.
func (w worlds) alone(path string) bool { return w[filepath.Dir(path)].files == 1 }

// settle completes a rank whose trace did not state the world's size. A missing
// file does not make the job smaller, so the highest rank counts.
func (w worlds) settle(path string, r *model.Rank) {
	if n := w[filepath.Dir(path)].highest + 1; !r.WorldSize.OK && n > 0 {
		r.WorldSize = model.Some(max(n, r.Rank+1))
	}
}
