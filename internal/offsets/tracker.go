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
	// MaxSteps and MaxJobs bound what is known of one partition.
	MaxSteps, MaxJobs int
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
	next    int64 // the offset after the last record
	jobs    map[Job]*job
	seen    *bounded.Map[string, struct{}] // ids of jobs, also of those that are idle or have no steps
	loose   []held                         // records without a step, in seconds, in order
	dropped int64                          // steps and jobs that were not kept for lack of room
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

// New returns a tracker of a partition that is read from an offset.
func New(cfg Config, from int64) *Tracker {
	return &Tracker{cfg: cfg, next: from, jobs: map[Job]*job{}, seen: bounded.NewMap(bounded.MapConfig[string, struct{}]{Entries: maxSeen, Order: bounded.ByUse})}
}

// Next returns the offset of the next record.
func (t *Tracker) Next() int64 { return t.next }

// Dropped returns how many steps and jobs were not kept for lack of room.
func (t *Tracker) Dropped() int64 { return t.dropped }

// Add takes a record, which was used at a time: the steps that it has operations of, and whether it has anything
// without a step. Records come in the order of their offsets.
func (t *Tracker) Add(offset int64, steps []Step, loose bool, now time.Time) {
	t.next = offset + 1
	for _, s := range steps {
		t.step(s, offset, now)
	}
	if !loose {
		return
	}
	if n := len(t.loose); n > 0 && now.Sub(t.loose[n-1].last) < time.Second {
		return
	}
	t.loose = append(t.loose, held{offset, now})
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
	if len(j.order) > t.cfg.MaxSteps {
		t.dropped++
		j.pop()
	}
}

// maxReleased is how many steps of a job are remembered that are not held any more.
const maxReleased = 1 << 12

// maxSeen is how many ids of jobs are known of one partition, idle ones as well: what an analysis knows of a job
// outlasts its records.
const maxSeen = 1 << 12

// Saw notes the id of a job of which a record has something without a step; empty: of none.
func (t *Tracker) Saw(id string) {
	if id != "" {
		t.seen.Set(id, struct{}{})
	}
}

// dropJob forgets the job of which nothing came for longest.
func (t *Tracker) dropJob() {
	oldest := slices.MinFunc(slices.Collect(maps.Keys(t.jobs)), func(a, b Job) int {
		return cmp.Or(t.jobs[a].last.Compare(t.jobs[b].last), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	delete(t.jobs, oldest)
	t.dropped++
}

// pop forgets the step that began first.
func (j *job) pop() {
	j.released.Add(j.order[0])
	delete(j.steps, j.order[0])
	j.order = j.order[1:]
}

// Floor returns the offset from which records are needed again.
func (t *Tracker) Floor(now time.Time) int64 {
	floor := t.next
	for key, j := range t.jobs {
		if now.Sub(j.last) >= t.cfg.Idle {
			delete(t.jobs, key)
			continue
		}
		for len(j.order) > t.cfg.Steps && now.Sub(j.steps[j.order[0]].last) >= t.cfg.Time {
			j.pop()
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
	return floor
}

// Jobs returns the ids of the jobs that records were of.
func (t *Tracker) Jobs() []string {
	var ids []string
	for id := range t.seen.All() {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
