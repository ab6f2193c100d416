// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// Class is what is said of a relation, by number.
type Class uint8

// The classes, from best to worst.
const (
	Right Class = iota
	Artefact
	Undecided
	Violation
	Introduced
	classes
)

// ClassName returns the name of a class that a span can bear; "" for Right.
func ClassName(c Class) string {
	switch c {
	case Artefact:
		return semconv.VerdictArtefact
	case Undecided:
		return semconv.VerdictUndecided
	case Violation:
		return semconv.VerdictViolation
	case Introduced:
		return semconv.VerdictIntroduced
	}
	return ""
}

// Job is whose relations are counted together: a training job, else a service.
type Job struct {
	Name string
	// Counts are the judged relations by class, since the beginning.
	Counts [classes]int64

	buckets []bucket // of a second
	seen    int64    // second
}

type bucket struct {
	second      int64
	judged, bad int64
}

// jobs are bounded; what comes after the limit shares one.
type jobs struct {
	max    int
	window time.Duration
	limit  float64
	byName map[string]*Job
	rest   *Job
	swept  int64 // second, when they were looked through for old ones
}

func newJobs(most int, window time.Duration, limit float64) *jobs {
	return &jobs{max: most, window: window, limit: limit, byName: map[string]*Job{}}
}

func (js *jobs) of(name string, second int64) *Job {
	name = cut.Text(name, cut.MaxLabel) // it becomes a label
	if j := js.byName[name]; j != nil {
		j.seen = second
		return j
	}
	if len(js.byName) >= js.max && !js.forget(second) {
		if js.rest == nil {
			js.rest = js.create("")
		}
		return js.rest
	}
	j := js.create(name)
	j.seen = second
	js.byName[name] = j
	return j
}

func (js *jobs) create(name string) *Job {
	return &Job{Name: name, buckets: make([]bucket, max(1, int(js.window/time.Second)))}
}

// count notes a judged relation.
func (j *Job) count(c Class, second int64) {
	j.Counts[c]++
	b := &j.buckets[second%int64(len(j.buckets))]
	if b.second != second {
		*b = bucket{second: second}
	}
	b.judged++
	if c >= Violation {
		b.bad++
	}
}

// healthy reports whether at most the share limit of the relations judged in the
// window is certainly wrong on the timeline.
func (js *jobs) healthy(j *Job, now time.Time) bool {
	judged, bad := j.Recent(now)
	return float64(bad) <= js.limit*float64(judged)
}

// Recent returns how many relations were judged in the window, and how many of them
// are certainly wrong on the timeline.
func (j *Job) Recent(now time.Time) (judged, bad int64) {
	oldest := now.Unix() - int64(len(j.buckets)) + 1
	for _, b := range j.buckets {
		if b.second >= oldest {
			judged += b.judged
			bad += b.bad
		}
	}
	return judged, bad
}
