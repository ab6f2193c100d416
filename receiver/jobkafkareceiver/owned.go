// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-otel/lockstep/internal/offsets"
)

// key names a partition.
type key struct {
	topic     string
	partition int32
}

// commit is what the group has committed for a partition.
type commit struct {
	offset int64 // -1: nothing
	text   string
	marks  offsets.Marks // of the text
}

func (c commit) same(other commit) bool { return c.offset == other.offset && c.text == other.text }

// bounds are those of a partition: its first record, and where the next one will be.
type bounds struct{ first, next int64 }

// owned are the partitions of this collector. It is safe for concurrent use.
type owned struct {
	mu  sync.Mutex
	all map[key]*partition
}

// partition is what this collector knows of a partition that it reads. One goroutine uses it at a time, but for
// the numbers that telemetry reads.
type partition struct {
	key
	claim atomic.Pointer[highWater] // of what is read now; nil: nothing was
	held  atomic.Int64              // records that are read again after a kill

	// found is what was committed when this collector got the partition: steps before its marks were concluded.
	found commit
	moved commit // what this collector has committed instead then, where the first records are gone

	mu      sync.Mutex
	tracker *offsets.Tracker
	seen    bool  // a record was read
	dropped int64 // of the tracker, as counted
	marked  mark  // last, in this generation
	warned  bool  // that the text has not room for all jobs
}

// mark is an offset with the text beside it.
type mark struct {
	offset int64
	text   string
}

// highWater knows how many records a partition has.
type highWater interface{ HighWaterMarkOffset() int64 }

// reads notes from what a partition is read.
func (p *partition) reads(from highWater) { p.claim.Store(&from) }

// drop drops partitions, and with each those of the same number of other topics: they have the same jobs, and what
// analyses forget of a job is read again.
func (o *owned) drop(gone func(*partition) bool) (lost []*partition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	numbers := map[int32]bool{}
	for _, p := range o.all {
		if gone(p) {
			numbers[p.partition] = true
		}
	}
	for k, p := range o.all {
		if numbers[k.partition] {
			lost = append(lost, p)
			delete(o.all, k)
		}
	}
	return lost
}

// passedOn reports whether a partition is not among those of a generation, or another collector had it since this
// one: it has committed what is committed.
func (p *partition) passedOn(now map[key]commit, self string) bool {
	at, still := now[p.key]
	return !still || at.marks.By != self && !at.same(p.found) && !at.same(p.moved)
}

// take adds a partition that this collector did not have, and begins a generation with one that it had.
func (o *owned) take(k key, at commit, in bounds, cfg *Config) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[key]*partition{}
	}
	if p := o.all[k]; p != nil {
		p.begin(time.Now())
		return
	}
	from := at.offset
	switch {
	case from < 0 && cfg.InitialOffset == latest:
		from = in.next
	case from < 0:
		from = in.first
	}
	moved := at
	moved.offset = max(at.offset, in.first)
	o.all[k] = &partition{key: k, found: at, moved: moved, tracker: offsets.New(cfg.tracker(), from, at.marks)}
}

// begin notes that a generation begins. What is open waits as long as at first, since analyses stood still.
func (p *partition) begin(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tracker.Touch(now)
	p.marked = mark{}
}

func (o *owned) get(k key) *partition {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[k]
}

func (o *owned) list() []*partition {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.all))
}

// jobsOnlyOf returns the jobs of partitions that no other partition of their topic has, nor one of spans. Log records
// alone keep no job here: another collector may have concluded its steps.
func (o *owned) jobsOnlyOf(lost []*partition, spans string) (ids []string) {
	here := map[string]map[string]bool{} // by topic
	for _, p := range o.list() {
		if here[p.topic] == nil {
			here[p.topic] = map[string]bool{}
		}
		for _, id := range p.jobs() {
			here[p.topic][id] = true
		}
	}
	for _, p := range lost {
		for _, id := range p.jobs() {
			if !here[p.topic][id] && !here[spans][id] && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (p *partition) jobs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tracker.Jobs()
}

func (p *partition) next() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tracker.Next()
}

// used notes that the next component has taken a record.
func (p *partition) used(r *record, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = true
	p.tracker.Add(r.offset, r.steps, r.others, now)
	for _, id := range r.jobs {
		p.tracker.Saw(id)
	}
}

// gap returns how many records before an offset are missing: the topic has deleted them before they were read.
func (p *partition) gap(offset int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.seen && p.found.offset < 0 {
		return 0 // the group begins to read
	}
	return max(0, offset-p.tracker.Next())
}

// known reports whether a record was used before, in a generation before.
func (p *partition) known(offset int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen && offset < p.tracker.Next()
}

// floor returns the offset of the first record that is needed after a kill, and what is kept beside it, with the
// number of jobs that found no room; false where nothing has changed.
func (p *partition) floor(self string, now time.Time) (offset int64, text string, left int, changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.seen {
		return 0, "", 0, false
	}
	offset = p.tracker.Floor(now)
	p.held.Store(p.tracker.Next() - offset)
	marks := p.tracker.Marks(self)
	text, left = marks.Text()
	is := mark{offset, text}
	changed = is != p.marked
	p.marked = is
	return offset, text, left, changed
}

// warn reports whether a lack of room is new.
func (p *partition) warn(left int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	warned := p.warned
	p.warned = left > 0
	return p.warned && !warned
}

// lag returns how many records are there that were not read.
func (p *partition) lag() int64 {
	claim := p.claim.Load()
	if claim == nil {
		return 0
	}
	return max(0, (*claim).HighWaterMarkOffset()-p.next())
}

// cut reports whether a partition has fewer records than were read: its topic was created anew, or a broker has lost
// some.
func (p *partition) cut(next int64) bool { return next < p.next() }

// droppedSince returns how many steps and jobs found no room since the last call.
func (p *partition) droppedSince() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = p.tracker.Dropped() - p.dropped
	p.dropped = p.tracker.Dropped()
	return n
}
