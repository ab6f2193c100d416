package bilateral

import (
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

// Changes returns what has changed since it was called last, or all that is held.
func (b *Board) Changes(all bool) (list []Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, j := range b.jobs {
		if !all && !j.dirty {
			continue
		}
		partial := j.partial()
		for name, m := range j.members {
			for _, c := range m.changes(partial, all, &b.revision) {
				c.Job, c.Domain, c.Domains = k.name, name, k.domains
				list = append(list, c)
			}
		}
		j.dirty = false
	}
	return list
}

// partial are the epochs that some domains hold, and some do not.
func (j *job) partial() (epochs []int64) {
	for at, n := range j.far {
		if n[Tentative] < j.domains && !slices.Contains(epochs, at.Epoch) {
			epochs = append(epochs, at.Epoch)
		}
	}
	slices.Sort(epochs)
	return epochs
}

// changes compares what a member holds, and what is expected of it since others hold it, with what was
// said of it.
func (m *member) changes(partial []int64, all bool, revision *int64) (list []Change) {
	now := map[int64]State{}
	for _, epoch := range partial {
		if !m.past(epoch) {
			now[epoch] = 0
		}
	}
	for _, s := range m.slots {
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
		if m.told[epoch].state != 0 && m.past(epoch) {
			c.State, c.Held = model.DomainAbsent, true
		}
		delete(m.told, epoch)
		list = append(list, c)
	}
	return list
}

// past reports whether a member has committed a newer save, and needs none of the epoch.
func (m *member) past(epoch int64) bool {
	return slices.ContainsFunc(m.slots, func(s Slot) bool { return s.Epoch > epoch && s.State == Committed })
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
	for _, k := range slices.SortedFunc(maps.Keys(b.jobs), key.compare) {
		j := b.jobs[k]
		of := Job{Name: k.name, Domains: k.domains, Heard: len(j.members), Session: j.session, Joined: j.joined[j.session], LastHeard: j.heard}
		for _, at := range slices.SortedFunc(maps.Keys(j.far), Attempt.compare) {
			n := j.far[at]
			of.Saves = append(of.Saves, Count{at, n[Tentative], n[Reflecting], n[Committed]})
		}
		list = append(list, of)
	}
	return list
}
