// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
)

// step is one step of the rank. Times are ns before the base is added.
type step struct {
	number     int64
	start, end int64
	last       int64 // end of the last operation enqueued in it
	tid        int64
	name       string
}

// stepAnnotation returns the number of an annotation that marks a step, and what
// is before it; -1 for others.
func stepAnnotation(pattern *regexp.Regexp, s string) (family string, n int64) {
	loc := pattern.FindStringSubmatchIndex(s)
	for i := 2; i+1 < len(loc); i += 2 {
		if loc[i] < 0 {
			continue
		}
		if n, ok := parseInt([]byte(s[loc[i]:loc[i+1]])); ok && n >= 0 {
			return s[:loc[i]], n
		}
	}
	return "", -1
}

// findSteps finds the boundaries: ProfilerStep, else annotations, else the whole
// trace is step 0.
func (t *Trace) findSteps() {
	switch {
	case t.stepMarks.n > 0:
		for i := range t.stepMarks.n {
			e := t.stepMarks.at(i)
			t.steps = append(t.steps, step{number: e.val, start: e.ts, end: e.end(), tid: e.tid, name: fmt.Sprintf("ProfilerStep#%d", e.val)})
		}
	default:
		t.annotatedSteps()
	}
	t.stepMarks.reset()
	if len(t.steps) == 0 {
		t.oneStep()
	}
	t.cleanSteps()
}

// family is a series of annotations that count something.
type family struct {
	prefix string
	tid    int64
}

// annotatedSteps takes the longest series of annotations that count.
func (t *Trace) annotatedSteps() {
	counts := map[family]int{}
	for i := range t.ops.n {
		if e := t.ops.at(i); e.kind == evScope && t.names[e.name].step >= 0 {
			counts[family{t.names[e.name].fam, e.tid}]++
		}
	}
	var best family
	for f, n := range counts {
		if d := cmp.Or(cmp.Compare(n, counts[best]), cmp.Compare(best.prefix, f.prefix), cmp.Compare(best.tid, f.tid)); d > 0 {
			best = f
		}
	}
	if len(counts) == 0 {
		return
	}
	for i := range t.ops.n {
		e := t.ops.at(i)
		n := &t.names[e.name]
		if e.kind == evScope && n.step >= 0 && (family{n.fam, e.tid}) == best {
			t.steps = append(t.steps, step{number: n.step, start: e.ts, end: e.end(), tid: e.tid, name: n.text})
			e.kind = evStep
		}
	}
}

// oneStep makes the whole trace one step.
func (t *Trace) oneStep() {
	s := step{start: math.MaxInt64, end: math.MinInt64, name: "step"}
	for i := range t.ops.n {
		e := t.ops.at(i)
		s.start, s.end = min(s.start, t.enqueued(e), e.ts), max(s.end, e.end())
	}
	if t.ops.n > 0 {
		t.steps = []step{s}
	}
}

// cleanSteps sorts the steps, lets repeated numbers go, and ends a step where
// the next begins.
func (t *Trace) cleanSteps() {
	slices.SortStableFunc(t.steps, func(a, b step) int { return cmp.Compare(a.start, b.start) })
	seen := make(map[int64]bool, len(t.steps))
	t.steps = slices.DeleteFunc(t.steps, func(s step) bool {
		again := seen[s.number]
		seen[s.number] = true
		if again {
			t.stats.StepsRepeated++
		}
		return again
	})
	if n := t.stats.StepsRepeated; n > 0 {
		t.problem(-1, fmt.Sprintf("skip %d step marks: their numbers were used before in this file", n))
	}
	for i := range t.steps {
		s := &t.steps[i]
		if i+1 < len(t.steps) {
			s.end = min(s.end, t.steps[i+1].start)
		}
		s.last = s.end
	}
}

// enqueued returns when the host enqueued the operation; its own start where
// that is unknown.
func (t *Trace) enqueued(e *event) int64 {
	if e.launch != 0 {
		return t.launches.at(int(e.launch - 1)).ts
	}
	return e.ts
}

// assignSteps puts each operation into the step in which it was enqueued.
func (t *Trace) assignSteps() {
	for i := range t.ops.n {
		e := t.ops.at(i)
		if e.kind == evStep {
			continue
		}
		if e.step = t.stepAt(t.enqueued(e)); e.step < 0 {
			t.stats.OutsideSteps++
			continue
		}
		if s := &t.steps[e.step]; e.kind != evScope && e.kind != evHost {
			s.last = max(s.last, e.end())
		}
	}
}

// stepAt returns the index of the step at a time, -1 for none.
func (t *Trace) stepAt(at int64) int32 {
	i := sort.Search(len(t.steps), func(i int) bool { return t.steps[i].start > at }) - 1
	if i < 0 || at > t.steps[i].end {
		return -1
	}
	return int32(i)
}
