package bilateral

import (
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// said is what was said last of a domain and an epoch.
type said struct {
	state    State
	revision int64
}

// Change is how far a domain is with the save of an epoch.
type Change struct {
	Job, Domain string
	Domains     int // of the job
	Epoch       int64
	State       model.DomainState
	Revision    int64 // of two changes of one epoch the one with the higher holds
}

// Changes returns what has changed since it was called last, or all that is held.
func (b *Board) Changes(all bool) (list []Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, j := range b.jobs {
		if !all && len(j.dirty) == 0 {
			continue
		}
		for name, m := range j.members {
			if _, dirty := j.dirty[name]; !all && !dirty {
				continue
			}
			for _, c := range m.changes(all, &b.revision) {
				c.Job, c.Domain, c.Domains = k.name, name, k.domains
				list = append(list, c)
			}
		}
		clear(j.dirty)
	}
	return list
}

// changes compares what a member holds with what was said of it.
func (m *member) changes(all bool, revision *int64) (list []Change) {
	held := map[int64]State{}
	for _, s := range m.slots {
		held[s.Epoch] = s.State
		was, known := m.told[s.Epoch]
		if !known || was.state != s.State {
			*revision++
			was = said{s.State, *revision}
			m.told[s.Epoch] = was
		} else if !all {
			continue
		}
		list = append(list, Change{Epoch: s.Epoch, State: s.State.Model(), Revision: was.revision})
	}
	for _, epoch := range slices.Sorted(maps.Keys(m.told)) {
		if held[epoch] != 0 {
			continue
		}
		delete(m.told, epoch)
		*revision++
		list = append(list, Change{Epoch: epoch, State: m.left(epoch), Revision: *revision})
	}
	return list
}

// left is what became of an epoch that a member holds no more: it was dropped for a newer one that is
// committed, or was never committed and is taken back.
func (m *member) left(epoch int64) model.DomainState {
	for _, s := range m.slots {
		if s.Epoch > epoch && s.State == Committed {
			return model.DomainAbsent
		}
	}
	return model.DomainWithdrawn
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
