// SPDX-License-Identifier: Apache-2.0

package bilateral

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// said is what was said last of a domain and an epoch.
type said struct {
	state    State // 0: that others have it
	revision int64
}

// Change is how far a domain is with the save of an epoch.
type Change struct {
	Job, Domain string
	Domains     int // of the job
	Epoch       int64
	State       model.DomainState
	Held        bool  // the domain holds its part, or did
	Revision    int64 // of two changes of one epoch the one with the higher holds
}

// Changes hands on what has changed since it was called last, or all that is held, job by job, until one
// is not taken; it goes on there when it is called again. It returns whether it came to the end.
func (b *Board) Changes(all bool, take func([]Change) bool) bool {
	b.beginPass(all)
	for {
		list, more := b.next()
		if len(list) > 0 && !take(list) {
			return false
		}
		if more {
			continue
		}
		if all && !b.passAll { // what was gone on with was of what has changed alone
			b.beginPass(all)
			continue
		}
		return true
	}
}

// beginPass begins a pass over the jobs where none is under way.
func (b *Board) beginPass(all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pass) == 0 {
		b.pass, b.passAll = slices.SortedFunc(b.jobs.Keys(), key.compare), all
	}
}

// next is what there is to be told of forgotten jobs, or of the next one of the pass, and whether there is more.
func (b *Board) next() (list []Change, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.gone) > 0 {
		list, b.gone = b.gone[0], b.gone[1:]
		return list, true
	}
	if len(b.pass) == 0 {
		return nil, false
	}
	k := b.pass[0]
	b.pass = b.pass[1:]
	return b.changes(k, b.passAll), true
}

// changes is what there is to be told of one job; the caller holds the lock.
func (b *Board) changes(k key, all bool) (list []Change) {
	j, ok := b.jobs.Peek(k)
	if !ok || !all && !j.dirty {
		return nil
	}
	epochs := j.epochs()
	add := func(name string, m *member, slots []Slot) {
		for _, c := range m.changes(slots, epochs, all, &b.revision) {
			c.Job, c.Domain, c.Domains = k.name, name, k.domains
			list = append(list, c)
		}
	}
	for _, name := range slices.Sorted(j.members.Keys()) {
		m, _ := j.members.Peek(name)
		add(name, m, j.effective(m, epochs))
	}
	for _, m := range j.left {
		clear(epochs) // nothing is expected of who has left
		add(m.name, m, nil)
	}
	j.left, j.dirty = nil, false
	return list
}

// held is how an epoch is held by the domains of a job.
type held struct {
	attempt Attempt // of several, that which most hold
	count   *[Committed + 1]int
	partial bool // not all hold it
	void    bool // of a job that goes on with another number of domains, and has not committed it
}

func (j *job) epochs() map[int64]held {
	out := map[int64]held{}
	for at, n := range j.far {
		h, ok := out[at.Epoch]
		if !ok || cmp.Or(cmp.Compare(n[Tentative], h.count[Tentative]), cmp.Compare(at.Session, h.attempt.Session)) > 0 {
			partial := n[Tentative] < j.domains
			out[at.Epoch] = held{at, n, partial, j.over && (partial || n[Committed] == 0)}
		}
	}
	return out
}

// effective are a member's slots as far as anybody knows. Where one has committed, all are reflecting, and
// recover that save: it is what they hold. Of two attempts at one epoch, parts are no parts of one save.
func (j *job) effective(m *member, epochs map[int64]held) (slots []Slot) {
	for _, s := range m.slots {
		h := epochs[s.Epoch]
		if h.attempt != s.Attempt || h.void {
			continue
		}
		if s.State == Reflecting && h.count[Committed] > 0 {
			s.State = Committed
		}
		if s.State == Committed {
			slots = slots[:0]
		}
		slots = append(slots, s)
	}
	return slots
}

// changes compares what a member holds, and what is expected of it since others hold it, with what was
// said of it.
func (m *member) changes(slots []Slot, epochs map[int64]held, all bool, revision *int64) (list []Change) {
	now := map[int64]State{}
	for epoch, h := range epochs {
		if h.partial && !h.void && !past(slots, epoch) {
			now[epoch] = 0
		}
	}
	for _, s := range slots {
		now[s.Epoch] = s.State
	}
	for _, epoch := range slices.Sorted(maps.Keys(now)) {
		was, known := m.told[epoch]
		if known && was.state == now[epoch] && !all {
			continue
		}
		c := Change{Epoch: epoch, State: model.DomainAbsent, Held: now[epoch] != 0}
		if c.Held {
			c.State = now[epoch].Model()
		}
		if !known || was.state != now[epoch] {
			*revision++
			was = said{now[epoch], *revision}
			m.told[epoch] = was
		}
		c.Revision = was.revision
		list = append(list, c)
	}
	for _, epoch := range slices.Sorted(maps.Keys(m.told)) {
		if _, still := now[epoch]; still {
			continue
		}
		*revision++
		c := Change{Epoch: epoch, State: model.DomainWithdrawn, Revision: *revision}
		if m.told[epoch].state != 0 && past(slots, epoch) {
			c.State, c.Held = model.DomainAbsent, true
		}
		delete(m.told, epoch)
		list = append(list, c)
	}
	return list
}

// past reports whether who holds slots has committed a newer save, and needs none of the epoch.
func past(slots []Slot, epoch int64) bool {
	return slices.ContainsFunc(slots, func(s Slot) bool { return s.Epoch > epoch && s.State == Committed })
}

// Job is what is known of a job, for people.
type Job struct {
	Name           string
	Domains, Heard int
	Session        string
	Joined         int
	Saves          []Count // ascending
	LastHeard      time.Time
}

// Jobs returns all jobs, by name and number of domains.
func (b *Board) Jobs() (list []Job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range slices.SortedFunc(b.jobs.Keys(), key.compare) {
		j, _ := b.jobs.Peek(k)
		of := Job{Name: k.name, Domains: k.domains, Heard: j.members.Len(), Session: j.session, Joined: j.joined[j.session], LastHeard: j.heard}
		for _, at := range slices.SortedFunc(maps.Keys(j.far), Attempt.compare) {
			n := j.far[at]
			of.Saves = append(of.Saves, Count{at, n[Tentative], n[Reflecting], n[Committed]})
		}
		list = append(list, of)
	}
	return list
}
