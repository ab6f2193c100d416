// SPDX-License-Identifier: Apache-2.0

// Package offsets decides up to which offset a partition of a log is not needed any more: what an analysis that
// is killed must read again is kept, and no more.
package offsets

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
)

// Config is how much is kept.
type Config struct {
	// Steps is how many steps of each job are kept, the last in the order in which they began. It is more than
	// the window over which an analysis judges.
	Steps int
	// Time is for how long a step is kept after its last record, and a record without a step. It is more than
	// the longest time that an analysis waits for the rest of a step.
	Time time.Duration
	// Idle is after how long without a record nothing of a job is kept.
	Idle time.Duration
	// Pause is how long nothing may be asked or added while time passes; 0: any time. In a longer pause the analysis
	// stood still as well.
	Pause time.Duration
	// MaxSteps of a job, MaxJobs, and MaxAll steps of all jobs bound what is known of one partition.
	MaxSteps, MaxJobs, MaxAll int
}

// Job is one life of one job.
type Job struct{ ID, Incarnation string }

// Step is one step of a job.
type Step struct {
	Job
	Step int64
}

// Tracker follows one partition. It is not safe for concurrent use.
type Tracker struct {
	cfg     Config
	from    int64     // the offset of the first record
	found   Marks     // beside it
	next    int64     // the offset after the last record
	called  time.Time // when something was asked or added last
	jobs    map[Job]*job
	held    int                            // steps of all jobs
	seen    *bounded.Map[string, struct{}] // ids of jobs, also of those that are idle or have no steps
	loose   []group                        // records without a step, in seconds, in order
	dropped int64                          // steps and jobs that were not kept for lack of room
	floor   int64                          // as it was asked for last
	crowded int64                          // the next offset when a job was dropped last for lack of room
}

// job is what is known of one job.
type job struct {
	steps    map[int64]*held
	order    []int64 // of their first records
	released *bounded.Ring[int64]
	last     time.Time
}

// held is something with a first offset and the time of its last record.
type held struct {
	first int64
	last  time.Time
}

// group are records without a step that came within a second.
type group struct {
	held
	began time.Time
}

// New returns a tracker of a partition that is read from an offset, beside which there were marks. Until all records
// before the next of these marks were read again, they hold: what was concluded by then is not known from the records.
func New(cfg Config, from int64, found Marks) *Tracker {
	return &Tracker{cfg: cfg, from: from, found: found, next: from, jobs: map[Job]*job{}, seen: bounded.NewMap(bounded.MapConfig[string, struct{}]{Entries: maxSeen, Order: bounded.ByUse})}
}

// Next returns the offset of the next record.
func (t *Tracker) Next() int64 { return t.next }

// Dropped returns how many steps and jobs were not kept for lack of room.
func (t *Tracker) Dropped() int64 { return t.dropped }

// Add takes a record, which was used at a time: the steps that it has operations of, and whether it has anything
// without a step. Records come in the order of their offsets.
func (t *Tracker) Add(offset int64, steps []Step, loose bool, now time.Time) {
	t.pass(now)
	t.next = offset + 1
	for _, s := range steps {
		t.step(s, offset, now)
	}
	if !loose {
		return
	}
	if n := len(t.loose); n > 0 && now.Sub(t.loose[n-1].began) < time.Second {
		t.loose[n-1].last = now
		return
	}
	t.loose = append(t.loose, group{held{offset, now}, now})
}

// pass notes that time has passed, or that it stood still.
func (t *Tracker) pass(now time.Time) {
	if t.cfg.Pause > 0 && !t.called.IsZero() && now.Sub(t.called) > t.cfg.Pause {
		t.Touch(now)
	}
	t.called = now
}

// Touch begins all times anew: the analysis stood still, and waits for the rest of what it has as long as at first.
func (t *Tracker) Touch(now time.Time) {
	for _, j := range t.jobs {
		j.last = now
		for _, h := range j.steps {
			h.last = now
		}
	}
	for i := range t.loose {
		t.loose[i].last = now
	}
}

func (t *Tracker) step(s Step, offset int64, now time.Time) {
	j := t.jobs[s.Job]
	if j == nil {
		if len(t.jobs) >= t.cfg.MaxJobs {
			t.dropJob()
		}
		j = &job{steps: map[int64]*held{}, released: bounded.NewRing[int64](maxReleased)}
		t.jobs[s.Job] = j
	}
	j.last = now
	t.Saw(s.ID)
	if h := j.steps[s.Step]; h != nil {
		h.last = now
		return
	}
	if j.released.Seen(s.Step) {
		return // what comes late of it is no part of a step that is read again whole
	}
	j.steps[s.Step] = &held{offset, now}
	j.order = append(j.order, s.Step)
	t.held++
	if len(j.order) > t.cfg.MaxSteps {
		t.dropped++
		t.pop(j)
	}
	if t.held > t.cfg.MaxAll {
		t.dropped++
		t.pop(t.largest())
	}
}

// largest returns the job of which most steps are held.
func (t *Tracker) largest() (most *job) {
	for _, j := range t.jobs {
		if most == nil || len(j.order) > len(most.order) {
			most = j
		}
	}
	return most
}

// maxReleased is how many steps of a job are remembered that are not held any more.
const maxReleased = 1 << 9

// maxSeen is how many ids of jobs are known of one partition, idle ones as well: what an analysis knows of a job
// outlasts its records.
const maxSeen = 1 << 12

// Saw notes the id of a job of which a record has something; it is empty for jobs without one, which analyses take
// for one job.
func (t *Tracker) Saw(id string) { t.seen.Set(id, struct{}{}) }

// dropJob forgets the job of which nothing came for longest.
func (t *Tracker) dropJob() {
	oldest := slices.MinFunc(slices.Collect(maps.Keys(t.jobs)), func(a, b Job) int {
		return cmp.Or(t.jobs[a].last.Compare(t.jobs[b].last), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	t.forget(oldest)
	t.dropped++
	t.crowded = t.next
}

func (t *Tracker) forget(key Job) {
	t.held -= len(t.jobs[key].order)
	delete(t.jobs, key)
}

// pop forgets the step of a job that began first.
func (t *Tracker) pop(j *job) {
	j.released.Add(j.order[0])
	delete(j.steps, j.order[0])
	j.order = j.order[1:]
	t.held--
}

// Floor returns the offset from which records are needed again.
func (t *Tracker) Floor(now time.Time) int64 {
	t.pass(now)
	floor := t.next
	for key, j := range t.jobs {
		if now.Sub(j.last) >= t.cfg.Idle {
			t.forget(key)
			continue
		}
		for len(j.order) > t.cfg.Steps && now.Sub(j.steps[j.order[0]].last) >= t.cfg.Time {
			t.pop(j)
		}
		if len(j.order) > 0 {
			floor = min(floor, j.steps[j.order[0]].first)
		}
	}
	for len(t.loose) > 0 && now.Sub(t.loose[0].last) >= t.cfg.Time {
		t.loose = t.loose[1:]
	}
	if len(t.loose) > 0 {
		floor = min(floor, t.loose[0].first)
	}
	if t.again() {
		floor = t.from
	}
	t.floor = floor
	return floor
}

// again reports whether records are read that were read before the marks that were found.
func (t *Tracker) again() bool { return t.next < t.found.Next }

// Jobs returns the ids of the jobs that records were of.
func (t *Tracker) Jobs() []string {
	var ids []string
	for id := range t.seen.All() {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
