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
	by     string
	marks  offsets.Marks
}

func (c commit) same(other commit) bool { return c.offset == other.offset && c.by == other.by }

// owned are the partitions of this collector. It is safe for concurrent use.
type owned struct {
	mu  sync.Mutex
	all map[key]*partition
}

// partition is what this collector knows of a partition that it reads. One goroutine uses it at a time, but for
// the numbers that telemetry reads.
type partition struct {
	key
	behind atomic.Int64 // records that were not read yet
	held   atomic.Int64 // records that are read again after a kill

	// found is what was committed when this collector got the partition: steps before its marks were concluded.
	found commit

	mu      sync.Mutex
	tracker *offsets.Tracker
	seen    bool  // a record was read
	dropped int64 // of the tracker, as counted
}

// keepOnly drops the partitions that are not among some, or that another collector had since this one: it has
// committed what is committed.
func (o *owned) keepOnly(now map[key]commit, self string) (lost []*partition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, p := range o.all {
		if at, still := now[k]; !still || at.by != self && !at.same(p.found) {
			lost = append(lost, p)
			delete(o.all, k)
		}
	}
	return lost
}

// take adds a partition that this collector did not have.
func (o *owned) take(k key, at commit, cfg *Config) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[key]*partition{}
	}
	if o.all[k] == nil {
		o.all[k] = &partition{key: k, found: at, tracker: offsets.New(cfg.Hold.tracker(), max(0, at.offset))}
	}
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

// jobsOnlyOf returns the jobs of partitions that no owned partition has.
func (o *owned) jobsOnlyOf(lost []*partition) (ids []string) {
	here := map[string]bool{}
	for _, p := range o.list() {
		for _, id := range p.jobs() {
			here[id] = true
		}
	}
	for _, p := range lost {
		for _, id := range p.jobs() {
			if !here[id] && !slices.Contains(ids, id) {
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

// used notes that the next component has taken a record, with the steps that it has.
func (p *partition) used(offset int64, steps []offsets.Step, others bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = true
	p.tracker.Add(offset, steps, others, now)
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

// floor returns the offset of the first record that is needed after a kill, and the first step of each job from
// there on; false where no record was read.
func (p *partition) floor(now time.Time) (offset int64, marks offsets.Marks, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.seen {
		return 0, nil, false
	}
	offset = p.tracker.Floor(now)
	p.held.Store(p.tracker.Next() - offset)
	return offset, p.tracker.Marks(), true
}

// droppedSince returns how many steps and jobs found no room since the last call.
func (p *partition) droppedSince() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = p.tracker.Dropped() - p.dropped
	p.dropped = p.tracker.Dropped()
	return n
}
